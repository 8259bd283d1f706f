package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/interrupt"
	"cosplay/internal/render"
)

func statusCommand(inv *invocation) *cobra.Command {
	var (
		file     string
		again    bool
		interval time.Duration
	)
	cmd := inv.looking("status", "Show hosts, GPUs and sessions as they are now",
		func(v render.StatusView) error { return inv.printStatus(v, file) }, func(v render.MachineView) error { return inv.printStatus(v, file) })
	cmd.Long += `

With --html it writes one HTML file to keep or to show to others: it has no scripts and refers to nothing outside, and no sensitive value is in it. It has the addresses of sessions, users and hosts.

With --watch it is shown again whenever a session, a GPU's settings, a slice or drift has changed, but not for readings such as power or memory, until Ctrl-C. cosplay top shows these in a live table.`
	once := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case !again:
			return once(cmd, args)
		case interval < leastInterval:
			return fmt.Errorf("--interval %s is too short; write at least %s", interval, leastInterval)
		}
		return inv.watchStatus(cmd.Context(), interval)
	}
	cmd.PreRunE = func(*cobra.Command, []string) error { return inv.mayWriteHTML(file) }
	f := cmd.Flags()
	f.StringVar(&file, "html", "", "write an HTML `file` instead of text; - is standard output")
	f.BoolVarP(&again, "watch", "w", false, "show it again whenever something has changed")
	f.DurationVar(&interval, "interval", 2*time.Second, "how often to read the hosts, with --watch")
	cmd.MarkFlagsMutuallyExclusive("html", "watch")
	return cmd
}

// watchStatus shows the project again whenever something has changed, until a signal. A host that cannot be read for a
// moment does not end it.
func (inv *invocation) watchStatus(ctx context.Context, interval time.Duration) error {
	p, err := inv.open(forHosts)
	if err != nil {
		return err
	}
	ctx, release := interrupt.Context(ctx, func() {}, func() { os.Exit(exitInterrupted) })
	defer release()
	for shown := ""; ; {
		o, err := p.Peek(ctx)
		p.Machine.Rest()
		switch {
		case ctx.Err() != nil || inv.unread():
			return nil
		case err != nil && shown == "":
			return err
		case err != nil:
			if why := err.Error(); why != shown {
				render.Error(inv.Err, inv.style(inv.Err), err)
				shown = why
			}
		default:
			view := inv.viewOf(p.Project, o)
			if now := render.Unchanging(view); now != shown {
				if err := inv.showAgain(view, shown != ""); err != nil {
					return err
				}
				shown = now
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

func (inv *invocation) showAgain(view render.StatusView, later bool) error {
	if inv.json {
		return render.JSONLine(inv.Out, view)
	}
	if later {
		fmt.Fprintf(inv.Out, "\n%s\n\n", time.Now().Format(time.DateTime))
	}
	return inv.print(view)
}
