package sshd

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// dialPatience is how long a forwarded connection may take to be made.
const dialPatience = 15 * time.Second

// channelAddress is the payload that opens a forwarded channel.
type channelAddress struct {
	Host       string
	Port       uint32
	OriginHost string
	OriginPort uint32
}

// dialAddress connects with the address of a channel of ssh -L or -D.
func dialAddress(offer ssh.NewChannel) (net.Conn, error) {
	var to channelAddress
	if err := ssh.Unmarshal(offer.ExtraData(), &to); err != nil {
		return nil, err
	}
	return net.DialTimeout("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))), dialPatience)
}

// connect joins a channel with what it asks for.
func connect(offer ssh.NewChannel, dial func(ssh.NewChannel) (net.Conn, error)) {
	out, err := dial(offer)
	if err != nil {
		_ = offer.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	ch, requests, err := offer.Accept()
	if err != nil {
		shut(out)
		return
	}
	join(ch, requests, out)
}

// halfCloser is a connection whose directions can end separately.
type halfCloser interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// join copies bytes in both directions. One direction may end long before the other; when the channel is closed, both
// end. A closed connection is not an error.
func join(ch ssh.Channel, requests <-chan *ssh.Request, c net.Conn) {
	defer shut(ch)
	defer shut(c)
	go func() {
		ssh.DiscardRequests(requests) // until the channel is closed
		shut(c)
	}()
	var both sync.WaitGroup
	oneWay := func(to halfCloser, from io.Reader) {
		_, _ = io.Copy(to, from)
		_ = to.CloseWrite()
	}
	both.Go(func() { oneWay(ch, c) })
	both.Go(func() { oneWay(c.(halfCloser), ch) })
	both.Wait()
}

// relay accepts connections until the listener is closed, and joins each with a channel that it opens at the client.
func relay(l net.Listener, client ssh.Conn, kind string, payload func(net.Conn) []byte) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			ch, requests, err := client.OpenChannel(kind, payload(c))
			if err != nil {
				shut(c)
				return
			}
			join(ch, requests, c)
		}()
	}
}

// forwards are the ports and Unix sockets of ssh -R of one connection.
type forwards struct {
	server    *Server
	conn      *ssh.ServerConn
	mu        sync.Mutex
	closed    bool
	listeners map[string]net.Listener // by the address that the client named, with the port that was chosen
}

type bindAddress struct {
	Host string
	Port uint32
}

func (a bindAddress) key() string { return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port))) }

// answer serves a request about the connection as a whole.
func (f *forwards) answer(r *ssh.Request) {
	var address bindAddress
	var at struct{ Path string }
	var ok bool
	var answer []byte
	isPort, isSocket := ssh.Unmarshal(r.Payload, &address) == nil, ssh.Unmarshal(r.Payload, &at) == nil
	switch {
	case isPort && r.Type == "tcpip-forward":
		ok, answer = f.listen(address)
	case isPort && r.Type == "cancel-tcpip-forward":
		ok = f.cancel(address.key())
	case isSocket && r.Type == "streamlocal-forward@openssh.com":
		ok = f.listenAt(at.Path)
	case isSocket && r.Type == "cancel-streamlocal-forward@openssh.com":
		ok = f.cancel(socketKey(at.Path))
	}
	if r.WantReply {
		_ = r.Reply(ok, answer)
	}
}

// listen opens a port on the loopback interface, whatever address the client requested, because forwarded ports are
// for the session only. Port 0 chooses any.
func (f *forwards) listen(a bindAddress) (ok bool, answer []byte) {
	l, err := net.Listen("tcp", net.JoinHostPort("localhost", strconv.Itoa(int(a.Port))))
	if err != nil {
		return false, nil
	}
	if a.Port == 0 {
		a.Port = uint32(l.Addr().(*net.TCPAddr).Port)
		answer = ssh.Marshal(struct{ Port uint32 }{a.Port})
	}
	return f.add(a.key(), l, "forwarded-tcpip", func(c net.Conn) []byte {
		from := c.RemoteAddr().(*net.TCPAddr)
		return ssh.Marshal(channelAddress{a.Host, a.Port, from.IP.String(), uint32(from.Port)})
	}), answer
}

// add relays the connections of a listener to the client until it is canceled.
func (f *forwards) add(key string, l net.Listener, kind string, payload func(net.Conn) []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.listeners[key] != nil {
		shut(l)
		return false
	}
	f.listeners[key] = l
	go relay(l, f.conn, kind, payload)
	return true
}

func (f *forwards) has(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listeners[key] != nil
}

func (f *forwards) cancel(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.listeners[key]
	if ok {
		shut(l)
		delete(f.listeners, key)
	}
	return ok
}

func (f *forwards) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, l := range f.listeners {
		shut(l)
	}
}

// openAgent creates a socket that only the session's user can reach, and forwards it to the client's ssh agent.
func (s *session) openAgent() bool {
	if s.agent != nil || s.started {
		return false
	}
	dir, err := os.MkdirTemp("", "cosplay-agent-")
	if err != nil {
		return false
	}
	path := filepath.Join(dir, "agent")
	if s.agent, err = net.Listen("unix", path); err != nil {
		_ = os.RemoveAll(dir)
		s.agent = nil
		return false
	}
	account := s.server.Launcher.Account
	_ = os.Chown(path, int(account.UID), int(account.GID)) // fails if the process runs as the user, who then already owns it
	_ = os.Chown(dir, int(account.UID), int(account.GID))
	go relay(s.agent, s.conn, "auth-agent@openssh.com", func(net.Conn) []byte { return nil })
	return true
}

func (s *session) closeAgent() {
	if s.agent != nil {
		shut(s.agent)
		_ = os.RemoveAll(filepath.Dir(s.agent.Addr().String()))
	}
}
