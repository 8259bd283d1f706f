package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"cosplay/driver"
	"cosplay/internal/pattern"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// Far is how a client reaches the agent of another machine. That one finds its library and its ledger, and starts root's
// agent if it needs one.
type Far struct {
	Command []string // runs another command over there: ssh with its options and the destination
	Shown   string   // what a person types for it: "ssh ada@gpu1"
	For     string   // of which host, for cosplay over there: letters and digits

	// Who the client is; set once the machine has said who its account is.
	Machine, State string // the ID of this machine and the path of the project's state; "" in tests
	Here           resource.Holder
	There          int // uid of the account
}

// elsewhere is the machine of projects that another machine lists.
const elsewhere = "another"

// known replaces, in pages of the other machine, its account by the user of the client, who has that account. The state of
// every other project is on another machine, whatever the page says: this one opens no path that another machine names.
func (f *Far) known(pages []resource.Page) []resource.Page {
	for _, page := range pages {
		for i := range page.Holders {
			h := &page.Holders[i]
			if f.State != "" && (h.Machine != f.Machine || h.State != f.State) {
				h.Machine = elsewhere
			}
			if h.UID != nil && *h.UID == f.There && f.Here.UID != nil {
				h.UID, h.User = f.Here.UID, f.Here.User
			}
		}
	}
	return pages
}

// cosplay is the command over there.
const cosplay = "cosplay"

// Cosplay is the command that runs cosplay over there.
func (f Far) Cosplay(command []string, more ...string) []string {
	return slices.Concat(command, []string{cosplay, "agent", "--for", f.For}, more)
}

// line starts a child over there.
func (f Far) line(more ...string) (*line, error) {
	return spawn(f.Cosplay(f.Command, more...), &syscall.SysProcAttr{Setpgid: true})
}

// FarError is the error of a machine that cannot be reached, or whose cosplay cannot be used.
type FarError struct {
	prose.Advice
	Ours bool // it is cosplay's over there
}

// Unwrap returns the advice, so that prose.AdviceOf finds it.
func (e *FarError) Unwrap() error { return e.Advice }

// failed is the error of a child that did not begin: in the words of ssh, or of the shell over there.
func (f Far) failed(said string) error {
	said = terminal.Lines(said)
	a, ours := prose.Advice{What: said, Fix: fmt.Sprintf("this must work, without a question: %s true", f.Shown)}, false
	_, error, is := strings.Cut("\n"+said, "\nError: ") // a shell may have complained before
	switch {
	case is && strings.Contains(error, "unknown flag"):
		return f.OtherVersion("", "an earlier one")
	case !is && absent().MatchString(said):
		a = prose.Advice{What: "there is no cosplay: " + said, Fix: f.install()}
	case is:
		what, fix, _ := strings.Cut(unwrapped(error), "Fix: ")
		a, ours = prose.Advice{What: strings.TrimSpace(what), Fix: fix}, true
	}
	return &FarError{a, ours}
}

// absent is what shells say where there is no cosplay.
var absent = pattern.Of(`cosplay.*not found|not found.*cosplay`)

// gone is the error of a connection that ended, or whose machine does not answer.
func (f Far) gone(how string) error {
	return &FarError{Advice: prose.Advice{What: fmt.Sprintf("the connection by %s %s", f.Shown, how), Fix: "run the command again: it reads what the machine has, and continues"}}
}

// OtherVersion is the error of a machine whose cosplay is not that of this one. own is "" where it is not known.
func (f Far) OtherVersion(own, its string) error {
	what := "its cosplay is " + terminal.Safe(its)
	if own != "" {
		what += ", and this one is " + own
	}
	return &FarError{Advice: prose.Advice{What: what + ". Nothing was changed", Fix: f.install()}}
}

// unwrapped is the text of an error without the line breaks of its output. Lines to paste have a deeper indentation.
func unwrapped(said string) string {
	text, between := "", ""
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "    ") {
			text += "\n    " + strings.TrimSpace(line)
			between = "\n  "
		} else {
			text += between + strings.TrimSpace(line)
			between = " "
		}
	}
	return text
}

func (f Far) install() string {
	if !driver.Here { // the machine cannot run this binary
		return "install the same version of cosplay there, from its archive for Linux or by make install: README.md"
	}
	return fmt.Sprintf("install this cosplay there, for a machine of this kind:\n    %s 'cat >cosplay && sudo install -m 0755 cosplay %s' < $(command -v cosplay)", f.Shown, Installed)
}

// Greetings of a shell over there come before the first answer.
const maxGreeting = 64 << 10

// afterGreeting reads the first answer of a child over there.
func (c *child) afterGreeting(said []byte) (response, error) {
	for read := 0; ; read += len(said) {
		answer, err := parseAnswer(said)
		if err == nil && answer.Version != 0 || read > maxGreeting {
			return answer, err
		}
		if said, err = readLine(c.line.answers); err != nil {
			return response{}, err
		}
	}
}

// maxAnswer bounds an answer, in bytes: that of the largest host that is tested has a tenth.
const maxAnswer = 64 << 20

func readLine(from *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := from.ReadSlice('\n')
		whole = append(whole, part...)
		switch {
		case err == nil:
			return whole, nil
		case len(whole) > maxAnswer:
			return nil, fmt.Errorf("an answer without an end: %d bytes are too many", maxAnswer)
		case !errors.Is(err, bufio.ErrBufferFull):
			return whole, err
		}
	}
}

// Relay passes requests of a client on another machine to the agent of root on this one, until they end.
func Relay(in io.Reader, out io.Writer, o Options) error {
	line, err := o.privilegedLine()
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(line, in)
		_ = line.close()
	}()
	_, err = io.Copy(out, line.answers)
	said := line.errors()
	if why, refused := strings.CutPrefix(said, "sudo: "); refused {
		return o.refused(why)
	}
	if said != "" {
		_, _ = fmt.Fprintln(os.Stderr, said)
	}
	return err
}
