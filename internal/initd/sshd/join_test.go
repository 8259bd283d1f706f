package sshd

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// Whatever the sizes of writes, all bytes arrive in order, and none waits for a later write.
func TestJoiner(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	j := &joiner{conn: here}
	all := bytes.Repeat([]byte("abcdefg"), 10000)
	for _, sizes := range [][]int{{halfPacket}, {halfPacket, 20}, {halfPacket, halfPacket, halfPacket}, {3, halfPacket, 28000, 16}, {halfPacket - 1, halfPacket + 1}} {
		total := 0
		for _, n := range sizes {
			total += n
		}
		got := make([]byte, total)
		read := make(chan error, 1)
		go func() {
			_, err := io.ReadFull(there, got)
			read <- err
		}()
		sent := 0
		for _, n := range sizes {
			if m, err := j.Write(all[sent : sent+n]); m != n || err != nil {
				t.Fatalf("%v: %d of %d written, %v", sizes, m, n, err)
			}
			sent += n
		}
		select {
		case err := <-read:
			if err != nil || !bytes.Equal(got, all[:total]) {
				t.Errorf("%v: other bytes arrive, %v", sizes, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%v: the end does not arrive", sizes)
		}
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Write([]byte("x")); err == nil {
		t.Error("a write to a closed connection succeeds")
	}
}
