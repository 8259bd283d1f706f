package inittest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// HalfOpen is the number of connections of a flood that the server must survive.
const HalfOpen = 1300

// Flood is many clients that do not log in.
type Flood struct {
	// Client uses one connection until it is closed.
	Client func(conn net.Conn)
	pause  time.Duration // before it connects again
	costly bool          // each client takes as much computation as the server
}

// Clients is the number of clients for a test of the server: more of the costly ones would test the machine.
func (f Flood) Clients() int {
	if f.costly {
		return HalfOpen / 5
	}
	return HalfOpen
}

// LoginTime is how long a login may take on a machine that runs other tests. It is below
// the 20 s after which the server closes the connection.
const LoginTime = 15 * time.Second

// Floods are floods by name, each of which stops at another point of a login. public is a
// key that may log in; clients do not have its private half.
func Floods(t *testing.T, user string, public ssh.PublicKey) map[string]Flood {
	const greeting = "SSH-2.0-OpenSSH_9.9\r\n"
	init := kexInit(t)
	return map[string]Flood{
		"silent":          says(""),
		"half a greeting": says("SSH-2.0-"),
		"greeted":         says(greeting),
		"key exchange":    says(greeting + string(init)),
		"large packet":    says(greeting + "\x00\x03\xff\xfc\x04\x14" + string(make([]byte, 30<<10))), // the begin of 256 KiB
		"keys exchanged":  shakes(user, nil),
		"key offered":     shakes(user, public),
	}
}

func says(hello string) Flood {
	return Flood{pause: time.Second, Client: func(conn net.Conn) {
		if _, err := io.WriteString(conn, hello); err == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
	}}
}

// shakes exchanges keys and then waits; with a public key, after the server has accepted it.
func shakes(user string, public ssh.PublicKey) Flood {
	return Flood{pause: 5 * time.Second, costly: true, Client: func(conn net.Conn) {
		w := watched{conn, make(chan struct{}), new(sync.Once)}
		signers := func() ([]ssh.Signer, error) {
			if public == nil {
				<-w.closed
				return nil, net.ErrClosed
			}
			return []ssh.Signer{idle{public, w.closed}}, nil
		}
		_, _, _, _ = ssh.NewClientConn(w, "", &ssh.ClientConfig{
			User: user, Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(signers)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		})
	}}
}

// watched returns when nothing more can be read, which a client that waits for its user does not notice.
type watched struct {
	net.Conn
	closed chan struct{}
	once   *sync.Once
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.once.Do(func() { close(w.closed) })
	}
	return n, err
}

// idle has a public key and never signs.
type idle struct {
	public ssh.PublicKey
	closed chan struct{}
}

func (i idle) PublicKey() ssh.PublicKey { return i.public }

func (i idle) Sign(io.Reader, []byte) (*ssh.Signature, error) {
	<-i.closed
	return nil, net.ErrClosed
}

func shut(conn net.Conn) { _ = conn.Close() }

func kexInit(t *testing.T) []byte {
	t.Helper()
	here, there := net.Pipe()
	defer shut(there)
	go func() {
		_, _, _, _ = ssh.NewClientConn(here, "", &ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	}()
	var line [64]byte
	_, err := there.Read(line[:])
	if err == nil {
		_, err = io.WriteString(there, "SSH-2.0-x\r\n")
	}
	packet := make([]byte, 4)
	if err == nil {
		_, err = io.ReadFull(there, packet)
	}
	rest := make([]byte, binary.BigEndian.Uint32(packet))
	if err == nil {
		_, err = io.ReadFull(there, rest)
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(packet, rest...)
}

// Start lets n clients connect to an address until stop is called. If the server closes its
// connection, a client connects again after a pause.
func (f Flood) Start(t *testing.T, address string, n int) (opened *atomic.Int64, stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	opened = &atomic.Int64{}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				f.once(ctx, address, opened)
				select {
				case <-ctx.Done():
				case <-time.After(f.pause):
				}
			}
		})
	}
	stop = func() { cancel(); all.Wait() }
	t.Cleanup(stop)
	for opened.Load() < int64(n) {
		if ctx.Err() != nil {
			t.Fatal("the flood cannot open its connections")
		}
		time.Sleep(5 * time.Millisecond)
	}
	return opened, stop
}

func (f Flood) once(ctx context.Context, address string, opened *atomic.Int64) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer shut(conn)
	defer context.AfterFunc(ctx, func() { shut(conn) })()
	opened.Add(1)
	f.Client(conn)
}
