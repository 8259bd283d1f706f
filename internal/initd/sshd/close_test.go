package sshd_test

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
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

// TestCloseStubborn: a program that ignores SIGHUP loses its client after the wait.
func TestCloseStubborn(t *testing.T) {
	t.Parallel()
	w := serve(t, 0)
	cmd, tty, screen := w.begin(t, []string{"-tt"}, "trap '' HUP; tty; sleep 600")
	if err := os.WriteFile(tty, []byte("farewell\n"), 0); err != nil {
		t.Fatal(err)
	}
	w.server.Close(3 * time.Second)
	ended(t, cmd, screen, "farewell\r\n", 255)
}
