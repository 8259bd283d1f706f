package agent

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// line is the way to a child that runs.
type line struct {
	io.Writer // requests
	answers   *bufio.Reader

	// close waits until the child has finished its request and ended.
	close func() error
	// kill ends the exchange, and the child if permitted: a child of root ends after its call, or at its deadline.
	kill func()
	// errors is the standard error of a child that has ended.
	errors func() string
}

// spawn starts a program as the child, outside of the terminal's process group: Ctrl-C is
// for the parent, which then waits until the child has finished its step.
func spawn(command []string, attr *syscall.SysProcAttr) (*line, error) {
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
	if err := process.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	return &line{Writer: in, answers: bufio.NewReaderSize(out, answerBuffer),
		close: func() error {
			_ = in.Close()
			return process.Wait()
		},
		kill: func() {
			_ = process.Process.Kill() // fails for a child of root
			_ = in.Close()
			_ = out.Close()
		},
		errors: func() string {
			go func() {
				_ = process.Wait()
				close(ended)
			}()
			select {
			case <-ended:
				return strings.TrimSpace(said.String())
			case <-time.After(grace):
				return ""
			}
		},
	}, nil
}

// answerBuffer is as large as a pipe, in bytes: the answer of a large host has megabytes.
const answerBuffer = 64 << 10

func dial(socket string) (*line, error) {
	conn, err := net.DialTimeout("unix", socket, grace)
	if err != nil {
		return nil, err
	}
	return &line{Writer: conn, answers: bufio.NewReaderSize(conn, answerBuffer),
		close:  conn.Close,
		kill:   func() { _ = conn.Close() },
		errors: func() string { return "" },
	}, nil
}
