package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestPrivilegedTTL: the rules of a host limit the ttl of sessions at its line, and give one to sessions without; root keeps
// what they gave.
func TestPrivilegedTTL(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const project = "/home/bob/fleet"
	m.allow("bob ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware)
	m.write("/etc/cosplay/gpus", "* user=ann\n* user=bob max-ttl=8h default-ttl=2h\n", 0)
	left := regexp.MustCompile(`(?m)^worker-1 .* running +(2h|1h59m\d+s)$`) // 2h in the first second
	const rule = "/etc/cosplay/gpus:2 (* user=bob max-ttl=8h default-ttl=2h)"
	write := func(ttl string) {
		m.write(project+"/fleet.hcl", strings.Replace(workers(0, 2), "count ", ttl+"\n  count ", 1), bob)
	}

	write(`ttl = "9h"`)
	if said := oneLine(m.run(bob, project, installed, "plan")); !strings.Contains(said, "Warning: a ttl of 9h is too long for this host") || !strings.Contains(said, rule+" permits 8h") {
		t.Errorf("plan says %s", said)
	}
	before := m.state()
	m.fails(bob, project, []string{installed, "apply", "--auto-approve"}, "Error: a ttl of 9h is too long", "on fleet.hcl line 7", "permits 8h. Fix: write ttl")
	if m.state() != before {
		t.Error("a refused apply changed the GPU")
	}

	write("")
	if said := oneLine(m.run(bob, project, installed, "plan")); strings.Count(said, "the session gets a ttl of 2h") != 1 || !strings.Contains(said, rule+" gives it to sessions without one") {
		t.Errorf("plan says %s", said)
	}
	m.run(bob, project, installed, "apply", "--auto-approve")
	for uid := range map[int]bool{bob: true, 0: true} {
		m.run(uid, project, installed, "plan", "--detailed-exitcode")
		if said := m.run(uid, project, installed, "status"); !left.MatchString(said) {
			t.Errorf("status says %s", said)
		}
	}
	m.fails(bob, project, []string{installed, "extend", "worker", "7h30s"}, "would have 9h", "Fix: extend it by less")
	m.run(bob, project, installed, "extend", "worker", "5h")

	// One that has expired gets no more.
	write(`ttl = "2s"`)
	m.run(bob, project, installed, "apply", "--auto-approve", "--replace", "worker-0", "--replace", "worker-1")
	time.Sleep(2100 * time.Millisecond)
	m.run(bob, project, installed, "expire")
	m.fails(bob, project, []string{installed, "extend", "worker", "1000h"}, "Fix: extend it by less")
	m.run(bob, project, installed, "extend", "worker", "1h")
	m.run(bob, project, installed, "apply", "--auto-approve")

	// A change of a session that runs is limited, and one that stays as it is is not.
	write(`ttl = "9h"`)
	m.fails(bob, project, []string{installed, "apply", "--auto-approve"}, "a ttl of 9h is too long")
	write(`ttl = "8h"`)
	m.run(bob, project, installed, "apply", "--auto-approve")
	m.write("/etc/cosplay/gpus", "* user=bob max-ttl=1h\n", 0)
	m.run(bob, project, installed, "plan", "--detailed-exitcode")
	m.fails(bob, project, []string{installed, "apply", "--auto-approve", "--replace", "worker-0"}, "a ttl of 8h is too long")

	// Rules that the user cannot read give no ttl; wrong ones are refused.
	if err := os.Chmod(filepath.Join(m.root, "etc/cosplay/gpus"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.run(bob, project, installed, "plan", "--replace", "worker-0")
	m.write("/etc/cosplay/gpus", "* max-ttl=1\n", 0)
	m.fails(bob, project, []string{installed, "apply", "--auto-approve", "--replace", "worker-0"}, "/etc/cosplay/gpus:1")
}
