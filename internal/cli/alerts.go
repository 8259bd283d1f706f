package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"cosplay/internal/alerts"
	"cosplay/internal/findings"
	"cosplay/internal/machine"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// alertOptions are who gets findings.
type alertOptions struct{ exec, notify, notifyFile string }

func (o *alertOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.exec, "exec", "", "run this line of shell when findings begin or end, with them as JSON on its standard input")
	f.StringVar(&o.notify, "notify", "", "post them as JSON to this URL; other users see it in ps")
	f.StringVar(&o.notifyFile, "notify-file", "", "post them to the URL in this `file`, which ps does not show")
}

// receivers are what the flags name.
func (o alertOptions) receivers(inv *invocation) (all []alerts.Receiver, err error) {
	if o.exec != "" {
		all = append(all, alerts.Command{Line: o.exec, Out: inv.Err})
	}
	if o.notify != "" {
		hook, err := alerts.NewWebhook(o.notify)
		if err != nil {
			return nil, fmt.Errorf("--notify takes a URL: %w", err)
		}
		all = append(all, hook)
	}
	if o.notifyFile != "" {
		address, err := os.ReadFile(o.notifyFile)
		if err != nil {
			return nil, fmt.Errorf("--notify-file: %w. Fix: write the URL into a file that you alone can read (chmod 600)", err)
		}
		hook, err := alerts.NewWebhook(strings.TrimSpace(string(address)))
		if err != nil {
			return nil, fmt.Errorf("--notify-file %s: the file holds a URL alone: %w", o.notifyFile, err)
		}
		all = append(all, hook)
	}
	return all, nil
}

// announcer remembers findings, and sends them.
type announcer struct {
	receivers []alerts.Receiver
	warn      func(error)

	mu      sync.Mutex
	sending bool
	next    func(context.Context) // what begins after the sending
	done    sync.WaitGroup
}

// record remembers what is found. Without a receiver, a user who may not write into the project's folder needs no record.
func (a *announcer) record(p *project.Project, o project.Outlook, found []public.Drift) findings.Change {
	c, err := alertStore(p, o).Update(found)
	if err != nil && len(a.receivers) > 0 {
		a.warn(err)
	}
	return c
}

func alertStore(p *project.Project, o project.Outlook) alerts.Store {
	return alerts.Store{Path: filepath.Join(p.Dir, machine.ScratchDir, alerts.Dir, resource.ShortLineage(o.Prior.Lineage)+".json")}
}

// deliver sends each receiver what it does not know.
func (a *announcer) deliver(ctx context.Context, p *project.Project, o project.Outlook) {
	about := alerts.Project{Name: p.Name(), Dir: p.Dir, Subject: func(d public.Drift) string { return words.Found(d, o.Live) }}
	about.Machine, _ = os.Hostname()
	for _, r := range a.receivers {
		if err := alertStore(p, o).Deliver(ctx, r, about.Message); err != nil && ctx.Err() == nil {
			a.warn(err)
		}
	}
}

// announce remembers what is found now and delivers it in the background. While a delivery is under way, only the
// newest waits.
func (a *announcer) announce(ctx context.Context, p *project.Project, o project.Outlook, found []public.Drift) {
	a.record(p, o, found)
	if len(a.receivers) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = func(ctx context.Context) { a.deliver(ctx, p, o) }
	if a.sending {
		return
	}
	a.sending = true
	a.done.Go(func() {
		for {
			a.mu.Lock()
			deliver := a.next
			a.next, a.sending = nil, deliver != nil
			a.mu.Unlock()
			if deliver == nil {
				return
			}
			deliver(ctx)
		}
	})
}

// lastDelivery is how long the end of a command waits for a delivery under way.
const lastDelivery = 20 * time.Second

// finish waits for the delivery under way, and ends it if it takes too long. What was not sent, the next run sends.
func (a *announcer) finish(cancel context.CancelFunc) {
	late := time.AfterFunc(lastDelivery, cancel)
	a.done.Wait()
	late.Stop()
	cancel()
}

// announcer makes one from flags.
func (o alertOptions) announcer(inv *invocation) (*announcer, error) {
	receivers, err := o.receivers(inv)
	warn := func(err error) { fmt.Fprintln(inv.Err, prose.Stop("Warning: "+err.Error())) }
	return &announcer{receivers: receivers, warn: warn}, err
}

// recall remembers the drift of a plan, and adds since when an earlier run knows it.
func (a *announcer) recall(p *project.Project, o project.Outlook) {
	open := a.record(p, o, render.Drifts(o.Live, o.Plan.Diff.Drift)).Known()
	drift := o.Plan.Diff.Drift
	for i := range drift {
		if !drift[i].ByReboot && len(open) > 0 { // as findings leave it out
			drift[i].Since, open = open[0].Since, open[1:]
		}
	}
}
