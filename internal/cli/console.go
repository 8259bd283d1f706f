package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/render"
)

func (inv *invocation) console() *cobra.Command {
	return &cobra.Command{
		Use:   "console",
		Short: "Work out expressions, with what the project knows",
		Long: `Read expressions, one a line, and show what they come to: with the project's variables and locals, all functions, cosplay.catalog, and session.NAME as output blocks see it. On a terminal it asks; exit or Ctrl-D ends it. From a pipe it stops at the first mistake. A variable may be without a value: what depends on it says so.

  echo 'cosplay.catalog["3090"].vram_mib' | cosplay console

Exit codes: 0 fine; 1 error.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return inv.runConsole(cmd.Context()) },
	}
}

func (inv *invocation) runConsole(ctx context.Context) error {
	if inv.file == "-" {
		return errors.New("standard input is for the expressions, so it cannot be the configuration as well; name a file")
	}
	p, _, _, err := inv.openWith(project.Options{MayBeEmpty: true, HostsOnly: true})
	if err != nil {
		return err
	}
	defer p.Close()
	console, err := p.Console(ctx)
	if err != nil {
		return err
	}
	p.Machine.Rest()
	in, isFile := inv.In.(*os.File)
	if isFile && term.IsTerminal(int(in.Fd())) && !inv.json {
		return inv.converse(in, console)
	}
	lines := bufio.NewScanner(inv.In)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !inv.answer(inv.Out, inv.Err, console, lines.Text()) {
			return exit(exitError)
		}
	}
	return lines.Err()
}

// converse asks on a terminal, with a history; mistakes do not end it.
func (inv *invocation) converse(in *os.File, console *project.Console) error {
	was, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(int(in.Fd()), was) }()
	screen := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, inv.Out}, "> ")
	for {
		line, err := screen.ReadLine()
		if errors.Is(err, io.EOF) || strings.TrimSpace(line) == "exit" {
			return nil
		}
		if err != nil {
			return err
		}
		inv.answer(screen, screen, console, line)
	}
}

// answer works out one line; it fails after telling why.
func (inv *invocation) answer(out, errs io.Writer, console *project.Console, line string) bool {
	if strings.TrimSpace(line) == "" {
		return true
	}
	v, file, diags := console.Eval(line)
	if diags.HasErrors() {
		render.Diagnostics(errs, inv.style(inv.Err), diags, map[string]*hcl.File{config.ConsoleName: file})
		return false
	}
	if inv.json {
		return render.OutputJSON(out, v) == nil
	}
	fmt.Fprintln(out, render.OutputText(v))
	return true
}
