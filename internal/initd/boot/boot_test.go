package boot_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"cosplay/internal/initd"
	"cosplay/internal/initd/inittest"
)

func TestIdentities(t *testing.T) {
	for _, c := range []struct {
		user initd.User
		want string // id -un, id -gn, id -u, id -g, HOME
		home uint32 // its owner
	}{
		{initd.User{Name: "jane", UID: 1234, GID: 1234}, "jane jane 1234 1234 /home/jane", 1234},
		{initd.User{Name: "root"}, "root root 0 0 /root", 0},
		{initd.User{Name: "www-data", UID: 33, GID: 33}, "www-data www-data 33 33 /home/www-data", 33},
		{initd.User{Name: "www-data", UID: 1000, GID: 100, Group: "users"}, "www-data users 1000 100 /home/www-data", 1000},
		{initd.User{Name: "jane.doe", UID: 33, GID: 33, Group: "staff", Home: "/data/j"}, "jane.doe staff 33 33 /data/j", 33},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			box := start(t, small, func(config *initd.Config) { config.User = c.user })
			script := `echo $(id -un) $(id -gn) $(id -u) $(id -g) $HOME`
			overSSH := output(t, box.SSH(nil, script))
			byExec := output(t, box.exec(small, "sh", "-c", script))
			if overSSH != c.want+"\n" || byExec != overSSH {
				t.Errorf("ssh says %q, exec says %q, want %q", overSSH, byExec, c.want)
			}
			info, err := os.Stat(filepath.Join(box.root, strings.Fields(c.want)[4]))
			if err != nil || info.Mode().Perm() != 0o755 || info.Sys().(*syscall.Stat_t).Uid != c.home {
				t.Errorf("the home is %v, %v", info, err)
			}
		})
	}
}

func TestEnvironmentEverywhere(t *testing.T) {
	t.Parallel()
	box := start(t, small, nil)
	env := func(cmd *exec.Cmd) []string {
		lines := strings.Split(output(t, cmd), "\n")
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "SSH_") })
		slices.Sort(lines)
		return lines
	}
	overSSH, byExec := env(box.SSH(nil, "exec env")), env(box.exec(small, "env"))
	for _, shell := range []string{"PWD=/workspace", "SHLVL=1", "_=/bin/env"} { // of the shell in between
		overSSH = slices.DeleteFunc(overSSH, func(l string) bool { return l == shell })
	}
	if !slices.Equal(overSSH, byExec) {
		t.Errorf("over ssh\n%q\nby exec\n%q", overSSH, byExec)
	}
	want := odd + "|session|/opt/conda/bin:/bin|" + secret
	script := `printf '%s|%s|%s|%s' "$ODD" "$SEED" "$PATH" "$TOKEN"`
	login := box.SSH([]string{"-T"})
	login.Stdin = strings.NewReader(script)
	for what, cmd := range map[string]*exec.Cmd{
		"ssh command":     box.SSH(nil, script),
		"ssh login shell": login,
		"exec":            box.exec(small, "sh", "-c", script),
		"cron-like shell": box.SSH(nil, "env -i /bin/sh -lc '"+strings.ReplaceAll(script, "'", `'\''`)+"'"),
	} {
		if got := output(t, cmd); got != want {
			t.Errorf("%s has %q, want %q", what, got, want)
		}
	}
	if holders := box.grep(t, secret); len(holders) != 3 || !strings.HasPrefix(holders[0], initd.PrivateDir+"/") {
		t.Errorf("the sensitive value is in %q, want it in files of %s alone", holders, initd.PrivateDir)
	}
	if strings.Contains(box.stderr.String(), secret) || strings.Contains(box.stderr.String(), "conda") {
		t.Errorf("it prints values of variables: %s", box.stderr.String())
	}
	for _, line := range []string{"user jane (1234:1234), home /home/jane, shell /bin/sh, starts in /workspace", "ssh on port "} {
		if !strings.Contains(box.stderr.String(), line) {
			t.Errorf("it does not say %q: %s", line, box.stderr.String())
		}
	}
}

// An image from scratch: no shell, no /etc, one static program.
func TestScratch(t *testing.T) {
	t.Parallel()
	bare := image{applets: []string{"env"}, env: []string{"PATH=/bin"}}
	box := start(t, bare, nil)
	for what, cmd := range map[string]*exec.Cmd{
		"ssh": box.SSH(nil, "/bin/env -u SSH_CLIENT -u SSH_CONNECTION"), "exec": box.exec(bare, "env"),
	} {
		want := "HOME=/home/jane\nLOGNAME=jane\nPATH=/bin\nSEED=session\nTOKEN=" + secret + "\nUSER=jane\n"
		if got := output(t, cmd); got != want {
			t.Errorf("%s has %q, want %q", what, got, want)
		}
	}
	shell := box.SSH(nil)
	out, _ := shell.CombinedOutput()
	if shell.ProcessState.ExitCode() != 127 || !strings.Contains(string(out), "no shell") {
		t.Errorf("a login ends with %v and says %q", shell.ProcessState, out)
	}
	scp := exec.Command("scp", append(box.Flags(), filepath.Join(box.Dir, "known_hosts"), box.Host()+":/tmp/copied")...)
	output(t, scp)
	if _, err := os.Stat(filepath.Join(box.root, "tmp/copied")); err != nil {
		t.Error(err)
	}
	passwd, err := os.ReadFile(filepath.Join(box.root, "etc/passwd"))
	if want := "root:*:0:0:root:/root:/sbin/nologin\njane:*:1234:1234::/home/jane:/sbin/nologin\n"; err != nil || string(passwd) != want {
		t.Errorf("passwd is %q, %v", passwd, err)
	}
}

func TestTerminalInContainer(t *testing.T) {
	t.Parallel()
	box := start(t, small, nil)
	if got := output(t, box.SSH([]string{"-tt"}, "stat -c '%u %n' $SSH_TTY; id -u >/dev/tty")); got != "1234 /dev/pts/0\r\n1234\r\n" {
		t.Errorf("got %q", got)
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		what    string
		command []string
		signal  syscall.Signal // sent when the command says "ready"
		code    int
		out     string
	}{
		{"its own", []string{"sh", "-c", "id -u; exit 7"}, 0, 7, "1234\n"},
		{"killed", []string{"sh", "-c", "kill -9 $$"}, 0, 137, ""},
		{"not there", []string{"/no/such"}, 0, 127, ""},
		{"not runnable", []string{"/etc/passwd"}, 0, 126, ""},
		{"streams are the user's", []string{"sh", "-c", "echo out >/dev/stdout || echo out >/proc/self/fd/1"}, 0, 0, "out\n"},
		{"term", []string{"sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done"}, syscall.SIGTERM, 9, "ready\n"},
		{"usr1", []string{"sh", "-c", "trap 'exit 10' USR1; echo ready; while :; do sleep 0.1; done"}, syscall.SIGUSR1, 10, "ready\n"},
		{"hup", []string{"sh", "-c", "trap 'exit 11' HUP; echo ready; while :; do sleep 0.1; done"}, syscall.SIGHUP, 11, "ready\n"},
		{"stubborn", []string{"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"}, syscall.SIGTERM, 137, "ready\n"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			box := start(t, small, func(config *initd.Config) { config.Command, config.SSH.Enabled = c.command, false })
			if c.signal != 0 {
				inittest.Soon(t, "ready", func() bool { return strings.Contains(box.stdout.String(), "ready") })
				box.cmd.Process.Signal(c.signal)
			}
			if code := box.code(t); code != c.code || box.stdout.String() != c.out {
				t.Errorf("code %d, out %q; want %d, %q; it said %s", code, box.stdout.String(), c.code, c.out, box.stderr.String())
			}
		})
	}
}

// TestGreetedOnlyByWhatRuns checks that the ssh server greets no client whose command does not run, so that a greeting
// proves that it runs.
func TestGreetedOnlyByWhatRuns(t *testing.T) {
	for _, c := range []struct {
		what    string
		command []string
		code    int
	}{
		{"not there", []string{"nowhere"}, 127},
		{"not runnable", []string{"/etc/passwd"}, 126},
		{"no program after all", []string{"/bin/broken"}, 126},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			broken := small
			broken.programs = map[string]string{"/bin/broken": "no program"}
			box := start(t, broken, func(config *initd.Config) { config.Command = c.command })
			for done := false; !done; { // clients come from before the server listens until the container has ended
				select {
				case <-box.ended:
					done = true
				default:
				}
				if banner := box.banner(); banner != "" {
					t.Errorf("a client is greeted by %q", banner)
				}
			}
			if code := box.code(t); code != c.code {
				t.Errorf("code %d, it said %s", code, box.stderr.String())
			}
		})
	}
}

// TestLogEndsWithTheCommand checks that what the command prints follows all that cosplay-init prints at the start.
func TestLogEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	box := start(t, small, func(config *initd.Config) {
		config.AuthorizedKeys = nil
		config.Command = []string{"sh", "-c", "echo printed >&2; exec sleep 300"}
	})
	box.waitForBanner(t)
	inittest.Soon(t, "the command prints", func() bool { return strings.Contains(box.stderr.String(), "printed\n") })
	if said := box.stderr.String(); !strings.HasSuffix(said, "starts command sh\nprinted\n") || !strings.Contains(said, "no key can log in") {
		t.Errorf("it said %s", said)
	}
}

func TestStopWithoutCommand(t *testing.T) {
	t.Parallel()
	box := start(t, small, nil)
	session := box.SSH(nil, "echo in; exec sleep 300")
	out, err := session.StdoutPipe()
	if err != nil || session.Start() != nil {
		t.Fatal("ssh does not start")
	}
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatal(err)
	}
	box.cmd.Process.Signal(syscall.SIGTERM)
	if code := box.code(t); code != 0 {
		t.Errorf("code %d, want 0: %s", code, box.stderr.String())
	}
	session.Wait()
}

// cosplay-init reaps orphans, and no exit status is lost.
func TestReaping(t *testing.T) {
	t.Parallel()
	box := start(t, small, nil)
	for range 5 {
		cmd := box.SSH(nil, "for i in 1 2 3 4 5 6 7 8; do (sleep 0.05 </dev/null >/dev/null 2>&1 &); done; exit 7")
		if cmd.Run(); cmd.ProcessState.ExitCode() != 7 {
			t.Errorf("ended with %v, want 7", cmd.ProcessState)
		}
	}
	inittest.Soon(t, "only pid 1 and its child", func() bool {
		return strings.Count(output(t, box.exec(small, "ps", "-o", "pid,comm,stat")), "\n") == 4 // a header, those two, ps
	})
}

func TestRestart(t *testing.T) {
	t.Parallel()
	box := start(t, small, nil)
	read := func() (all string) {
		for _, f := range []string{"passwd", "group", "environment", "profile.d/zz-cosplay.sh"} {
			data, err := os.ReadFile(filepath.Join(box.root, "etc", f))
			if err != nil {
				t.Fatal(err)
			}
			all += string(data)
		}
		return all
	}
	before := read()
	again := exec.Command("/proc/self/exe", "contain", box.root)
	os.Remove(filepath.Join(box.root, "dev/ptmx"))
	box.cmd.Process.Signal(syscall.SIGTERM)
	box.code(t)
	again.SysProcAttr, again.Env = box.cmd.SysProcAttr, small.env
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Process.Kill() })
	box.waitForBanner(t)
	again.Process.Signal(syscall.SIGTERM)
	again.Wait()
	if after := read(); after != before {
		t.Errorf("a second start changes files:\n%s\nnow\n%s", before, after)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		what, want string
		change     func(*initd.Config)
	}{
		{"no host key", "mount the session's at /nowhere", func(c *initd.Config) { c.SSH.HostKey = "/nowhere" }},
		{"no name", "give a name", func(c *initd.Config) { c.User.Name = "" }},
		{"port taken", "choose another port", func(c *initd.Config) {
			l, err := net.Listen("tcp", fmt.Sprintf(":%d", c.SSH.Port))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			box := start(t, small, func(config *initd.Config) {
				config.Command = []string{"true"}
				c.change(config)
			})
			if code := box.code(t); code != 1 || !strings.Contains(box.stderr.String(), c.want) {
				t.Errorf("code %d, %q; want 1 and %q", code, box.stderr.String(), c.want)
			}
		})
	}
}

// The log shows the fingerprint of the session's host key, so that users can compare it with what a client shows.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	box := start(t, small, nil)
	pem, err := os.ReadFile(filepath.Join(box.root, initd.HostKeyPath))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	want := ssh.FingerprintSHA256(key.PublicKey())
	inittest.Soon(t, want+" in the log", func() bool { return strings.Contains(box.stderr.String(), want) })
}
