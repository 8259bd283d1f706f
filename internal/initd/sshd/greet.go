package sshd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/cpu"
)

// version is the server's. OpenSSH sends eow@openssh.com only to OpenSSH, when no process reads a program's output any
// more.
const version = "SSH-2.0-OpenSSH_cosplay"

// prompt begins the version of clients that send their first packet without waiting for the server's.
const prompt = "SSH-2.0-OpenSSH_"

// promptTime is how long the server waits for that packet.
const promptTime = time.Second

// Ciphers in the order of OpenSSH. gcm are those that the processor computes, if it can.
var (
	ciphers = []string{
		ssh.CipherChaCha20Poly1305, ssh.CipherAES128GCM, ssh.CipherAES256GCM,
		ssh.CipherAES128CTR, ssh.CipherAES192CTR, ssh.CipherAES256CTR,
	}
	gcm     = []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM}
	fastGCM = cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ || cpu.ARM64.HasAES && cpu.ARM64.HasPMULL
)

// greetedConn is a connection on which both versions, and perhaps the client's first packet, were exchanged already.
type greetedConn struct {
	*visitor
	out     joiner
	early   []byte // read, and not yet passed on; one goroutine reads
	greeted bool   // the version that the library writes was dropped
}

func (c *greetedConn) Read(p []byte) (int, error) {
	if len(c.early) == 0 {
		return c.visitor.Read(p)
	}
	n := copy(p, c.early)
	c.early = c.early[n:]
	return n, nil
}

func (c *greetedConn) Write(p []byte) (int, error) {
	if !c.greeted && string(p) == version+"\r\n" {
		c.greeted = true
		return len(p), nil
	}
	return c.out.Write(p)
}

// greet exchanges the versions and chooses the ciphers to offer. In ssh the client's order counts, and that of OpenSSH
// begins with a cipher that takes several times as long as AES-GCM where the processor has instructions for AES. There,
// clients that know AES-GCM get no other offer. The deadline is that of the login.
func greet(v *visitor, deadline time.Time) (*greetedConn, []string, error) {
	c := &greetedConn{visitor: v, out: joiner{conn: v.Conn}}
	if c.greeted = !fastGCM; c.greeted {
		return c, ciphers, nil
	}
	if _, err := v.Write([]byte(version + "\r\n")); err != nil {
		return nil, nil, err
	}
	var first []byte // packet, and what is before it is the client's version
	for complete := false; !complete; _, first, complete = bytes.Cut(c.early, []byte("\n")) {
		if err := c.ahead(); err != nil {
			return nil, nil, err
		}
	}
	if !bytes.HasPrefix(c.early, []byte(prompt)) {
		return c, ciphers, nil
	}
	if err := v.SetReadDeadline(time.Now().Add(promptTime)); err != nil {
		return nil, nil, err
	}
	before := len(c.early) - len(first)
	packet, whole := content(first)
	for ; !whole; packet, whole = content(c.early[before:]) {
		err := c.ahead()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
	}
	offer := ciphers
	if offersGCM(packet) {
		offer = gcm
	}
	return c, offer, v.SetReadDeadline(deadline)
}

// ahead reads more than was passed on.
func (c *greetedConn) ahead() error {
	c.early = slices.Grow(c.early, 1<<10)
	n, err := c.visitor.Read(c.early[len(c.early):cap(c.early)])
	c.early = c.early[:len(c.early)+n]
	return err
}

// content is that of a packet in the clear, if all of it is there.
func content(data []byte) (payload []byte, whole bool) {
	if len(data) < packetHead {
		return nil, false
	}
	length, padding := int(binary.BigEndian.Uint32(data)), int(data[lengthField])
	if data = data[lengthField:]; len(data) < length {
		return nil, false
	}
	return data[1:max(1, length-padding)], true
}

// offersGCM reports whether a client's first packet offers AES-GCM in both directions.
func offersGCM(packet []byte) bool {
	var offer struct {
		Cookie              [16]byte `sshtype:"20"` // SSH_MSG_KEXINIT
		Exchanges, HostKeys []string
		In, Out             []string
		Rest                []byte `ssh:"rest"`
	}
	has := func(all []string) bool {
		return slices.ContainsFunc(gcm, func(name string) bool { return slices.Contains(all, name) })
	}
	return ssh.Unmarshal(packet, &offer) == nil && has(offer.In) && has(offer.Out)
}
