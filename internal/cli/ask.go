package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/term"

	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/render"
)

// mayAsk returns an error if the command asks and cannot get an answer. instead names
// another fix besides --auto-approve.
func (inv *invocation) mayAsk(asks bool, instead string) error {
	f, isFile := inv.In.(*os.File)
	switch {
	case !asks:
		return nil
	case !inv.input:
		return errors.New("--input=false asks no questions: add --auto-approve" + instead)
	case inv.json:
		return errors.New("--json asks no questions: add --auto-approve" + instead)
	case inv.file == "-":
		return errors.New("standard input is the configuration, so cosplay cannot ask. Fix: add --auto-approve")
	case !isFile || !term.IsTerminal(int(f.Fd())):
		return errors.New("no terminal to ask on: add --auto-approve" + instead)
	}
	return nil
}

// confirm shows what a command is going to do, and asks unless the user has agreed. With --json only the outcome is shown.
func confirm[V any](inv *invocation, asks bool, question string, show func(io.Writer, render.Style, V), view V) error {
	if err := inv.mayAsk(asks, ""); err != nil {
		return err
	}
	if !inv.json {
		show(inv.Out, inv.style(inv.Out), view)
	}
	return inv.ask(asks, question)
}

// ask asks a question if the command asks, and accepts only the word yes.
func (inv *invocation) ask(asks bool, question string) error {
	if !asks {
		return nil
	}
	fmt.Fprintf(inv.Out, "\n%s Only \"yes\" is accepted: ", question)
	line, err := bufio.NewReader(inv.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !strings.HasSuffix(line, "\n") {
		fmt.Fprintln(inv.Out) // Ctrl-D leaves the cursor behind the question
	}
	if strings.TrimSpace(line) != "yes" {
		fmt.Fprintln(inv.Out, "Left as it is; nothing was touched.")
		return exit(exitError)
	}
	return nil
}

// missingAlone are the variables without a value, if there is no other mistake.
func missingAlone(diags hcl.Diagnostics) []config.Missing {
	var all []config.Missing
	for _, d := range diags {
		missing, is := d.Extra.(config.Missing)
		switch {
		case is:
			all = append(all, missing)
		case d.Severity == hcl.DiagError:
			return nil
		}
	}
	return all
}

// askFor asks for values of variables, as if they were given by --var. Sensitive values
// are not echoed.
func (inv *invocation) askFor(missing []config.Missing) error {
	typed := bufio.NewReader(inv.In)
	for _, v := range missing {
		if v.Description != "" {
			fmt.Fprintf(inv.Err, "%s\n", v.Description)
		}
		fmt.Fprintf(inv.Err, "var.%s: ", v.Name)
		value, err := inv.typedValue(typed, v.Sensitive)
		if err != nil {
			fmt.Fprintln(inv.Err)
			return fmt.Errorf("variable %q was given no value; nothing was touched", v.Name)
		}
		inv.given = append(inv.given, project.Given{Name: v.Name, Value: value})
	}
	return nil
}

func (inv *invocation) typedValue(typed *bufio.Reader, hide bool) (string, error) {
	if f, is := inv.In.(*os.File); is && hide {
		value, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(inv.Err)
		return string(value), err
	}
	line, err := typed.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

// slowAfter is how long work lasts before its user gets to know what it is.
const slowAfter = 800 * time.Millisecond

// slow prints on a terminal what a command does, if that takes long. The caller calls done when it has ended.
func (inv *invocation) slow(what string) (done func()) {
	if f, ok := inv.stderr.(interface{ Fd() uintptr }); !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	printed := make(chan struct{})
	timer := time.AfterFunc(slowAfter, func() {
		defer close(printed)
		fmt.Fprintln(inv.Err, what, "...")
	})
	return sync.OnceFunc(func() {
		if !timer.Stop() {
			<-printed
		}
	})
}
