package sshd

import (
	"net"
	"sync"
	"time"
)

// halfPacket is the size of the buffer from which the ssh library writes. A write of this size is the begin of a larger
// packet whose rest follows at once.
const halfPacket = 4096

// halfTime is how long the begin of a packet may wait for the rest.
const halfTime = time.Millisecond

// joiner writes the parts of a packet with one system call.
type joiner struct {
	conn   net.Conn
	mu     sync.Mutex
	held   []byte      // the begin of a packet
	late   *time.Timer // sends it if nothing follows
	failed error
}

func (j *joiner) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.held) > 0 || len(p) != halfPacket || j.failed != nil {
		return len(p), j.send(p)
	}
	j.held = append(j.held, p...)
	if j.late == nil {
		j.late = time.AfterFunc(halfTime, func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			_ = j.send(nil) // the next write returns the error
		})
	} else {
		j.late.Reset(halfTime)
	}
	return len(p), nil
}

// send writes what is held, and p. The caller has the lock.
func (j *joiner) send(p []byte) error {
	switch {
	case j.failed != nil:
	case len(j.held) == 0:
		_, j.failed = j.conn.Write(p)
	default:
		j.late.Stop()
		parts := net.Buffers{j.held, p}
		_, j.failed = parts.WriteTo(j.conn)
		j.held = j.held[:0]
	}
	return j.failed
}
