package scp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// receiveAll writes what the client sends.
func (p *peer) receiveAll() error {
	if p.folder && !isFolder(p.paths[0]) {
		return p.refuse(notFolder(p.paths[0]))
	}
	err := p.receive(p.paths[0], false)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// times are those that a file gets; nil without -p.
type times struct{ changed, read time.Time }

// receive takes what the client sends into a path: until the end of the stream, or of the folder that it has begun.
func (p *peer) receive(target string, begun bool) error {
	if err := p.accept(); err != nil {
		return err
	}
	into := isFolder(target)
	var at *times
	for {
		line, err := p.line()
		if err != nil {
			return err
		}
		kind, rest := byte(0), line
		if line != "" {
			kind, rest = line[0], line[1:]
		}
		switch kind {
		case failed: // a file that the client cannot read; it has printed why
			p.failed = true
			continue
		case fatal:
			return fmt.Errorf("scp: the client ended the transfer: %s", rest)
		case 'E':
			if begun {
				return nil
			}
		case 'T':
			if at, err = parseTimes(rest); err == nil {
				if err = p.accept(); err != nil {
					return err
				}
				continue
			}
		case 'C', 'D':
			var one entry
			if one, err = parseEntry(kind, rest); err == nil && (kind == 'C' || p.recursive) {
				one.at, at = at, nil
				if one.path = target; into {
					one.path = filepath.Join(target, one.name)
				}
				if err = p.take(one); err != nil {
					return err
				}
				continue
			}
		}
		_, _ = fmt.Fprintf(p.out, "%cscp: protocol error: unexpected %.40q\n", fatal, line)
		return fmt.Errorf("scp: the client sent the unexpected line %.40q", line)
	}
}

// entry is a file or a folder that the client announces.
type entry struct {
	folder bool
	mode   uint32
	size   int64
	name   string
	path   string // where it goes
	at     *times
}

// parseEntry reads "0644 12 name".
func parseEntry(kind byte, text string) (entry, error) {
	parts := strings.SplitN(text, " ", 3)
	if len(parts) < 3 {
		return entry{}, strconv.ErrSyntax
	}
	mode, bad := strconv.ParseUint(parts[0], 8, 12)
	size, malformed := strconv.ParseInt(parts[1], 10, 64)
	name := parts[2]
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || size < 0 {
		malformed = strconv.ErrSyntax // it could name a file elsewhere
	}
	return entry{folder: kind == 'D', mode: uint32(mode), size: size, name: name}, errors.Join(bad, malformed)
}

// parseTimes reads "SECONDS 0 SECONDS 0".
func parseTimes(text string) (*times, error) {
	var changed, read, part int64
	_, err := fmt.Sscanf(text, "%d %d %d %d", &changed, &part, &read, &part)
	return &times{time.Unix(changed, 0), time.Unix(read, 0)}, err
}

func (p *peer) take(one entry) error {
	if one.folder {
		return p.takeFolder(one)
	}
	return p.takeFile(one)
}

func (p *peer) takeFile(one entry) error {
	_, missing := os.Stat(one.path)
	f, err := os.OpenFile(one.path, os.O_WRONLY|os.O_CREATE, os.FileMode(one.mode&0o777|0o200))
	if err != nil {
		return p.refuse(err)
	}
	defer f.Close()
	if err := p.accept(); err != nil {
		return err
	}
	content := &io.LimitedReader{R: p.in, N: one.size}
	_, unwritten := io.Copy(f, content)
	if _, err := io.Copy(io.Discard, content); err != nil || content.N > 0 {
		return errors.Join(err, fmt.Errorf("scp: the client ended in the middle of %s", one.path))
	}
	if unwritten == nil {
		unwritten = p.finish(f, one, missing != nil)
	}
	if _, err := p.answer(); err != nil { // whether the client could read all of it
		return err
	}
	return p.taken(unwritten)
}

func (p *peer) taken(unfinished error) error {
	if unfinished != nil {
		return p.refuse(unfinished)
	}
	return p.accept()
}

// finish gives a written file its length, mode and times.
func (p *peer) finish(f *os.File, one entry, created bool) error {
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = f.Truncate(one.size)
	}
	if err == nil {
		err = p.adorn(one, created)
	}
	return err
}

// adorn sets the mode of a file or folder that is new, or with -p of any, and its times.
func (p *peer) adorn(one entry, created bool) error {
	var failed error
	if p.preserve {
		failed = syscall.Chmod(one.path, one.mode)
	} else if created {
		failed = syscall.Chmod(one.path, one.mode&^uint32(p.mask))
	}
	if failed != nil {
		return &os.PathError{Op: "chmod", Path: one.path, Err: failed}
	}
	if one.at != nil {
		return os.Chtimes(one.path, one.at.read, one.at.changed)
	}
	return nil
}

func (p *peer) takeFolder(one entry) error {
	created := false
	switch info, err := os.Stat(one.path); {
	case err == nil && !info.IsDir():
		return p.refuse(notFolder(one.path))
	case err != nil:
		created = true
		if err := os.Mkdir(one.path, os.FileMode(one.mode&0o777|0o700)); err != nil {
			return p.refuse(err)
		}
	}
	if err := p.receive(one.path, true); err != nil {
		return err
	}
	return p.taken(p.adorn(one, created))
}
