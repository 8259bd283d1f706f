package scp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// sendAll sends the files that the client asked for.
func (p *peer) sendAll() error {
	if ok, err := p.answer(); !ok {
		return err
	}
	for _, path := range p.paths {
		if err := p.send(path); err != nil {
			return err
		}
	}
	return nil
}

// send sends one file, or a folder with all that is in it. Links are followed, as scp does.
func (p *peer) send(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer would block
	if err != nil {
		return p.refuse(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return p.refuse(err)
	case strings.Contains(filepath.Base(path), "\n"):
		return p.refuse(fmt.Errorf("%s: its name has several lines, which only sftp can copy", path))
	case info.IsDir() && p.recursive:
		return p.sendFolder(f, info)
	case !info.Mode().IsRegular():
		return p.refuse(fmt.Errorf("%s: not a regular file", path))
	}
	if ok, err := p.announce('C', info); !ok {
		return err
	}
	return p.sendContent(f, info.Size())
}

// sendContent sends as many bytes as were announced, also of a file that has become shorter.
func (p *peer) sendContent(f *os.File, size int64) error {
	n, failed := io.CopyN(p.out, f, size)
	if n < size {
		if _, err := io.CopyN(p.out, zeros{}, size-n); err != nil {
			return err
		}
	}
	if errors.Is(failed, io.EOF) {
		failed = fmt.Errorf("%s: it became shorter while it was copied", f.Name())
	}
	var err error
	if failed != nil {
		err = p.refuse(failed)
	} else {
		err = p.accept()
	}
	if err == nil {
		_, err = p.answer()
	}
	return err
}

func (p *peer) sendFolder(f *os.File, info os.FileInfo) error {
	entries, unread := f.ReadDir(-1)
	_ = f.Close() // folders in folders need no more descriptors
	if ok, err := p.announce('D', info); !ok {
		return err
	}
	for _, e := range entries {
		if err := p.send(filepath.Join(f.Name(), e.Name())); err != nil {
			return err
		}
	}
	if unread != nil {
		if err := p.refuse(unread); err != nil {
			return err
		}
	}
	_, err := p.tell("E\n")
	return err
}

// announce sends what comes: with -p the times, then the mode, the size and the name.
func (p *peer) announce(kind byte, info os.FileInfo) (bool, error) {
	status := info.Sys().(*syscall.Stat_t)
	if p.preserve {
		if ok, err := p.tell("T%d 0 %d 0\n", status.Mtim.Sec, status.Atim.Sec); !ok {
			return ok, err
		}
	}
	size := info.Size()
	if info.IsDir() {
		size = 0
	}
	return p.tell("%c%04o %d %s\n", kind, status.Mode&allModes, size, info.Name())
}

// allModes are the bits of a mode that are copied.
const allModes = 0o7777

// zeros reads as any number of zero bytes.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
