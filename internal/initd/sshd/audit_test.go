package sshd_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cosplay/internal/need"
)

// openSSH is the report of ssh-audit 2.5.0 on the sshd of OpenSSH 10.6p1 (Debian)
// with its default configuration and an ed25519 host key.
const openSSH = "testdata/ssh-audit-openssh-10.6.txt"

var (
	audited = regexp.MustCompile(`^\((\w+)\) (\S+)`)
	flagged = regexp.MustCompile(`\[(fail|warn)\] (.*)`)
)

// findings are the algorithms in a report of ssh-audit, and what it finds wrong
// with the server.
func findings(report string) (algorithms, wrong []string) {
	item := ""
	for line := range strings.Lines(report) {
		if m := audited.FindStringSubmatch(line); m != nil {
			item = m[1] + " " + m[2]
			if slices.Contains([]string{"kex", "key", "enc", "mac"}, m[1]) {
				algorithms = append(algorithms, item)
			}
			if m[1] == "cve" || m[1] == "sec" {
				wrong = append(wrong, item)
			}
		}
		if m := flagged.FindStringSubmatch(line); m != nil {
			wrong = append(wrong, item+": "+m[1]+": "+strings.TrimSpace(m[2]))
		}
	}
	return algorithms, wrong
}

// ssh-audit reports nothing that it does not report for OpenSSH, too. OpenSSH also offers each algorithm that a newer
// ssh-audit might criticize.
func TestAudit(t *testing.T) {
	need.Root(t, "ssh-audit")
	reference, err := os.ReadFile(openSSH)
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, 0)
	report, err := exec.Command("ssh-audit", "-n", "-p", strconv.Itoa(w.Port), "127.0.0.1").Output() // its exit code is not 0 if it has findings
	algorithms, wrong := findings(string(report))
	if len(algorithms) < 10 {
		t.Fatalf("no report: %v\n%s", err, report)
	}
	t.Logf("%s", report)
	known, tolerated := findings(string(reference))
	for _, algorithm := range algorithms {
		if !slices.Contains(known, algorithm) {
			t.Errorf("OpenSSH does not offer %s", algorithm)
		}
	}
	for _, finding := range wrong {
		if !slices.Contains(tolerated, finding) {
			t.Errorf("ssh-audit finds %s", finding)
		}
	}
	for _, gone := range []string{"sha1", "diffie-hellman", "cbc", "ssh-rsa"} {
		if i := slices.IndexFunc(algorithms, func(a string) bool { return strings.Contains(a, gone) }); i >= 0 {
			t.Errorf("it offers %s", algorithms[i])
		}
	}
	macs := slices.DeleteFunc(algorithms, func(a string) bool { return !strings.HasPrefix(a, "mac ") })
	if !strings.Contains(macs[0], "-etm@") || !strings.Contains(macs[1], "-etm@") {
		t.Errorf("the MACs are %q; want encrypt-then-MAC first", macs)
	}
}
