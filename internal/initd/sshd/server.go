// Package sshd serves ssh to the session's user only, with public keys only: shells, commands, files, forwarded ports,
// Unix sockets and agents.
//
// It is based on golang.org/x/crypto/ssh. gliderlabs/ssh does not fit: it rewrites line ends of terminals, drops the
// answers of half-closed connections and accepts any variable.
package sshd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"cosplay/internal/initd/launch"
)

// grace is how long a client may take to log in, if Server does not say otherwise.
const grace = 20 * time.Second

// Server is the ssh server of one session.
type Server struct {
	Launcher *launch.Launcher
	Keys     []ssh.PublicKey // keys that may log in
	HostKey  ssh.Signer
	Beat     time.Duration // between two requests that a client must answer; 0 is 30 s
	Grace    time.Duration // until a client must have logged in; 0 is 20 s
	Load     func(n int)   // called when the number of connections changes; nil is nothing

	gate    gate
	mu      sync.Mutex
	closed  bool
	closing chan struct{}      // closed by Close; set by the first track
	open    map[io.Closer]bool // listener and connections; true: its client has logged in
	ended   sync.WaitGroup     // of all these; added to before closed

	connections int
}

// ParseKeys reads lines of authorized_keys. The notes list refused lines by number: ignoring the options of a line
// would grant more than it states.
func ParseKeys(lines []string) (keys []ssh.PublicKey, notes []string) {
	for i, line := range lines {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		switch {
		case err != nil:
			notes = append(notes, fmt.Sprintf("key %d is no public key and is left out (%v); give the line of a .pub file", i+1, err))
		case len(options) > 0:
			notes = append(notes, fmt.Sprintf("key %d has options, which hold nowhere here, and is left out; give the key alone", i+1))
		default:
			keys = append(keys, key)
		}
	}
	return keys, notes
}

// Serve accepts connections until Close, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if !s.track(l) {
		return l.Close()
	}
	defer s.forget(l)
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			go s.welcome(s.gate.admit(conn))
		case errors.Is(err, net.ErrClosed):
			return nil
		default: // no file descriptor is free, or the client has disconnected
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// Close sends SIGHUP to the processes of all sessions, and for at most wait their clients still get the output and the exit
// codes. Then Close closes the connections that remain, and waits for at most wait again.
func (s *Server) Close(wait time.Duration) {
	s.mu.Lock()
	if s.closing != nil && !s.closed {
		close(s.closing)
	}
	s.closed = true
	s.mu.Unlock()
	gone := make(chan struct{})
	go func() { s.ended.Wait(); close(gone) }()
	for _, entered := range []bool{false, true} {
		s.cut(entered)
		select {
		case <-gone:
			return
		case <-time.After(wait):
		}
	}
}

// cut closes the connections whose clients have logged in, or the others and the listener.
func (s *Server) cut(entered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, has := range s.open {
		if has == entered {
			shut(c)
		}
	}
}

func (s *Server) track(c io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.open == nil {
		s.open, s.closing = map[io.Closer]bool{}, make(chan struct{})
	}
	s.open[c] = false
	s.ended.Add(1)
	return true
}

// enter marks a connection whose client has logged in.
func (s *Server) enter(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = true
}

func (s *Server) forget(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	s.ended.Done()
}

func (s *Server) load(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connections += change; s.Load != nil {
		s.Load(s.connections)
	}
}

// shut closes what may be closed already.
func shut(c io.Closer) { _ = c.Close() }

// config is for one connection, with the ciphers to offer. It offers what OpenSSH 10 offers by default, as far as the library has it, and no
// SHA-1: OpenSSH still offers hmac-sha1. Finite field Diffie-Hellman is left out there as well, since a few bytes of
// a client cost the server much computation.
func (s *Server) config(v *visitor, offer []string) *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		Config: ssh.Config{
			KeyExchanges: []string{
				ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519,
				ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384, ssh.KeyExchangeECDHP521,
			},
			Ciphers: offer,
			MACs:    []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM, ssh.HMACSHA256, ssh.HMACSHA512},
		},
		PublicKeyAuthAlgorithms: ssh.SupportedAlgorithms().PublicKeyAuths,
		ServerVersion:           version,
		MaxAuthTries:            20, // an agent offers all its keys
		PublicKeyCallback: func(who ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if who.User() == s.Launcher.Account.Name && s.knows(key) {
				s.gate.promote(v, known)
				return nil, nil
			}
			return nil, errors.New("permission denied")
		},
	}
	config.AddHostKey(s.HostKey)
	return config
}

func (s *Server) knows(key ssh.PublicKey) bool {
	wire := key.Marshal()
	return slices.ContainsFunc(s.Keys, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), wire) })
}

// welcome serves one connection from the handshake to its end.
func (s *Server) welcome(raw *visitor) {
	defer shut(raw)
	defer s.gate.leave(raw)
	if !s.track(raw) {
		return
	}
	defer s.forget(raw)
	s.load(1)
	defer s.load(-1)
	deadline := time.Now().Add(cmp.Or(s.Grace, grace))
	if raw.SetDeadline(deadline) != nil {
		return
	}
	greeted, offer, err := greet(raw, deadline)
	if err != nil {
		return
	}
	conn, channels, requests, err := ssh.NewServerConn(greeted, s.config(raw, offer))
	s.gate.leave(raw)
	if err != nil || raw.SetDeadline(time.Time{}) != nil {
		return
	}
	defer shut(conn)
	s.enter(raw)
	forwards := &forwards{server: s, conn: conn, listeners: map[string]net.Listener{}}
	defer forwards.close()
	gone := make(chan struct{})
	defer close(gone)
	go s.keepAlive(conn, gone)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	closing, ended := s.closing, (chan struct{})(nil)
	for {
		select {
		case <-closing:
			closing, ended = nil, make(chan struct{})
			go func() { sessions.Wait(); close(ended) }()
		case <-ended:
			return
		case r := <-requests:
			if r == nil {
				requests = nil
				continue
			}
			forwards.answer(r)
		case c := <-channels:
			if c == nil {
				return
			}
			if ended != nil {
				_ = c.Reject(ssh.Prohibited, "the session ends") // fails if the client has disconnected
				continue
			}
			for len(requests) > 0 { // a session finds the ports and sockets for which its client asked first
				forwards.answer(<-requests)
			}
			s.serveChannel(conn, c, &sessions)
		}
	}
}

// serveChannel starts what a channel is for. Sessions are waited for when the connection ends.
func (s *Server) serveChannel(conn *ssh.ServerConn, c ssh.NewChannel, sessions *sync.WaitGroup) {
	switch c.ChannelType() {
	case "session":
		sessions.Go(func() { s.session(conn, c) })
	case "direct-tcpip":
		go connect(c, dialAddress)
	case "direct-streamlocal@openssh.com":
		go connect(c, s.dialSocket)
	default:
		_ = c.Reject(ssh.UnknownChannelType, "not served here") // fails if the client has disconnected
	}
}

// keepAlive sends the client a request at every beat, and ends the connection if two more
// beats pass without an answer.
func (s *Server) keepAlive(conn ssh.Conn, gone <-chan struct{}) {
	beat := cmp.Or(s.Beat, 30*time.Second)
	for {
		select {
		case <-gone:
			return
		case <-time.After(beat):
		}
		answer := make(chan error, 1)
		go func() {
			_, _, err := conn.SendRequest("keepalive@openssh.com", true, nil)
			answer <- err
		}()
		select {
		case err := <-answer:
			if err != nil {
				return
			}
		case <-gone:
			return
		case <-time.After(2 * beat):
			shut(conn)
			return
		}
	}
}
