package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// mayAsk refuses early what could only hang or surprise. instead is what one can
// do besides --auto-approve, with the words in front that lead to it.
func (inv *invocation) mayAsk(instead string) error {
	if inv.json {
		return errors.New("--json asks no questions: add --auto-approve" + instead)
	}
	if inv.file == "-" {
		return errors.New("standard input is the configuration, so nobody can be asked: add --auto-approve")
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
