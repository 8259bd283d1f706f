package sshd

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// line is a connection that notes whether it was closed.
type line struct {
	net.Conn
	closed bool
}

func (l *line) Close() error { l.closed = true; return nil }

// admitted makes n clients of a gate come as far as a stage.
func admitted(g *gate, n int, to stage) []*visitor {
	var all []*visitor
	for range n {
		v := g.admit(&line{})
		g.promote(v, to)
		all = append(all, v)
	}
	return all
}

func closed(all []*visitor) (n int) {
	for _, v := range all {
		if v.Conn.(*line).closed {
			n++
		}
	}
	return n
}

func (g *gate) size() (n int) {
	for i := range g.waiting {
		n += g.waiting[i].Len()
	}
	return n
}

func TestGateLimits(t *testing.T) {
	var g gate
	if first := admitted(&g, limit.start, silent); closed(first) > 0 {
		t.Errorf("%d of the first %d are closed", closed(first), limit.start)
	}
	all := admitted(&g, 10*limit.full, silent)
	if g.size() > limit.full {
		t.Errorf("%d clients wait, more than %d", g.size(), limit.full)
	}
	if newest := all[len(all)-limit.full/2:]; closed(newest) > 0 {
		t.Errorf("%d of the newest are closed", closed(newest))
	}
	if early := all[:limit.full]; closed(early) == 0 {
		t.Error("all of the oldest wait")
	}
}

func TestGateLeavesFiles(t *testing.T) {
	for files, want := range map[uint64]startups{
		1 << 20: {1000, 30, 1300}, 2600: {1000, 30, 1300}, 1024: {393, 30, 512}, 2: {0, 30, 1}, 0: {0, 30, 1}, 1<<64 - 1: {1000, 30, 1300},
	} {
		got := startups{1000, 30, 1300}.within(files)
		if got != want {
			t.Errorf("with %d files: %+v, want %+v", files, got, want)
		}
		if got.exceeded(got.start) || !got.exceeded(got.full+1) {
			t.Errorf("with %d files: %+v does not limit", files, got)
		}
	}
}

// Between start and full some are closed and some are not.
func TestGateDropsEarly(t *testing.T) {
	const tries = 2000
	for n, percent := range map[int]int{limit.start: 0, limit.start + 1: limit.rate, (limit.start + limit.full) / 2: (100 + limit.rate) / 2, limit.full + 1: 100} {
		drops := 0
		for range tries {
			if limit.exceeded(n) {
				drops++
			}
		}
		if got := 100 * drops / tries; got < percent-10 || got > percent+10 {
			t.Errorf("of %d clients: closes in %d%% of all cases, want %d%%", n, got, percent)
		}
	}
}

// Clients that crowd a stage push out each other, and none in another stage.
func TestGateCrowd(t *testing.T) {
	for crowd := silent; crowd < stages; crowd++ {
		var g gate
		var honest []*visitor
		for s := silent; s < stages; s++ {
			if s != crowd {
				honest = append(honest, admitted(&g, 20, s)...)
			}
		}
		many := admitted(&g, 5*limit.full, crowd)
		if closed(honest) > 0 {
			t.Errorf("a crowd in stage %d pushes out %d in others", crowd, closed(honest))
		}
		if closed(many) < 4*limit.full-limit.start {
			t.Errorf("of a crowd in stage %d only %d are closed", crowd, closed(many))
		}
	}
}

func TestGateForgets(t *testing.T) {
	var g gate
	for _, v := range admitted(&g, 100, known) {
		g.leave(v)
		g.leave(v)
		g.promote(v, known)
	}
	for _, v := range admitted(&g, 100, keyed) {
		g.promote(v, greeted) // no client returns to an earlier stage
		if v.stage != keyed {
			t.Fatalf("a client is back in stage %d", v.stage)
		}
	}
	if g.size() != 100 {
		t.Errorf("%d clients wait, want 100", g.size())
	}
}

// packet is one in the clear, of a type and with n bytes after it.
func packet(kind byte, n int) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(2+n))
	return string(append(head, 4, kind)) + strings.Repeat("x", n)
}

func TestVisitor(t *testing.T) {
	const hello = "SSH-2.0-x\r\n"
	for _, c := range []struct {
		name, sent string
		piece      int // bytes that come at once
		want       stage
		err        error
	}{
		{"nothing", "", 9, silent, nil},
		{"half a greeting", "SSH-2.0-", 1, silent, nil},
		{"a greeting", hello, 1, greeted, nil},
		{"a greeting without a carriage return", "SSH-2.0-x\n", 9, greeted, nil},
		{"a browser", "GET / HTTP/1.1\r\n", 9, silent, errNotSSH},
		{"an empty line", "\r\n" + hello, 1, silent, errNotSSH},
		{"a short line", "SSH\n", 9, silent, errNotSSH},
		{"an endless greeting", hello[:8] + strings.Repeat("x", 300), 7, silent, errNotSSH},
		{"a key exchange", hello + packet(20, 1500) + packet(30, 40), 1, greeted, nil},
		{"new keys", hello + packet(20, 1500) + packet(30, 40) + packet(newKeys, 10) + "encrypted", 100, keyed, nil},
		{"new keys byte by byte", hello + packet(20, 50) + packet(newKeys, 1) + "encrypted", 1, keyed, nil},
		{"new keys inside of another packet", hello + packet(20, 10) + packet(2, 4)[:6] + packet(newKeys, 10)[:4], 1, greeted, nil},
		{"a large packet", hello + "\x00\x03\xff\xfc\x04\x14", 1, greeted, errLargePacket},
		{"an empty packet", hello + "\x00\x00\x00\x00\x00\x00", 1, greeted, errLargePacket},
		{"too many bytes", hello + packet(20, 50) + packet(newKeys, 1) + strings.Repeat("x", visitorBytes), 4096, keyed, errTooMuch},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g gate
			here, there := net.Pipe()
			v := g.admit(here)
			go func() {
				for rest := c.sent; rest != ""; {
					n := min(c.piece, len(rest))
					if _, err := io.WriteString(there, rest[:n]); err != nil {
						return
					}
					rest = rest[n:]
				}
				there.Close()
			}()
			var err error
			for buffer := make([]byte, 4096); err == nil; {
				_, err = v.Read(buffer)
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			here.Close()
			if !errors.Is(err, c.err) || v.stage != c.want {
				t.Errorf("stage %d, %v; want %d, %v", v.stage, err, c.want, c.err)
			}
		})
	}
}

// The size of an encrypted packet shows only in the memory that the library has
// reserved for it.
func TestVisitorReservesLittle(t *testing.T) {
	var g gate
	here, there := net.Pipe()
	defer there.Close()
	v := g.admit(here)
	if _, err := v.Read(make([]byte, visitorPacket+1)); !errors.Is(err, errLargePacket) {
		t.Errorf("before the login: %v", err)
	}
	g.leave(v)
	go there.Write([]byte("data"))
	if n, err := v.Read(make([]byte, 256<<10)); n != 4 || err != nil {
		t.Errorf("after the login: %d, %v", n, err)
	}
}
