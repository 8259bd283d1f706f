package agent

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// line is the way to a child that runs.
type line struct {
	io.Writer // requests
	answers   *bufio.Reader

	// close lets the child finish what it does, and waits for it.
	close func() error
	// kill puts an end to the exchange under way, and to the child where we may:
	// one that root runs ends with its call, or at its own deadline.
	kill func()
	// epitaph is what the child said on its standard error, once it is gone.
	epitaph func() string
}

// spawn starts a program as the child. It is taken out of the terminal's process
// group: Ctrl-C is for the parent, which then lets the child finish its step.
func spawn(command []string, attr *syscall.SysProcAttr, hold *os.File) (*line, error) {
	process := exec.Command(command[0], command[1:]...)
	process.SysProcAttr = attr
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	said := &bytes.Buffer{}
	process.Stderr = said
	if hold != nil {
		process.ExtraFiles = []*os.File{hold}
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	return &line{Writer: in, answers: bufio.NewReader(out),
		close: func() error {
			_ = in.Close()
			return process.Wait()
		},
		kill: func() {
			_ = process.Process.Kill() // root's is not ours to kill
			_ = in.Close()
			_ = out.Close()
		},
		epitaph: func() string {
			go func() {
				_ = process.Wait()
				close(gone)
			}()
			select {
			case <-gone:
				return strings.TrimSpace(said.String())
			case <-time.After(grace):
				return ""
			}
		},
	}, nil
}

// dial reaches a child behind a socket.
func dial(socket string) (*line, error) {
	conn, err := net.DialTimeout("unix", socket, grace)
	if err != nil {
		return nil, err
	}
	return &line{Writer: conn, answers: bufio.NewReader(conn),
		close:   conn.Close,
		kill:    func() { _ = conn.Close() },
		epitaph: func() string { return "" },
	}, nil
}
