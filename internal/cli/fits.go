package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"cosplay/catalog"
	"cosplay/driver"
	"cosplay/internal/capacity"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/interrupt"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// fitsFlags are those of fits.
type fitsFlags struct {
	on, need []string
	session  project.Once // what is the same in all runs
	junit    string
	markdown bool
}

func fitsCommand(inv *invocation) *cobra.Command {
	var (
		flags fitsFlags
		env   []string
	)
	cmd := &cobra.Command{
		Use:   "fits [--on GPU,...] [--need GPU] -- COMMAND...",
		Short: "Find the smallest GPU that runs a command",
		Long: `Find the smallest GPU of the catalog on which a command runs, what takes its memory, and how long a step takes at least. It needs neither a configuration nor a GPU.

  cosplay fits -- python3 train.py
  cosplay fits --need 2060 -- python3 train.py        # for CI: exit code 1 if it does not run on an RTX 2060
  cosplay fits --on 3060,4060,3090 -- python3 train.py

The command runs several times: first with the largest memory, which tells its peak, then with the sizes around the peak, at once where the machine has room. So a command that frees memory or catches the error of an allocation is judged by what it does. Use a few training steps, and a command that can run twice at a time.

Without a GPU, PyTorch runs on a simulated host. With --compute shapes, the default, nothing is computed; where the program's code depends on values, cosplay says so and computes on the CPU. On a machine with a GPU, the sessions are slices of it, and --host names one of the configuration's hosts.

Exit codes: 1 if no GPU runs the command, or one that --need names does not; 130 after Ctrl-C.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash != 0 || len(args) == 0 {
				return errors.New("write the command after --: cosplay fits -- python3 train.py")
			}
			if flags.session.Host == "" && !driver.Here {
				return prose.Advice{What: "cosplay fits starts programs on this machine, but " + driver.NotHere,
					Fix: "name a host on another machine (--host), or run it there: ssh USER@MACHINE cosplay fits"}
			}
			if inv.json && flags.markdown {
				return errors.New("--json and --markdown are two forms of the same; leave one of them out")
			}
			if inv.state != "" {
				return errors.New("cosplay fits has its own states, for as long as it runs; leave --state out")
			}
			if computes := []string{"", "shapes", "cpu"}; !slices.Contains(computes, flags.session.Compute) {
				return fmt.Errorf("--compute %s: choose shapes or cpu", flags.session.Compute)
			}
			if flags.junit != "" {
				if err := durable.CanWriteIn(filepath.Dir(flags.junit)); err != nil {
					return fmt.Errorf("--junit: %w", err)
				}
			}
			flags.session.Env = variablesOf(env)
			return flags.run(cmd.Context(), inv, args)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.on, "on", nil, "try these `GPUs` and no others")
	f.StringSliceVar(&flags.need, "need", nil, "exit with code 1 if the command does not run on this `GPU`; repeatable")
	f.StringVar(&flags.session.Compute, "compute", "", "`kind` of computing without a GPU: shapes or cpu (default shapes, and cpu where the program needs values)")
	f.StringVar(&flags.session.Host, "host", "", "use this `host` of the configuration")
	f.StringVar(&flags.session.Image, "image", "", "`image` of the containers, on a host that runs sessions in containers")
	f.IntVarP(&flags.session.GPUs, "gpus", "n", 0, "`number` of GPUs, each a device of the session")
	f.StringArrayVarP(&env, "env", "e", nil, "`NAME=VALUE`, or NAME for the value that it has here; any number of times")
	f.StringVar(&flags.junit, "junit", "", "write the result as JUnit XML to this `file`")
	f.BoolVar(&flags.markdown, "markdown", false, "write Markdown, for a pull request")
	return cmd
}

// finder runs the command on cards until the smallest is known.
type finder struct {
	*invocation
	flags    fitsFlags
	argv     []string
	search   capacity.Search
	attempts map[int]attempt
	signals  interrupt.Signals
	compute  string // of the simulated hosts; "" on hardware
}

func (flags fitsFlags) run(ctx context.Context, inv *invocation, argv []string) error {
	f := &finder{invocation: inv, flags: flags, argv: argv, attempts: map[int]attempt{}, signals: interrupt.Catch()}
	defer f.signals.Release()
	interrupt.OutliveReaders()
	hardware, err := inv.hasGPU(ctx, flags.session.Host)
	if err != nil {
		return err
	}
	if !hardware {
		if f.compute = flags.session.Compute; f.compute == "" {
			f.compute = "shapes"
		}
	} else if flags.session.Compute != "" {
		return errors.New("--compute is for machines without a GPU: here the sessions are slices of the GPU; leave it out")
	}
	needed, err := f.choose()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := f.find(ctx); err != nil {
		return err
	}
	view := f.view(needed, time.Since(began))
	if err := f.print(view); err != nil {
		return err
	}
	return exitIf(!view.Passes(), exitError)
}

// choose chooses the cards to search, and returns those that the command has to run on.
func (f *finder) choose() (needed []resource.Target, err error) {
	all := catalog.Targets()
	if len(f.flags.on) > 0 {
		all = nil
	}
	for _, typed := range f.flags.on {
		t, err := catalog.Target(typed)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	for _, typed := range f.flags.need {
		t, err := catalog.Target(typed)
		if err != nil {
			return nil, err
		}
		needed = append(needed, t)
	}
	if f.compute != "" {
		all = slices.DeleteFunc(all, func(t resource.Target) bool { return simulatedFor(t) == "" })
	}
	for _, t := range needed {
		if !slices.ContainsFunc(all, func(o resource.Target) bool { return o.Key == t.Key }) {
			all = append(all, t)
		}
	}
	f.search.Cards = capacity.Cards(all)
	f.search.First = len(f.search.Cards) - 1
	for i, card := range f.search.Cards {
		if f.compute != "" && card.Has(usual) {
			f.search.First = i
		}
		wanted := len(f.flags.on) > 0 || slices.ContainsFunc(needed, func(t resource.Target) bool { return card.Has(t.Key) })
		if wanted {
			f.search.Wanted = append(f.search.Wanted, i)
		}
	}
	return needed, nil
}

// usual is the simulated host, and the card that is tried first: versions of PyTorch of several years know it.
const usual = "h200"

// simulatedFor is the simulated host on which a card fits; "" if there is none: the usual one, or the smallest with the memory.
func simulatedFor(t resource.Target) string {
	large := prose.Only(catalog.Hosts(), func(h catalog.Host) bool { return h.Model.MemoryMiB >= t.MemoryMiB })
	switch {
	case len(large) == 0:
		return ""
	case slices.ContainsFunc(large, func(h catalog.Host) bool { return h.Key == usual }):
		return usual
	}
	return slices.MinFunc(large, func(a, b catalog.Host) int { return cmp.Compare(a.Model.MemoryMiB, b.Model.MemoryMiB) }).Key
}

// hasGPU reports whether the sessions are on hardware: on a host of the configuration that the user names, or on this machine's GPU.
func (inv *invocation) hasGPU(ctx context.Context, host string) (bool, error) {
	p, err := inv.open(project.Options{MayBeEmpty: true, HostsOnly: true, ReadOnly: true})
	if err != nil || host != "" {
		return true, err
	}
	if slices.ContainsFunc(p.Intent.Hosts, func(h config.Host) bool { return h.Simulate != "" }) {
		return false, nil
	}
	live, err := p.Hardware(ctx)
	return err == nil && slices.ContainsFunc(live.Hosts, func(h resource.Host) bool { return len(h.GPUs) > 0 }), nil
}

// find runs the command until all is decided.
func (f *finder) find(ctx context.Context) error {
	for next := f.search.Next(); len(next) > 0; next = f.search.Next() {
		f.tryAll(ctx, next)
		if f.signals.Pending() {
			return exit(exitInterrupted)
		}
		if f.withValues() {
			continue
		}
		for card, a := range f.attempts {
			f.search.Ended(card, a.Trial)
		}
	}
	return nil
}

// withValues goes on with compute = "cpu" if the program needs values, unless the user chose.
func (f *finder) withValues() bool {
	if f.compute != "shapes" || f.flags.session.Compute != "" {
		return false
	}
	for _, a := range f.attempts {
		why := ""
		for _, p := range a.Report.Programs {
			if p.WithoutValues != "" {
				why = p.WithoutValues + " needs values"
			}
		}
		if why == "" && a.Result == capacity.Failed && len(a.Report.Programs) > 0 {
			why = "The program failed without values"
		}
		if why != "" {
			fmt.Fprintf(f.Err, "%s, so cosplay computes on the CPU (--compute cpu).\n", why)
			f.compute = "cpu"
			f.search = capacity.Search{Cards: f.search.Cards, Wanted: f.search.Wanted, First: f.search.First}
			f.attempts = map[int]attempt{}
			return true
		}
	}
	return false
}

// view is what fits shows.
func (f *finder) view(needed []resource.Target, took time.Duration) render.FitsView {
	view := render.FitsView{Argv: f.argv, Command: terminal.ShellWords(f.argv), Compute: f.compute, Verdicts: f.search.Verdicts(), Needed: needed, Took: took, Runs: len(f.attempts)}
	if card, t, tried := f.search.Reference(); tried {
		view.PeakMiB, view.Peak = t.PeakMiB, f.attempts[card].largest()
		if best := capacity.Smallest(view.Verdicts); best != nil && best.Result == capacity.Fits {
			card, _ = f.search.Proof(best.Card)
			view.PeakMiB, view.Peak = best.PeakMiB, f.attempts[card].largest()
		}
		if !t.Result.Runs() {
			view.Broken = &render.BrokenRun{Card: f.search.Cards[card].Target(), Code: f.attempts[card].Code, Output: f.attempts[card].output, RanOut: t.Result == capacity.TooSmall}
		}
	} else {
		for _, a := range f.attempts {
			view.Broken = &render.BrokenRun{Output: a.output, NotRun: true}
		}
	}
	for card := len(f.search.Cards) - 1; card >= 0 && view.Refused == nil; card-- {
		if f.search.Trial(card).Result == capacity.TooSmall {
			view.Refused, view.RefusedOn = f.attempts[card].largest(), f.search.Cards[card].Target()
		}
	}
	return view
}

func (f *finder) print(view render.FitsView) error {
	if f.flags.junit != "" {
		content, err := render.FitsJUnit(view)
		if err == nil {
			err = durable.WriteFile(f.flags.junit, content, 0o644)
		}
		if err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	if f.flags.markdown {
		return render.FitsMarkdown(f.Out, f.style(f.Out), view)
	}
	return f.invocation.print(view)
}
