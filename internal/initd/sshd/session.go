package sshd

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"cosplay/internal/initd/environ"
)

// notFound is the exit code for a program that cannot be started, as in shells.
const notFound = 127

// session is one shell, command or subsystem of a connection. Except for finish, only the
// loop over the client's requests uses its fields.
type session struct {
	server   *Server
	conn     *ssh.ServerConn
	ch       ssh.Channel
	client   environ.Vars  // variables that the client sent
	term     *terminal     // nil without one
	agent    net.Listener  // forwards to the client's ssh agent; nil without one
	cmd      *exec.Cmd     // nil before it was started
	ours     []io.Closer   // the server's ends of its pipes
	output   *os.File      // the end for its output; nil with a terminal
	waited   chan struct{} // closed when the process is reaped
	released bool          // the process has got SIGHUP
	started  bool
}

// session serves one channel until the client closes it or disconnects.
func (s *Server) session(conn *ssh.ServerConn, offer ssh.NewChannel) {
	ch, requests, err := offer.Accept()
	if err != nil {
		return
	}
	one := &session{server: s, conn: conn, ch: ch, client: environ.Vars{}, waited: make(chan struct{})}
	for closing := s.closing; ; {
		select {
		case <-closing:
			closing = nil
			one.end()
		case r, more := <-requests:
			if !more {
				one.hangUp()
				return
			}
			one.request(r)
		}
	}
}

func (s *session) request(r *ssh.Request) {
	ok := false
	switch r.Type {
	case "shell", "exec", "subsystem":
		s.start(r)
		return
	case "env":
		ok = s.setenv(r.Payload)
	case "pty-req":
		ok = s.openTerminal(r.Payload)
	case "window-change":
		ok = s.term.resize(r.Payload)
	case "signal":
		ok = s.signal(r.Payload)
	case "eow@openssh.com": // no process reads the output any more, as with | head
		if s.output != nil {
			shut(s.output) // the process gets SIGPIPE with what it writes next
		}
	case "auth-agent-req@openssh.com":
		ok = s.openAgent()
	}
	reply(r, ok)
}

func reply(r *ssh.Request, ok bool) {
	if r.WantReply {
		_ = r.Reply(ok, nil) // if the client has disconnected, the loop over its requests ends
	}
}

// setenv accepts variables of the locale, as far as the image has it, and of cosplay, as with sshd's AcceptEnv; others
// could change what programs do.
func (s *session) setenv(payload []byte) bool {
	var v struct{ Name, Value string }
	if ssh.Unmarshal(payload, &v) != nil || strings.Contains(v.Name+v.Value, "\x00") || strings.Contains(v.Name, "=") {
		return false
	}
	if v.Name != "LANG" && !strings.HasPrefix(v.Name, "LC_") && !strings.HasPrefix(v.Name, "GPU_COSPLAY_") {
		return false
	}
	ok := true
	if !strings.HasPrefix(v.Name, "GPU_COSPLAY_") {
		v.Value, ok = environ.Locale("/", v.Value)
	}
	if ok {
		s.client[v.Name] = v.Value
	}
	return ok
}

// start runs the requested program, once in a session. The reply precedes the first byte of output.
func (s *session) start(r *ssh.Request) {
	var what struct{ Text string }
	bad := r.Type != "shell" && ssh.Unmarshal(r.Payload, &what) != nil
	if bad || s.started || (r.Type == "subsystem" && what.Text != "sftp") {
		reply(r, false)
		return
	}
	s.started = true
	reply(r, true)
	cmd, err := s.command(r.Type, what.Text)
	if err == nil {
		err = s.launch(cmd)
	}
	if err != nil {
		fmt.Fprintf(s.ch.Stderr(), "cosplay: %v\r\n", err)
		s.exit(notFound)
	}
}

func (s *session) command(kind, text string) (*exec.Cmd, error) {
	l := s.server.Launcher
	env := l.Environ(s.client, s.connection())
	switch kind {
	case "subsystem":
		return l.Self(env, "sftp"), nil
	case "exec":
		return l.Line(env, text)
	}
	return l.Login(env)
}

func (s *session) connection() environ.Vars {
	fromHost, fromPort := split(s.conn.RemoteAddr())
	toHost, toPort := split(s.conn.LocalAddr())
	v := environ.Vars{
		"SSH_CONNECTION": fmt.Sprintf("%s %s %s %s", fromHost, fromPort, toHost, toPort),
		"SSH_CLIENT":     fmt.Sprintf("%s %s %s", fromHost, fromPort, toPort),
	}
	if s.term != nil {
		v["TERM"], v["SSH_TTY"] = s.term.name, s.term.tty.Name()
	}
	if s.agent != nil {
		v["SSH_AUTH_SOCK"] = s.agent.Addr().String()
	}
	return v
}

func split(a net.Addr) (host, port string) {
	host, port, _ = net.SplitHostPort(a.String()) // of a connection of the net package
	return host, port
}

func (s *session) launch(cmd *exec.Cmd) error {
	if s.term != nil {
		return s.onTerminal(cmd)
	}
	return s.onPipes(cmd)
}

// onPipes runs a process on three pipes. As with any sshd, the session lasts until the process has ended and no
// process has its output open.
func (s *session) onPipes(cmd *exec.Cmd) error {
	var theirs, ours [3]*os.File // input, output, errors
	defer func() {
		for _, file := range theirs {
			shut(file) // those that were not opened are nil
		}
	}()
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("%w; close some sessions or raise the limit of open files", err)
		}
		if theirs[i], ours[i] = w, r; i == 0 {
			theirs[i], ours[i] = r, w
		}
		s.ours = append(s.ours, ours[i])
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.output = cmd, ours[1]
	go carry(ours[0], s.ch, ours[0]) // the process may end before it has read all
	var output sync.WaitGroup
	output.Go(func() { carry(s.ch, ours[1], ours[1]) })
	output.Go(func() { carry(s.ch.Stderr(), ours[2], ours[2]) })
	go s.finish(&output)
	return nil
}

// carry copies bytes and closes the pipe. The copy may end early, because the other side has closed. Once a stream
// fills the buffer, it is a large transfer, which gets a larger buffer and a larger pipe.
func carry(to io.Writer, from io.Reader, pipe *os.File) {
	defer shut(pipe)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
		if n == len(buffer) && n < bulk {
			buffer = make([]byte, bulk)
			widen(pipe)
		}
	}
}

// widen enlarges a pipe, as far as the system lets its user.
func widen(pipe *os.File) {
	control, err := pipe.SyscallConn()
	if err == nil {
		_ = control.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, bulk) })
	}
}

func (s *session) finish(output *sync.WaitGroup) {
	_ = s.cmd.Wait() // the process state has more detail than the error
	close(s.waited)
	if s.term != nil {
		s.term.drain()
	}
	output.Wait()
	code := notFound
	if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		code = status.ExitStatus()
		if status.Signaled() {
			code = 128 + int(status.Signal())
		}
	}
	s.exit(code)
}

// exit sends the exit code and closes the channel. A signal is sent as 128 + its number, as docker exec does: OpenSSH
// would turn every exit-signal into 255.
func (s *session) exit(code int) {
	_ = s.ch.CloseWrite() // an error means that the client has disconnected
	_, _ = s.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
	shut(s.ch)
}

// signal passes one on to the whole process group.
func (s *session) signal(payload []byte) bool {
	var wanted struct{ Name string }
	if ssh.Unmarshal(payload, &wanted) != nil {
		return false
	}
	number := unix.SignalNum("SIG" + wanted.Name)
	return number != 0 && s.kill(number)
}

// kill signals the process group until its leader is reaped: later another process could have its number.
func (s *session) kill(number syscall.Signal) bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.waited:
		return false
	default:
		return syscall.Kill(-s.cmd.Process.Pid, number) == nil
	}
}

// end sends SIGHUP to the process. Its client still gets the output and the exit code.
func (s *session) end() {
	if s.started = true; s.cmd == nil {
		shut(s.ch)
	}
	s.release()
}

// release sends SIGHUP once, and SIGCONT in case the process is stopped.
func (s *session) release() {
	if !s.released && s.kill(syscall.SIGHUP) {
		s.kill(syscall.SIGCONT)
	}
	s.released = true
}

// hangUp ends the session. A process that ignores SIGHUP, under nohup or tmux, continues.
func (s *session) hangUp() {
	shut(s.ch)
	s.release()
	for _, c := range s.ours {
		shut(c)
	}
	s.term.close()
	s.closeAgent()
}
