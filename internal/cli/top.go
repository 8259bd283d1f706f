package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/fullscreen"
	"cosplay/internal/interrupt"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
)

type topOptions struct {
	once     bool
	interval time.Duration
	sort     string
	filter   string
}

const leastTopInterval = 100 * time.Millisecond

func topCommand(inv *invocation) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show GPUs and sessions as a live table",
		Long: `Show GPUs and sessions as a live table: GPU memory against its limit, with its peak and the last readings, clock against its lock, power, temperature, and the programs of each session.

Keys: up and down, page up and page down select a session, enter shows it alone with its programs; s sorts by the next column, r reverses; / filters; g shows the GPUs alone; q, escape or Ctrl-C quit.

The memory of sessions, GPUs, states and drift are read at each interval, as far as that takes at most about a hundredth of a processor: the memory of very many sessions in turn, the rest less often. Off a terminal it prints one table, as with --once. Utilization is the part of a tenth of a second in which a program ran, as the driver counts it for MIG slices from Hopper on, and for whole GPUs; before Hopper it has no figure for slices. With --json it writes a line for each reading.

In a folder with neither a configuration nor a state: the GPUs of this machine.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), inv) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.once, "once", false, "print one table and end")
	f.DurationVar(&o.interval, "interval", time.Second, "how often to read")
	f.StringVar(&o.sort, "sort", string(render.BySession), "sort by session, memory, peak, utilization, processes or state")
	f.StringVar(&o.filter, "filter", "", "show the sessions of which the name, target, GPU, slice, host or state contains this `text`")
	return cmd
}

func topOrders() []string {
	return prose.Each(render.TopOrders, func(o render.TopOrder) string { return string(o) })
}

func (o topOptions) run(ctx context.Context, inv *invocation) error {
	if o.interval < leastTopInterval {
		return fmt.Errorf("--interval %s is too short; write at least %s", o.interval, leastTopInterval)
	}
	if !slices.Contains(topOrders(), o.sort) {
		return fmt.Errorf("--sort %s: it takes %s", o.sort, strings.Join(topOrders(), ", "))
	}
	read, err := inv.readings()
	if err != nil {
		return err
	}
	view := render.TopView{Order: render.TopOrder(o.sort), Filter: o.filter}
	ctx, release := interrupt.Context(ctx, func() {}, func() { os.Exit(exitInterrupted) })
	defer release()
	done := inv.slow("Reading the hosts")
	first, err := read(ctx)
	done()
	if err != nil {
		return err
	}
	view.Update(first)
	switch {
	case inv.json:
		return inv.topLines(ctx, o, view, read)
	case o.once || !isTerminal(inv.stdout):
		return inv.print(view)
	}
	return inv.topScreen(ctx, o, view, read)
}

// topLines writes a line for each reading until a signal, or until no program reads them.
func (inv *invocation) topLines(ctx context.Context, o topOptions, view render.TopView, read topReader) error {
	for {
		if err := render.JSONLine(inv.Out, view); err != nil || o.once || inv.unread() {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.interval):
		}
		now, err := read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		view.Update(now)
	}
}

// topReader reads again with each call.
type topReader func(context.Context) (render.TopReading, error)

// readings reads the project; in a folder without one, this machine.
func (inv *invocation) readings() (topReader, error) {
	p, err := inv.open(forHosts)
	if none, is := errors.AsType[*project.NoConfigError](err); is && none.Bare {
		return inv.machineReadings()
	}
	if err != nil {
		return nil, err
	}
	feed, last := project.Feed{Project: p.Project}, render.StatusView{}
	return func(ctx context.Context) (render.TopReading, error) {
		r, err := feed.Next(ctx)
		if err != nil {
			return render.TopReading{}, err
		}
		if r.Full {
			last = inv.hostsView(p.Project, r.Prior, r.Live)
			last.Ends, last.Drift = r.Ends, r.Plan.Diff.Drift
		}
		last.Live, last.Used, last.Busy, last.Now = r.Live, r.Used, r.Busy, project.Now()
		return render.TopReading{StatusView: last, Changed: r.Changed, TopTimes: render.TopTimes{At: time.Now(), GPUsAt: r.GPUsAt, AllAt: r.AllAt}}, nil
	}, nil
}

// machineReadings reads this machine, without a project. Between readings it keeps no GPU open.
func (inv *invocation) machineReadings() (topReader, error) {
	p, err := inv.open(forState)
	if err != nil {
		return nil, err
	}
	read := project.AtPace(func(ctx context.Context) (render.TopReading, error) {
		view, err := inv.machineView(ctx, p)
		p.Machine.Rest()
		if err == nil {
			err = view.Unread
		}
		now := time.Now()
		return render.TopReading{StatusView: view.StatusView, TopTimes: render.TopTimes{GPUsAt: now, AllAt: now}}, err
	})
	return func(ctx context.Context) (render.TopReading, error) {
		r, err := read(ctx)
		r.At = time.Now()
		return r, err
	}, nil
}

// guardCommand is the process that restores the terminal of a live table that was killed.
func guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    fullscreen.GuardCommand,
		Short:  "Restore the terminal after another process",
		Hidden: true,
		Args:   noArgs,
		RunE:   func(*cobra.Command, []string) error { return fullscreen.ServeGuard() },
	}
}
