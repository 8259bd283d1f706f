package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/catalog"
	"cosplay/internal/fit"
	"cosplay/internal/place"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

func lsCommand(inv *invocation) *cobra.Command {
	var (
		arch, on, maxError string
		gpu                int
	)
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the GPUs that a session can present",
		Long: `List the GPUs that a session can present.

With --on or --max-error only those that the GPU of a host has the memory for, and whose FP32 rate it can match within the error. The host is the project's (or this machine); with --on it is one of the catalog, or that of a file of cosplay host export.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			targets, err := ofArchitecture(catalog.Targets(), arch)
			if err != nil {
				return err
			}
			view := render.TargetsView{Targets: targets}
			if cmd.Flags().Changed("on") || cmd.Flags().Changed("max-error") || cmd.Flags().Changed("gpu") {
				if view, err = inv.presentable(cmd.Context(), targets, on, gpu, maxError); err != nil {
					return err
				}
			}
			return inv.print(view)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&arch, "arch", "", "only this `architecture`: turing, ampere, ...")
	flags.StringVar(&on, "on", "", onUsage)
	flags.IntVar(&gpu, "gpu", 0, "`index` of the GPU of the project's host, or of an exported one")
	flags.StringVar(&maxError, "max-error", "", "only targets whose FP32 rate the host's GPU matches within this `share`, 5% or 0.05")
	return cmd
}

const onUsage = "a `host` of the catalog instead of the project's: h200, a100-80gb, l40s, ..., or the file of an exported host"

// presentable keeps the targets that a slice of a GPU or the whole of it can present. Without a maximum error these
// are the targets that it has the memory for.
func (inv *invocation) presentable(ctx context.Context, targets []resource.Target, on string, gpu int, maxError string) (view render.TargetsView, err error) {
	options := resource.DefaultFit()
	if maxError != "" {
		share, err := ratio(maxError)
		if err != nil {
			return view, fmt.Errorf("--max-error %s: %w", maxError, err)
		}
		options.MaxError = &share
	}
	model, where, err := inv.model(ctx, on, gpu)
	if err != nil {
		return view, err
	}
	fits := prose.Only(targets, func(t resource.Target) bool {
		_, err := fit.Best(model, t, options)
		return err == nil
	})
	return render.TargetsView{Targets: fits, Model: model.Name, Where: where, On: on, MaxError: options.MaxError}, nil
}

func ofArchitecture(targets []resource.Target, arch string) ([]resource.Target, error) {
	if arch == "" {
		return targets, nil
	}
	some := prose.Only(targets, func(t resource.Target) bool { return strings.EqualFold(t.Architecture, arch) })
	if len(some) > 0 {
		return some, nil
	}
	known := slices.Compact(prose.Each(targets, func(t resource.Target) string { return t.Architecture }))
	return nil, fmt.Errorf("there is no architecture %q in the catalog; there are %s", arch, strings.Join(known, ", "))
}

func infoCommand(inv *invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "info GPU",
		Short: "Show the figures of one GPU of the catalog, with their source",
		Args:  oneGPU,
		RunE: func(_ *cobra.Command, args []string) error {
			target, err := target(args)
			if err != nil {
				return err
			}
			return inv.print(render.TargetView{Target: target})
		},
	}
}

// oneGPU wants the name of a GPU, which may be several words.
func oneGPU(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("which GPU? For example: cosplay %s 2060. cosplay ls lists them all", cmd.Name())
	}
	return nil
}

func target(words []string) (resource.Target, error) {
	return catalog.Target(strings.Join(words, " "))
}

func fitCommand(inv *invocation) *cobra.Command {
	var (
		on              string
		gpu             int
		tolerance       string
		sharing, matrix bool
		csv             bool
		prefer          = string(resource.DefaultFit().Prefer)
	)
	cmd := &cobra.Command{
		Use:   "fit GPU",
		Short: "Show how close a host's slices come to a GPU",
		Long: `Show every slice that could hold the target, with the best clock for it and the error that remains.
With --matrix, show every target of the catalog with the slice that cosplay would choose for it.

The host is the project's (or this machine); with --on it is one of the catalog, or that of a file of cosplay host export.`,
		Example: `  cosplay fit 3090 --on h200
  cosplay fit --matrix --on h200 --csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if matrix {
				return noArgs(cmd, args)
			}
			return oneGPU(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := fitOptions(prefer, tolerance)
			if err != nil {
				return err
			}
			if csv && !matrix {
				return errors.New("--csv is for the table of all targets: add --matrix, or choose --json")
			}
			if matrix {
				return inv.fitMatrix(cmd.Context(), options, on, gpu, csv)
			}
			t, err := target(args)
			if err != nil {
				return err
			}
			view, err := inv.fitView(cmd.Context(), t, options, on, gpu)
			if err != nil {
				return err
			}
			if sharing {
				view.Shares = place.Shares(view.Model, t, options)
			}
			return cmp.Or(inv.print(view), exitIf(view.Err != nil, exitError))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&on, "on", "", onUsage)
	flags.IntVar(&gpu, "gpu", 0, "`index` of the GPU of the project's host, or of an exported one")
	flags.BoolVar(&sharing, "sharing", false, "also show what each kind of sharing gives, alone and while all sessions are busy")
	flags.BoolVar(&matrix, "matrix", false, "show every target of the catalog with the slice that cosplay would choose")
	flags.BoolVar(&csv, "csv", false, "with --matrix: write comma-separated values, with a header")
	flags.StringVar(&prefer, "prefer", prefer, "what comes first: fp32, bandwidth or balanced")
	flags.StringVar(&tolerance, "tolerance", "10%", "take the smallest slice within this `share`, 10% or 0.1; 0 asks for the least error")
	cmd.MarkFlagsMutuallyExclusive("matrix", "sharing")
	return cmd
}

func fitOptions(prefer, tolerance string) (o resource.FitOptions, err error) {
	o.Prefer = resource.Preference(prefer)
	if !slices.Contains([]resource.Preference{resource.PreferFP32, resource.PreferBandwidth, resource.PreferBalanced}, o.Prefer) {
		return o, fmt.Errorf("--prefer %s: it is fp32, bandwidth or balanced", prefer)
	}
	if o.Tolerance, err = ratio(tolerance); err != nil {
		return o, fmt.Errorf("--tolerance %s: %w", tolerance, err)
	}
	return o, nil
}

// fitMatrix shows what a GPU is worth as each target of the catalog.
func (inv *invocation) fitMatrix(ctx context.Context, o resource.FitOptions, on string, gpu int, csv bool) error {
	if csv && inv.json {
		return errors.New("--csv and --json exclude each other: choose one")
	}
	model, where, err := inv.model(ctx, on, gpu)
	if err != nil {
		return err
	}
	view := render.MatrixView{Model: model, Where: where, Options: o}
	for _, t := range catalog.Targets() {
		best, err := fit.Best(model, t, o)
		view.Choices = append(view.Choices, render.Choice{Target: t, Fit: best, Err: err})
	}
	if csv {
		return render.MatrixCSV(inv.Out, view)
	}
	return inv.print(view)
}

// ratio reads a share as the configuration has it: "10%" or 0.1.
func ratio(typed string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(typed), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return 0, errors.New("it is a share of 0 or more, like 10% or 0.1")
	}
	switch {
	case percent:
		x /= 100
	case x > 1:
		return 0, fmt.Errorf("it is a share, and %s is %g %%. Fix: write %s%% or %g", number, 100*x, number, x/100)
	}
	return x, nil
}

func (inv *invocation) fitView(ctx context.Context, t resource.Target, o resource.FitOptions, on string, gpu int) (view render.FitView, err error) {
	view = render.FitView{Target: t, Options: o}
	if view.Model, view.Where, err = inv.model(ctx, on, gpu); err != nil {
		return view, err
	}
	view.Candidates = fit.Candidates(view.Model, t, o)
	best, err := fit.Best(view.Model, t, o)
	view.Limits, view.Err = fit.Limits(view.Model, best.Profile, t, false), err
	return view, nil
}

// model is the GPU that a fit is about, and where it was found: a host of the catalog, or by its index a GPU of the
// project's host.
func (inv *invocation) model(ctx context.Context, on string, gpu int) (m resource.Model, where string, err error) {
	if on != "" {
		return modelOn(on, gpu)
	}
	g, err := inv.liveGPU(ctx, gpu)
	if err != nil {
		return m, "", err
	}
	where = fmt.Sprintf("GPU %d of host %s", g.Index, g.Host)
	if !catalog.Listed(g.Model) {
		where += "; the catalog lacks it, the figures are NVML's"
	}
	return g.Model, where, nil
}

// liveGPU reads a GPU of the project's first host, or of this machine.
func (inv *invocation) liveGPU(ctx context.Context, index int) (resource.GPU, error) {
	p, err := inv.open(project.Options{MayBeEmpty: true, Clusters: true})
	if err != nil {
		return resource.GPU{}, err
	}
	defer inv.slow("Reading the hosts")()
	live, err := p.Hardware(ctx)
	if err != nil {
		return resource.GPU{}, fmt.Errorf("%w\n  Without a host, name one of the catalog: --on h200", err)
	}
	for _, h := range live.Hosts {
		for _, g := range h.GPUs {
			if g.Index == index {
				return g, nil
			}
		}
	}
	return resource.GPU{}, fmt.Errorf("there is no GPU %d; cosplay status shows those that are there", index)
}
