package sshd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// SocketTask is the task of this program that ServeSocket does.
const SocketTask = "socket"

// What ServeSocket does with a path.
const (
	dialSocket   = "dial"
	listenSocket = "listen"
	removeSocket = "remove"
)

// onlyUser is the umask for a socket that is created.
const onlyUser = 0o177

// backlog is how many clients may wait for a socket.
const backlog = 128

// ServeSocket connects to a Unix socket, listens on one, or removes one on which no process listens, as the user of this
// process: the kernel decides by the user's rights, and the other side sees the user. The server gets the descriptor
// through the standard input.
func ServeSocket(what, path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	at := &unix.SockaddrUnix{Name: path}
	switch what {
	case dialSocket:
		err = unix.Connect(fd, at)
	case listenSocket:
		err = listenAt(fd, at)
	case removeSocket:
		if err = unix.Connect(fd, at); errors.Is(err, unix.ECONNREFUSED) && isSocket(path) {
			err = os.Remove(path)
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return unix.Sendmsg(int(os.Stdin.Fd()), []byte{0}, unix.UnixRights(fd), nil, 0)
}

// listenAt replaces a socket that is there: with StreamLocalBindUnlink, a server of OpenSSH does so too.
func listenAt(fd int, at *unix.SockaddrUnix) error {
	if isSocket(at.Name) {
		if err := os.Remove(at.Name); err != nil {
			return err
		}
	}
	unix.Umask(onlyUser)
	if err := unix.Bind(fd, at); err != nil {
		return err
	}
	return unix.Listen(fd, backlog)
}

// isSocket reports whether a path is a socket's. A connection to a file is refused, too.
func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSocket != 0
}

// socket runs ServeSocket as the session's user, and returns what it opened.
func (s *Server) socket(what, path string) (*os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer shut(ours)
	var said bytes.Buffer
	cmd := s.Launcher.Self(nil, SocketTask, what, path)
	cmd.Stdin, cmd.Stderr = theirs, &said
	if err = cmd.Start(); err == nil {
		late := time.AfterFunc(dialPatience, func() { _ = cmd.Process.Kill() }) // connect waits where too many wait already
		err = cmd.Wait()
		late.Stop()
	}
	shut(theirs)
	if err != nil {
		return nil, errors.New(cmp.Or(strings.TrimSpace(said.String()), err.Error()))
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return nil, err // nothing was opened
	}
	opened, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(opened[0]), path), nil
}

// socketAddress is the payload that opens a channel to a Unix socket.
type socketAddress struct{ Path, Reserved string }

// dialSocket connects with the Unix socket of a channel of ssh -L.
func (s *Server) dialSocket(offer ssh.NewChannel) (net.Conn, error) {
	var to struct {
		Path, Reserved string
		Port           uint32
	}
	if err := ssh.Unmarshal(offer.ExtraData(), &to); err != nil {
		return nil, err
	}
	file, err := s.socket(dialSocket, to.Path)
	if err != nil {
		return nil, err
	}
	defer shut(file)
	return net.FileConn(file)
}

// socketListener is a Unix socket of ssh -R, whose file is removed with it.
type socketListener struct {
	net.Listener
	server *Server
	path   string
}

func (l socketListener) Close() error {
	err := l.Listener.Close()
	_, _ = l.server.socket(removeSocket, l.path) // another process may have replaced it
	return err
}

// listenAt opens a Unix socket of the session's user. It replaces none that it listens on already.
func (f *forwards) listenAt(path string) bool {
	if f.has(socketKey(path)) {
		return false
	}
	file, err := f.server.socket(listenSocket, path)
	if err != nil {
		return false
	}
	l, err := net.FileListener(file)
	shut(file)
	return err == nil && f.add(socketKey(path), socketListener{l, f.server, path}, "forwarded-streamlocal@openssh.com",
		func(net.Conn) []byte { return ssh.Marshal(socketAddress{Path: path}) })
}

// socketKey is the key of a path among the listeners, which no address of a port is.
func socketKey(path string) string { return "unix:" + path }
