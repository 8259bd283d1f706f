package sshd

import (
	"bytes"
	"container/list"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
)

// Limits on the bytes that a client may send before it has logged in.
const (
	visitorBytes  = 128 << 10 // an agent with 20 large keys offers 30 KiB
	visitorPacket = 16 << 10  // one packet; those of OpenSSH have up to 3 KiB, with a large RSA key
	greetingBytes = 255       // RFC 4253, section 4.2
)

// Of a packet in the clear: its length without the field for it, the length of its padding, its type.
const (
	packetHead  = 6
	lengthField = 4
	typeAt      = 5
	newKeys     = 21 // the last packet in the clear, RFC 4253
)

var (
	errTooMuch     = errors.New("more bytes than a login takes")
	errNotSSH      = errors.New("no ssh client")
	errLargePacket = errors.New("a packet larger than any of a login")
	greetingStart  = []byte("SSH-")
)

// visitor is the connection of a client that may not have logged in yet. It inspects the data that it reads, to
// report the client's progress to the gate and to refuse data that would take much memory. Only one goroutine reads.
type visitor struct {
	net.Conn
	gate    *gate
	stage   stage         // of the gate
	place   *list.Element // of the gate; nil when closed or logged in
	trusted atomic.Bool

	left      int    // bytes that it may still send
	greeting  int    // bytes of the greeting so far, -1 once it is complete
	head      []byte // begin of the packet that is being read, up to packetHead
	rest      int    // bytes of that packet that are still to come
	encrypted bool   // later packets are encrypted
}

// Read fails if the library has reserved memory for a large packet: only the library knows
// the length of an encrypted packet.
func (v *visitor) Read(p []byte) (int, error) {
	if v.trusted.Load() {
		return v.Conn.Read(p)
	}
	if len(p) > visitorPacket {
		return 0, errLargePacket
	}
	n, err := v.Conn.Read(p)
	if v.left -= n; v.left < 0 {
		return 0, errTooMuch
	}
	if bad := v.watch(p[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

func (v *visitor) watch(data []byte) error {
	for len(data) > 0 && !v.encrypted {
		var err error
		if v.greeting >= 0 {
			data, err = v.greet(data)
		} else {
			data, err = v.packet(data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// greet takes the part of the data that belongs to the greeting.
func (v *visitor) greet(data []byte) (more []byte, err error) {
	line, more, complete := bytes.Cut(data, []byte("\n"))
	for i, c := range line[:min(len(line), max(0, len(greetingStart)-v.greeting))] {
		if c != greetingStart[v.greeting+i] {
			return nil, errNotSSH
		}
	}
	v.greeting += len(line)
	switch {
	case v.greeting > greetingBytes, complete && v.greeting < len(greetingStart):
		return nil, errNotSSH
	case complete:
		v.greeting = -1
		v.gate.promote(v, greeted)
	}
	return more, nil
}

// packet takes the part of the data that belongs to one packet in the clear.
func (v *visitor) packet(data []byte) (more []byte, err error) {
	if v.rest == 0 {
		n := min(len(data), packetHead-len(v.head))
		v.head, data = append(v.head, data[:n]...), data[n:]
		if len(v.head) < packetHead {
			return data, nil
		}
		length := binary.BigEndian.Uint32(v.head)
		if length <= packetHead-lengthField || length > visitorPacket {
			return nil, errLargePacket
		}
		v.rest = lengthField + int(length) - packetHead
	}
	n := min(len(data), v.rest)
	v.rest -= n
	if v.rest == 0 {
		if v.encrypted = v.head[typeAt] == newKeys; v.encrypted {
			v.gate.promote(v, keyed)
		}
		v.head = v.head[:0]
	}
	return data[n:], nil
}
