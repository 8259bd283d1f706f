package boot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"cosplay/internal/initd"
	"cosplay/internal/initd/inittest"
)

// The test binary is also what makes a container: as the first process of new
// namespaces it mounts what Docker would, and becomes cosplay-init.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "contain" {
		fmt.Fprintln(os.Stderr, contain(os.Args[2]))
		os.Exit(99)
	}
	code := m.Run()
	for _, dir := range scratch {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

func contain(root string) error {
	return errors.Join(
		syscall.Mount("proc", root+"/proc", "proc", 0, ""),
		syscall.Mount("devpts", root+"/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666"),
		os.Symlink("pts/ptmx", root+"/dev/ptmx"),
		syscall.Mount("/dev/null", root+"/dev/null", "", syscall.MS_BIND, ""),
		syscall.Mount("/dev/tty", root+"/dev/tty", "", syscall.MS_BIND, ""),
		syscall.Chroot(root), os.Chdir("/"),
		syscall.Exec(initd.Program, initd.Entrypoint(), os.Environ()))
}

const (
	odd    = "it's \"odd\"\n # and two  lines"
	secret = "do-not-tell-this"
)

// image is what a container starts from.
type image struct {
	applets []string          // programs of busybox
	files   map[string]string // by path
	env     []string
}

var small = image{
	applets: []string{"sh", "id", "env", "sleep", "ps", "true", "stat"},
	files: map[string]string{
		"/etc/passwd":             "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n",
		"/etc/group":              "root:x:0:\nwww-data:x:33:\nvideo:x:44:jane\n",
		"/etc/profile":            "PATH=/usr/bin:/bin\nfor f in /etc/profile.d/*.sh; do . $f; done\n",
		"/etc/profile.d/other.sh": "true\n",
	},
	env: []string{"PATH=/opt/conda/bin:/bin", "ODD=" + odd, "SEED=image", "HOME=/nowhere"},
}

func (i image) unpack(t *testing.T, root string) {
	t.Helper()
	for _, dir := range []string{"proc", "dev/pts", "bin", "run/cosplay", "workspace"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"/dev/null": "", "/dev/tty": ""}
	for path, content := range i.files {
		files[path] = content
	}
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for n, name := range i.applets {
		path, first := filepath.Join(root, "bin", name), filepath.Join(root, "bin", i.applets[0])
		if n == 0 {
			copyProgram(t, busybox, path)
		} else if err := os.Link(first, path); err != nil {
			t.Fatal(err)
		}
	}
}

// built is the path of the program itself, made once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cosplay-init-built-")
	if err != nil {
		return "", err
	}
	scratch = append(scratch, dir)
	cmd := exec.Command("go", "build", "-trimpath", "-o", dir, "cosplay/cmd/cosplay-init")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "cosplay-init"), nil
})

// scratch is removed after all tests.
var scratch []string

// copyProgram leaves the writing to another process: a program that this one
// has open cannot be started, and a fork elsewhere may hold it open.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

type container struct {
	inittest.Client
	root   string
	cmd    *exec.Cmd
	stdout inittest.Output
	stderr inittest.Output
	ended  chan struct{}
}

// start runs a container; nil where this test cannot run. change fits the
// config to the case.
func start(t *testing.T, i image, change func(*initd.Config)) *container {
	t.Helper()
	if !inittest.Able(t, "ssh", "busybox", "nsenter") {
		return nil
	}
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := inittest.Dir(t)
	c := &container{root: filepath.Join(dir, "root"), ended: make(chan struct{})}
	i.unpack(t, c.root)
	_, _, line := inittest.Key(t, dir, "id")
	_, hostKey, _ := inittest.Key(t, filepath.Join(c.root, initd.Dir), "host_key")
	port := freePort(t)
	config := initd.Config{
		User:           initd.User{Name: "jane", UID: 1234, GID: 1234},
		AuthorizedKeys: []string{line},
		SSH:            initd.SSH{Enabled: true, Port: port},
		Env:            map[string]string{"SEED": "session", "TOKEN": secret},
	}
	if change != nil {
		change(&config)
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.root, initd.ConfigPath), data, 0o600); err != nil {
		t.Fatal(err)
	}
	copyProgram(t, program, filepath.Join(c.root, initd.Program))
	c.Client = inittest.NewClient(t, dir, config.User.Name, "id", port, hostKey.PublicKey())
	c.cmd = exec.Command("/proc/self/exe", "contain", c.root)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = i.env, &c.stdout, &c.stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Unshareflags: syscall.CLONE_NEWNS}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.cmd.Wait(); close(c.ended) }()
	t.Cleanup(func() { c.cmd.Process.Kill(); <-c.ended })
	if config.SSH.Enabled && len(config.Command) == 0 {
		c.waitForBanner(t)
	}
	return c
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (c *container) waitForBanner(t *testing.T) {
	t.Helper()
	inittest.Soon(t, "an ssh banner", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.Port))
		if err != nil {
			return false
		}
		defer conn.Close()
		banner := make([]byte, 4)
		n, _ := conn.Read(banner)
		return string(banner[:n]) == "SSH-"
	})
}

// exec is docker exec: a process of the image's environment, as root.
func (c *container) exec(i image, argv ...string) *exec.Cmd {
	args := append([]string{"-t", fmt.Sprint(c.cmd.Process.Pid), "-m", "-p", "--root", "--wd"}, initd.Exec(argv...)...)
	cmd := exec.Command("nsenter", args...)
	cmd.Env = append([]string{}, i.env...)
	return cmd
}

func (c *container) code(t *testing.T) int {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(12 * time.Second):
		t.Fatalf("the container does not end; it said %s", c.stderr.String())
	}
	return c.cmd.ProcessState.ExitCode()
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %v: %s", cmd.Args, err, errs.String())
	}
	return string(out)
}

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
			if box == nil {
				return
			}
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
	if box == nil {
		return
	}
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
	if strings.Contains(box.stderr.String(), secret) || strings.Contains(box.stderr.String(), "conda") {
		t.Errorf("it tells values of variables: %s", box.stderr.String())
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
	if box == nil {
		return
	}
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
	if box == nil {
		return
	}
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
			if box == nil {
				return
			}
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

func TestStopWithoutCommand(t *testing.T) {
	t.Parallel()
	box := start(t, small, nil)
	if box == nil {
		return
	}
	session := box.SSH(nil, "echo in; exec sleep 300")
	out, err := session.StdoutPipe()
	if err != nil || session.Start() != nil {
		t.Fatal("ssh does not start")
	}
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	box.cmd.Process.Signal(syscall.SIGTERM)
	if code := box.code(t); code != 0 || time.Since(begin) > 3*time.Second {
		t.Errorf("code %d after %v, want 0 at once: %s", code, time.Since(begin), box.stderr.String())
	}
	session.Wait()
}

// Orphans are reaped, and nobody's exit status goes with them.
func TestReaping(t *testing.T) {
	t.Parallel()
	box := start(t, small, nil)
	if box == nil {
		return
	}
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
	if box == nil {
		return
	}
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
			if box == nil {
				return
			}
			if code := box.code(t); code != 1 || !strings.Contains(box.stderr.String(), c.want) {
				t.Errorf("code %d, %q; want 1 and %q", code, box.stderr.String(), c.want)
			}
		})
	}
}

// The host key of a session is told by its fingerprint, so that logs can be
// compared with what a client shows.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	box := start(t, small, nil)
	if box == nil {
		return
	}
	pem, err := os.ReadFile(filepath.Join(box.root, initd.HostKeyPath))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	if want := ssh.FingerprintSHA256(key.PublicKey()); !strings.Contains(box.stderr.String(), want) {
		t.Errorf("no %s in %s", want, box.stderr.String())
	}
}
