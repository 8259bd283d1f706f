package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"cosplay/internal/interrupt"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/render"
	"cosplay/internal/selftest"
	"cosplay/internal/watch"
)

type watchOptions struct {
	repair   []string
	apply    bool
	once     bool
	dryRun   bool
	interval time.Duration
	perHour  int
	listen   string
	socket   string
	alerts   alertOptions
}

const (
	defaultInterval = 30 * time.Second
	leastInterval   = time.Second
	defaultPerHour  = 6
)

func watchCommand(inv *invocation) *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Repair drift again and again, and report what it leaves",
		Long: `Read the hosts at an interval, and after events of the container engine; repair the drift that --repair allows; report everything else, each finding once when it begins and once when it ends.

--repair safe, the default, repairs what ends no program that works: settings of GPUs; slices and containers that are missing; containers that were stopped, paused, renamed or disconnected, or got other limits. --repair none repairs nothing. --repair all also recreates containers that run. Classes of drift, as drift --json has them, can be added: --repair safe,container-replaced. Slices and settings of others are never changed.

A configuration that has changed is read again. It is applied only with --apply; without it, watch reports that the file differs, and repairs what was applied. While a configuration is invalid, the one before it stays.

watch takes the lock of the state only for a repair, and never waits for it. After a repair that failed, it waits longer each time, up to an hour. A signal ends it after the steps that run; after kill -9 the next start completes what was begun.

Exit codes: 0 ended by a signal, or with --once: everything is as applied; 1 error; with --once 2: drift is left.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), inv) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.repair, "repair", []string{watch.RepairSafe}, "what to repair: none, safe, all, or classes of drift")
	f.BoolVar(&o.apply, "apply", false, "also apply a configuration that has changed")
	f.BoolVar(&o.once, "once", false, "repair once and end: for cron")
	f.BoolVar(&o.dryRun, "dry-run", false, "report what would be repaired, and change nothing")
	f.DurationVar(&o.interval, "interval", defaultInterval, "how often to read the hosts")
	o.alerts.flags(f)
	f.StringVar(&o.listen, "listen", "", "serve /healthz, /readyz and /metrics at this address; without a host it is 127.0.0.1")
	f.StringVar(&o.socket, "socket", "", "serve these and /status, which is status --json, on this Unix socket, which you alone may use")
	f.IntVar(&o.perHour, "repairs-per-hour", defaultPerHour, "how often to repair the same session or GPU in an hour, at most")
	return cmd
}

func (o watchOptions) run(ctx context.Context, inv *invocation) error {
	repairs, err := watch.ParseRepairs(o.repair)
	switch {
	case err != nil:
		return err
	case o.interval < leastInterval:
		return fmt.Errorf("--interval %s is too short; write at least %s", o.interval, leastInterval)
	case o.perHour < 1:
		return errors.New("--repairs-per-hour must be at least 1; --repair none repairs nothing")
	}
	announce, err := o.alerts.announcer(inv)
	if err != nil {
		return err
	}
	interrupt.OutliveReaders()
	ctx, release := interrupt.Context(ctx, func() {}, func() { os.Exit(exitInterrupted) })
	defer release()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer announce.finish(cancel)
	var writing sync.Mutex // steps of a repair are reported while others are
	var status statusPage
	loop := watch.Loop{
		Monitor: watch.NewMonitor(o.interval), Version: Version,
		Open: inv.openWatched, Interval: o.interval, Once: o.once, DryRun: o.dryRun,
		Policy: watch.Policy{Repairs: repairs, Apply: o.apply, PerHour: o.perHour},
		Found:  func(o project.Outlook) []public.Drift { return render.Drifts(o.Live, o.Plan.Diff.Drift) },
		Glance: selftest.Glance,
		Announce: func(p *project.Project, o project.Outlook, found []public.Drift) {
			status.show(inv.viewOf(p, o))
			announce.announce(sending, p, o, found)
		},
		Report: func(e public.WatchEvent) {
			writing.Lock()
			defer writing.Unlock()
			if inv.json {
				_ = render.WatchEventJSON(inv.Out, e)
			} else {
				render.WatchEvent(inv.Out, e)
			}
			if inv.unread() { // as a Ctrl-C: a loop whose reports are not read is not wanted
				stop()
			}
		},
	}
	serving, err := serve(o.listen, o.socket, loop.Monitor.Handler(), &status)
	if err != nil {
		return err
	}
	defer serving.close()
	clean, err := loop.Run(ctx)
	if err != nil {
		return err
	}
	return exitIf(o.once && !clean, exitChanges)
}

// openWatched reads the configuration again. Its diagnostics are one error: a loop has no terminal.
func (inv *invocation) openWatched() (*watch.Opened, error) {
	p, files, diags, err := project.Open(inv.options(project.Options{EnginesMayFail: true}))
	if err != nil {
		return nil, err
	}
	if diags.HasErrors() { // nothing is open yet
		wrong := prose.Only(diags, func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagError })
		return nil, errors.Join(prose.Each(wrong, placed)...)
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sum, "%q %q\n", name, files[name].Bytes)
	}
	if err := json.NewEncoder(sum).Encode(p.Intent.Saved()); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &watch.Opened{Project: p, Fingerprint: hex.EncodeToString(sum.Sum(nil))}, nil
}

// placed is an error with its place in the configuration.
func placed(d *hcl.Diagnostic) error {
	if d.Subject == nil {
		return fmt.Errorf("%s: %s", d.Summary, d.Detail)
	}
	return fmt.Errorf("%s line %d: %s: %s", d.Subject.Filename, d.Subject.Start.Line, d.Summary, d.Detail)
}
