package sshd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/pkg/sftp"
)

// bulk is how many bytes of a large transfer a process handles at once.
const bulk = 256 << 10

// ServeFiles serves sftp on the standard streams, as the user of this process. Relative paths start in the working
// folder.
func ServeFiles() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	// The requests pass through several goroutines. With one processor, none of these steps wakes a thread.
	runtime.GOMAXPROCS(1)
	in, err := pollable(os.Stdin)
	if err != nil {
		return err
	}
	out, err := pollable(os.Stdout)
	if err != nil {
		return err
	}
	stream := &files{in: bufio.NewReaderSize(in, bulk), out: out}
	server, err := sftp.NewServer(stream, sftp.WithServerWorkingDirectory(dir), sftp.WithAllocator())
	if err != nil {
		return err
	}
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return server.Close()
}

// files is the stream of an sftp server. It sends answers once it has no more requests to read, many in one write.
type files struct {
	in *bufio.Reader // one goroutine reads

	mu      sync.Mutex
	out     *os.File
	waiting bool   // for requests
	answers []byte // not sent
	rest    int    // bytes of the last answer that are still to come
	failed  error
}

func (f *files) Read(p []byte) (int, error) {
	if f.in.Buffered() > 0 {
		return f.in.Read(p)
	}
	f.wait(true)
	defer f.wait(false)
	return f.in.Read(p)
}

func (f *files) wait(begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting = begins; begins {
		f.send()
	}
}

// Write takes the begin of an answer with its length, or more of that answer.
func (f *files) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rest == 0 {
		f.rest = lengthField + int(binary.BigEndian.Uint32(p))
	}
	f.rest -= len(p)
	f.answers = append(f.answers, p...)
	if f.rest == 0 && (f.waiting || len(f.answers) >= bulk/2) {
		f.send()
	}
	return len(p), f.failed
}

func (f *files) send() {
	if len(f.answers) > 0 && f.failed == nil {
		_, f.failed = f.out.Write(f.answers)
	}
	f.answers = f.answers[:0]
}

func (f *files) Close() error {
	f.wait(true)
	return f.out.Close()
}
