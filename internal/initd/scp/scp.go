// Package scp is the server's half of scp's own protocol, which scp used before OpenSSH 9 and uses with -O. It serves
// images that have no scp, with the rights of the process.
package scp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// bulk is how many bytes of a file are read at once.
const bulk = 256 << 10

// The first byte of a message that is no file.
const (
	accepted = 0
	failed   = 1 // followed by a line for the user
	fatal    = 2
)

// options are those that scp gives to the scp of the other machine.
type options struct {
	sink, source bool // where files go to, or come from
	recursive    bool
	preserve     bool // times and modes
	folder       bool // the path of a sink must be a folder
	paths        []string
}

func parse(args []string) (o options, err error) {
	letters := map[rune]*bool{'t': &o.sink, 'f': &o.source, 'r': &o.recursive, 'p': &o.preserve, 'd': &o.folder,
		'v': new(bool), 'q': new(bool)}
	for i, arg := range args {
		if o.paths = args[i:]; arg == "--" {
			o.paths = args[i+1:]
			break
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			break
		}
		for _, letter := range arg[1:] {
			option := letters[letter]
			if option == nil {
				return o, fmt.Errorf("scp: cosplay's scp has no option -%c; install scp in the image (openssh-client)", letter)
			}
			*option = true
		}
		o.paths = nil
	}
	if o.sink == o.source || len(o.paths) == 0 || o.sink && len(o.paths) > 1 {
		return o, errors.New("scp: it serves the scp of another machine only: scp -f PATH... or scp -t PATH")
	}
	return o, nil
}

// Serve serves one scp on two streams, and returns the exit code. The client prints the errors of single files.
func Serve(args []string, in io.Reader, out, errs io.Writer) int {
	o, err := parse(args)
	p := &peer{options: o, in: bufio.NewReaderSize(in, bulk), out: out}
	switch {
	case err != nil:
	case o.sink:
		p.mask = syscall.Umask(0)
		if !o.preserve {
			syscall.Umask(p.mask)
		}
		err = p.receiveAll()
	default:
		err = p.sendAll()
	}
	if err != nil {
		fmt.Fprintln(errs, err)
	}
	if err != nil || p.failed {
		return 1
	}
	return 0
}

// peer is the client.
type peer struct {
	options
	in     *bufio.Reader
	out    io.Writer
	mask   int
	failed bool // a file was not copied as it should be
}

func (p *peer) accept() error {
	_, err := p.out.Write([]byte{accepted})
	return err
}

// refuse reports an error to the client, which prints it and goes on with the next file.
func (p *peer) refuse(reason error) error {
	p.failed = true
	_, err := fmt.Fprintf(p.out, "%cscp: %s\n", failed, strings.ReplaceAll(words(reason), "\n", "?"))
	return err
}

// words are an error as scp has it: the path first.
func words(reason error) string {
	if at, is := errors.AsType[*fs.PathError](reason); is {
		return at.Path + ": " + at.Err.Error()
	}
	return reason.Error()
}

// answer reads whether the client accepts what was sent last. An error ends the transfer.
func (p *peer) answer() (bool, error) {
	kind, err := p.in.ReadByte()
	if err != nil || kind == accepted {
		return err == nil, err
	}
	text, err := p.line()
	if err == nil && kind != failed {
		err = fmt.Errorf("scp: the client ended the transfer: %s", text)
	}
	p.failed = true
	return false, err
}

// line reads the rest of a line, without its end.
func (p *peer) line() (string, error) {
	text, err := p.in.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return string(text[:len(text)-1]), nil
}

// tell sends a line, and reads whether the client accepts it.
func (p *peer) tell(format string, args ...any) (bool, error) {
	if _, err := fmt.Fprintf(p.out, format, args...); err != nil {
		return false, err
	}
	return p.answer()
}

func notFolder(path string) error { return &os.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR} }
