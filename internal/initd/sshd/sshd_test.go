package sshd_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"

	"cosplay/internal/initd/inittest"
	"cosplay/internal/initd/sshd"
)

func TestCommand(t *testing.T) {
	w := serve(t, 0)
	for _, c := range []struct {
		what, command, out, err string
		code                    int
	}{
		{"who and where", "id -u; id -g; id -G; pwd", fmt.Sprintf("4242\n4242\n4242 44\n%s\n", w.workspace), "", 0},
		{"exit code", "echo out; echo err >&2; exit 7", "out\n", "err\n", 7},
		{"signal", "kill -9 $$", "", "", 137},
		{"image's variable", `printf %s "$ODD"`, odd, "", 0},
		{"session wins", `echo $SEED $PATH`, "session /opt/conda/bin:/usr/bin:/bin\n", "", 0},
		{"who in variables", `echo $USER $LOGNAME $HOME $SHELL`, "jane jane " + filepath.Dir(w.workspace) + "/home /bin/bash\n", "", 0},
		{"login in variables", `set -- $SSH_CONNECTION; echo $1 $3 $4 ${SSH_TTY-none}`, fmt.Sprintf("127.0.0.1 127.0.0.1 %d none\n", w.Port), "", 0},
		{"own session", `read -r _ _ _ _ _ sid _ </proc/$$/stat; [ $sid = $$ ] && echo yes`, "yes\n", "", 0},
		{"no such program", "/no/such/program 2>/dev/null", "", "", 127},
	} {
		out, errs, code := w.run(t, nil, c.command)
		if out != c.out || errs != c.err || code != c.code {
			t.Errorf("%s: out %q, err %q, code %d; want %q, %q, %d", c.what, out, errs, code, c.out, c.err, c.code)
		}
	}
}

func TestInputAndMuchOutput(t *testing.T) {
	w := serve(t, 0)
	data := bytes.Repeat([]byte("0123456789abcde\n"), 1<<18) // 4 MiB
	cmd := w.SSH(nil, "cat")
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil || !bytes.Equal(out, data) {
		t.Errorf("%d bytes of %d came back, %v", len(out), len(data), err)
	}
}

// TestNobodyReads checks that a program ends if no process reads its output any more, as it would with a local pipe.
func TestNobodyReads(t *testing.T) {
	w := serve(t, 0)
	line := fmt.Sprint("unread-", time.Now().UnixNano())
	cmd := w.SSH(nil, "exec yes "+line)
	stdin, err := cmd.StdinPipe() // open, so that nothing else ends the session
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	if _, err := output.Read(make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if err := output.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 141 { // 128 and SIGPIPE's number
		t.Errorf("it ended with %d", code)
	}
}

// A background process that closed the session's streams does not keep the session
// open: the session ends while the process still runs.
func TestBackground(t *testing.T) {
	w := serve(t, 0)
	out, _, code := w.run(t, nil, "nohup sleep 600 >/dev/null 2>&1 </dev/null & echo $!")
	if code != 0 {
		t.Errorf("code %d", code)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the process in the background was killed: %v", err)
	}
}

func TestClientVariables(t *testing.T) {
	w := serve(t, 0)
	flags := []string{"-o", "SetEnv=GPU_COSPLAY_X=mine LC_ALL=C LANG=de_DE EVIL=1 SEED=client"}
	out, _, _ := w.run(t, flags, `echo $GPU_COSPLAY_X $LC_ALL $LANG ${EVIL-none} $SEED`)
	if want := "mine C C.UTF-8 none session\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	out, errs, _ := w.run(t, []string{"-o", "SetEnv=LC_ALL=tlh_QO.UTF-8 LC_TIME=tlh_QO"}, `bash -c 'echo $LC_ALL ${LC_TIME-none}'`)
	if want := "C.UTF-8 none\n"; out != want || errs != "" {
		t.Errorf("a locale that the image lacks: got %q %q, want %q", out, errs, want)
	}
}

func TestRefused(t *testing.T) {
	w := serve(t, 0)
	stranger, root := w.Client, w.Client
	stranger.Key, root.User = "stranger", "root"
	password := w.Client
	password.Options = []string{"-o", "PreferredAuthentications=password,keyboard-interactive", "-o", "NumberOfPasswordPrompts=1"}
	for what, c := range map[string]inittest.Client{"a wrong key": stranger, "another user": root, "a password": password} {
		out, errs, code := outcome(t, c.SSH([]string{"-o", "BatchMode=yes"}, "echo in"))
		if code != 255 || out != "" || !strings.Contains(errs, "Permission denied (publickey)") {
			t.Errorf("%s: out %q, err %q, code %d; want a refusal", what, out, errs, code)
		}
	}
	if out, _, code := w.run(t, nil, "echo in"); code != 0 || out != "in\n" {
		t.Errorf("the right key is refused too: %q, %d", out, code)
	}
}

func TestTerminal(t *testing.T) {
	w := serve(t, 0)
	cmd := w.SSH([]string{"-tt"})
	cmd.Env = append(os.Environ(), "TERM=vt220")
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	shown := &inittest.Output{}
	go io.Copy(shown, screen)
	expect := func(typed, want string) {
		t.Helper()
		fmt.Fprintln(screen, typed)
		inittest.Soon(t, want+" in "+shown.String(), func() bool { return strings.Contains(shown.String(), want) })
	}
	expect("echo size=$(stty size)", "size=24 80")
	expect("echo $TERM,$0,$PWD", "vt220,-bash,"+w.workspace)
	expect("stat -c owner=%u $SSH_TTY", "owner=4242")
	if err := pty.Setsize(screen, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	expect("until [ \"$(stty size)\" != '24 80' ]; do sleep 0.05; done; echo size=$(stty size)", "size=40 100")
	expect("stty raw -echo; printf 'a\\nb' | od -c >/dev/null; printf '<\\n>'; stty sane", "<\n>")
	expect("sleep 60 & exit 3", "logout")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("ended with %v, want code 3", err)
	}
}

// Without a terminal on the client's side the end of its input ends the shell.
func TestTerminalEndOfInput(t *testing.T) {
	w := serve(t, 0)
	cmd := w.SSH([]string{"-tt"}, "cat; tty; exit 5")
	cmd.Stdin = strings.NewReader("hello\n")
	out, _, code := outcome(t, cmd)
	if code != 5 || !strings.Contains(out, "hello") || !strings.Contains(out, "/dev/pts/") {
		t.Errorf("out %q, code %d", out, code)
	}
}

// If a client disconnects, its processes end.
func TestDisconnect(t *testing.T) {
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP) // else, under nohup, they would be born ignoring it
	defer signal.Stop(hangUps)
	w := serve(t, 0)
	for _, flags := range [][]string{nil, {"-tt"}} {
		cmd := w.SSH(flags, "echo $$; sleep 300; true")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Fscan(out, &pid); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Kill()
		cmd.Wait()
		inittest.Soon(t, "the process group gone", func() bool { return syscall.Kill(-pid, 0) == syscall.ESRCH })
	}
}

// dial logs in by the library, with the requests of the server unanswered.
func (w *world) dial(t *testing.T) (ssh.Conn, <-chan *ssh.Request) {
	t.Helper()
	raw, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(w.Port))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(w.private)
	if err != nil {
		t.Fatal(err)
	}
	conn, _, requests, err := ssh.NewClientConn(raw, raw.RemoteAddr().String(), &ssh.ClientConfig{
		User: "jane", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(w.server.HostKey.PublicKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, requests
}

// TestKeepAlive: the server drops a client that answers nothing and keeps one that
// answers. The beat is long enough for an answer on a loaded machine.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	const beat = time.Second
	w := serve(t, beat)
	alive, requests := w.dial(t)
	asked := make(chan struct{}, 100)
	go func() {
		for r := range requests {
			_ = r.Reply(false, nil)
			asked <- struct{}{}
		}
	}()
	dead, _ := w.dial(t)
	ended := func(c ssh.Conn) chan error {
		end := make(chan error, 1)
		go func() { end <- c.Wait() }()
		return end
	}
	aliveEnd, deadEnd := ended(alive), ended(dead)
	select {
	case <-deadEnd:
	case <-time.After(2 * time.Minute):
		t.Fatal("the server keeps a dead client")
	}
	for range 4 { // more intervals than the dead client was given
		select {
		case <-asked:
		case err := <-aliveEnd:
			t.Fatalf("the server drops a client that answers: %v", err)
		}
	}
}

// echo logs in by the library, each time over a new connection.
func (w *world) echo(t *testing.T) string {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(w.private)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ssh.Dial("tcp", "127.0.0.1:"+strconv.Itoa(w.Port), &ssh.ClientConfig{
		User: "jane", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(w.server.HostKey.PublicKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out, err := session.CombinedOutput("echo in")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Every tenth of the hundred is the real ssh, whose start takes its time.
func TestHundredLogins(t *testing.T) {
	w := serve(t, 0)
	login := func(i int) {
		t.Helper()
		out := ""
		if i%10 == 0 {
			out, _, _ = w.run(t, nil, "echo in")
		} else {
			out = w.echo(t)
		}
		if out != "in\n" {
			t.Fatalf("login %d: %q", i, out)
		}
	}
	login(0)
	held := func() (fds, goroutines, children int) {
		entries, _ := os.ReadDir("/proc/self/fd")
		tasks, _ := filepath.Glob("/proc/self/task/*/children")
		for _, task := range tasks {
			data, _ := os.ReadFile(task)
			children += len(strings.Fields(string(data)))
		}
		return len(entries), runtime.NumGoroutine(), children
	}
	time.Sleep(100 * time.Millisecond)
	fds, goroutines, children := held()
	for i := range 100 {
		login(i)
	}
	inittest.Soon(t, fmt.Sprintf("back to %d file descriptors, %d goroutines, %d children", fds, goroutines, children), func() bool {
		f, g, c := held()
		return f <= fds && g <= goroutines && c <= children
	})
}

func TestNoShell(t *testing.T) {
	w := serveShell(t, "", 0)
	if out, _, code := w.run(t, nil, `/bin/echo 'a  b' c`); out != "a  b c\n" || code != 0 {
		t.Errorf("a program by its path: %q, %d", out, code)
	}
	if _, errs, code := w.run(t, nil); code != 127 || !strings.Contains(errs, "no shell") {
		t.Errorf("a login: %q, %d; want to hear that there is no shell", errs, code)
	}
}

func TestParseKeys(t *testing.T) {
	_, _, line := inittest.Key(t, t.TempDir(), "id")
	keys, notes := sshd.ParseKeys([]string{"# mine", "", line, "ssh-ed25519 nonsense", `command="true" ` + line})
	if len(keys) != 1 || len(notes) != 2 {
		t.Errorf("%d keys, notes %q; want 1 and 2", len(keys), notes)
	}
}
