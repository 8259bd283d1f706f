package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/term"

	"cosplay/internal/config"
	"cosplay/internal/project"
)

// mayAsk refuses early what could only hang or surprise. instead is what one can
// do besides --auto-approve, with the words in front that lead to it.
func (inv *invocation) mayAsk(instead string) error {
	if inv.json {
		return errors.New("--json asks no questions: add --auto-approve" + instead)
	}
	if inv.file == "-" {
		return errors.New("standard input is the configuration, so cosplay cannot ask. Fix: add --auto-approve")
	}
	if f, ok := inv.In.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return errors.New("no terminal to ask on: add --auto-approve" + instead)
	}
	return nil
}

// ask wants the word yes.
func (inv *invocation) ask(question string) error {
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

// missingAlone are the variables without a value, where nothing else is wrong.
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

// askFor asks for values of variables, as if they were given by --var. What is
// sensitive is not echoed.
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
