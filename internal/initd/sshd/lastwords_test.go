package sshd

import (
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestLateReader: output that was written before the process ended reaches the
// client even if the reader gets no processor until all its deadlines have passed.
func TestLateReader(t *testing.T) {
	defer func(before time.Duration) { lastWords = before }(lastWords)
	lastWords = -time.Second // each deadline has passed before the read begins
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer tty.Close() // a process in the background keeps the terminal open
	polled, err := pollable(master)
	if err != nil {
		t.Fatal(err)
	}
	defer polled.Close()
	term := &terminal{master: polled, tty: tty}
	want := strings.Repeat("last words\r\n", 100)
	if _, err := tty.WriteString(strings.ReplaceAll(want, "\r", "")); err != nil {
		t.Fatal(err)
	}
	term.drain()
	var got strings.Builder
	term.copyTo(&got)
	if got.String() != want {
		t.Errorf("%d bytes of %d arrived", got.Len(), len(want))
	}
}
