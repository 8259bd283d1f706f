package sshd_test

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// begin starts a command over ssh, and returns its first line of output and what follows.
func (w *world) begin(t *testing.T, flags []string, command string) (cmd *exec.Cmd, first string, rest io.Reader) {
	t.Helper()
	cmd = w.SSH(flags, command)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	if first, err = lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(first), lines
}

// ended checks what a client has after the server's Close.
func ended(t *testing.T, cmd *exec.Cmd, output io.Reader, want string, code int) {
	t.Helper()
	got, _ := io.ReadAll(output)
	cmd.Wait()
	if is := cmd.ProcessState.ExitCode(); string(got) != want || is != code {
		t.Errorf("%q arrived, and the client ended with code %d; want %q and %d", got, is, want, code)
	}
}

// TestClose: what was written on a terminal before Close reaches its client, and so does what a program that is hung up
// writes, and the code with which it ends. Close waits for no client without a program, and for none that has not logged in.
func TestClose(t *testing.T) {
	t.Parallel()
	for range 5 {
		w := serve(t, 0)
		watched, tty, screen := w.begin(t, []string{"-tt"}, "tty; exec sleep 600")
		careful, _, report := w.begin(t, nil, `trap 'echo saved; exit 3' HUP; echo ready; while :; do sleep 0.01; done`)
		w.dial(t)
		stranger, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(w.Port))
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
		if err := os.WriteFile(tty, []byte("farewell\n"), 0); err != nil {
			t.Fatal(err)
		}
		w.server.Close(time.Hour)
		ended(t, watched, screen, "farewell\r\n", 129)
		ended(t, careful, report, "saved\n", 3)
	}
}

// TestCloseStubborn: a program that goes on after SIGHUP loses its client after the wait, and gets no other SIGHUP.
func TestCloseStubborn(t *testing.T) {
	t.Parallel()
	w := serve(t, 0)
	cmd, tty, screen := w.begin(t, []string{"-tt"}, "trap '' HUP; tty; sleep 30")
	busy, pid, _ := w.begin(t, nil, `trap 'echo got >>got' HUP; echo $$; while :; do sleep 0.01; done`)
	if err := os.WriteFile(tty, []byte("farewell\n"), 0); err != nil {
		t.Fatal(err)
	}
	w.server.Close(3 * time.Second)
	ended(t, cmd, screen, "farewell\r\n", 255)
	busy.Wait()
	time.Sleep(100 * time.Millisecond) // for a second one
	if got, err := os.ReadFile(filepath.Join(w.workspace, "got")); string(got) != "got\n" {
		t.Errorf("got %q, %v; want one SIGHUP", got, err)
	}
	if number, err := strconv.Atoi(pid); err != nil || syscall.Kill(-number, syscall.SIGKILL) != nil {
		t.Errorf("the program %s has ended", pid)
	}
}

// TestCloseAnswers: while its session ends, a client gets an answer to each channel that it opens: unanswered ones would
// block the last output.
func TestCloseAnswers(t *testing.T) {
	t.Parallel()
	w := serve(t, 0)
	conn, _ := w.dial(t)
	open := func() (ssh.Channel, error) {
		ch, requests, err := conn.OpenChannel("session", nil)
		if err == nil {
			go ssh.DiscardRequests(requests)
		}
		return ch, err
	}
	stubborn, err := open()
	if err != nil {
		t.Fatal(err)
	}
	command := struct{ Line string }{"trap '' HUP; echo ready; sleep 30"}
	if _, err := stubborn.SendRequest("exec", true, ssh.Marshal(command)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stubborn, make([]byte, len("ready"))); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { w.server.Close(time.Minute); close(closed) }()
	for refused := 0; refused < 50; {
		switch _, err := open(); {
		case err == nil: // before Close
		case strings.Contains(err.Error(), "the session ends"):
			refused++
		default:
			t.Fatal(err)
		}
	}
	conn.Close()
	<-closed
}
