package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"cosplay/internal/durable"
	"cosplay/internal/render"
)

// mayWriteHTML refuses a file of the user that is no HTML file, before the hosts are read. "" is no file.
func (inv *invocation) mayWriteHTML(file string) error {
	if file == "" {
		return nil
	}
	if inv.json {
		return errors.New("--html and --json are two forms of the same; leave one of them out")
	}
	if file == "-" {
		return nil
	}
	to, err := durable.Destination(file)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	old, err := durable.ReadFile(to)
	switch start := strings.ToLower(string(bytes.TrimSpace(old[:min(len(old), 64)]))); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--html: %w", err)
	case start != "" && !strings.HasPrefix(start, "<!doctype html"):
		return fmt.Errorf("%s exists and is not an HTML file, so it stays as it is. Fix: name another file with --html", file)
	}
	return nil
}

// printStatus prints a status, or writes it to a file as HTML.
func (inv *invocation) printStatus(view render.Page, file string) error {
	if file == "" {
		return inv.print(view)
	}
	about := render.About{Version: Version}
	if _, machine := view.(render.MachineView); !machine && len(inv.projects) > 0 {
		about.Project = inv.projects[0].Name()
	}
	if file == "-" {
		return render.HTML(inv.Out, inv.style(inv.Out), about, view)
	}
	var content bytes.Buffer
	if err := render.HTML(&content, inv.style(inv.Out), about, view); err != nil {
		return err
	}
	if err := durable.WriteOutput(file, content.Bytes()); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	fmt.Fprintf(inv.Out, "Wrote %s.\n", file)
	return nil
}
