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
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

func (inv *invocation) ls() *cobra.Command {
	var arch string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the GPUs that a session can present",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			targets, err := ofArchitecture(catalog.Targets(), arch)
			if err != nil {
				return err
			}
			return printView(inv, targets, render.Targets, render.TargetsJSON)
		},
	}
	cmd.Flags().StringVar(&arch, "arch", "", "only this `architecture`: turing, ampere, ...")
	return cmd
}

func ofArchitecture(targets []resource.Target, arch string) ([]resource.Target, error) {
	if arch == "" {
		return targets, nil
	}
	var (
		some  []resource.Target
		known []string
	)
	for _, t := range targets {
		known = append(known, t.Architecture)
		if strings.EqualFold(t.Architecture, arch) {
			some = append(some, t)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("there is no architecture %q in the catalog; there are %s", arch, strings.Join(slices.Compact(known), ", "))
	}
	return some, nil
}

func (inv *invocation) info() *cobra.Command {
	return &cobra.Command{
		Use:   "info GPU",
		Short: "Show the figures of one GPU of the catalog, with their source",
		Args:  oneGPU,
		RunE: func(_ *cobra.Command, args []string) error {
			target, err := target(args)
			if err != nil {
				return err
			}
			return printView(inv, target, render.Target, render.TargetJSON)
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

func (inv *invocation) fit() *cobra.Command {
	var (
		on        string
		gpu       int
		tolerance string
		sharing   bool
		options   = resource.DefaultFit()
		prefer    = string(options.Prefer)
	)
	cmd := &cobra.Command{
		Use:   "fit GPU",
		Short: "Show how close a host's slices come to a GPU",
		Long: `Show every slice that could hold the target, with the best clock for it and the error that remains.

The host is the project's (or this machine); with --on it is one of the catalog.`,
		Args: oneGPU,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := target(args)
			if err != nil {
				return err
			}
			options.Prefer = resource.Preference(prefer)
			if !slices.Contains([]resource.Preference{resource.PreferFP32, resource.PreferBandwidth, resource.PreferBalanced}, options.Prefer) {
				return fmt.Errorf("--prefer %s: it is fp32, bandwidth or balanced", prefer)
			}
			if options.Tolerance, err = ratio(tolerance); err != nil {
				return fmt.Errorf("--tolerance %s: %w", tolerance, err)
			}
			view, err := inv.fitView(cmd.Context(), t, options, on, gpu)
			if err != nil {
				return err
			}
			if sharing {
				view.Shares = place.Shares(view.Model, t, options)
			}
			return cmp.Or(printView(inv, view, render.Fit, render.FitJSON), failIf(view.Err != nil))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&on, "on", "", "a `host` of the catalog instead of the project's: h200, a100-80gb, l40s, ...")
	flags.IntVar(&gpu, "gpu", 0, "`index` of the GPU of the project's host")
	flags.BoolVar(&sharing, "sharing", false, "also show what each kind of sharing gives, alone and while all sessions are busy")
	flags.StringVar(&prefer, "prefer", prefer, "what comes first: fp32, bandwidth or balanced")
	flags.StringVar(&tolerance, "tolerance", "10%", "take the smallest slice within this `share`, 10% or 0.1; 0 asks for the least error")
	return cmd
}

// ratio reads a share as the configuration has it: "10%" or 0.1.
func ratio(typed string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(typed), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return 0, errors.New("it is a share of 0 or more, like 10% or 0.1")
	}
	if percent {
		x /= 100
	}
	return x, nil
}

func (inv *invocation) fitView(ctx context.Context, t resource.Target, o resource.FitOptions, on string, gpu int) (render.FitView, error) {
	view := render.FitView{Target: t, Options: o}
	if on != "" {
		model, err := catalog.HostModel(on)
		if err != nil {
			return view, err
		}
		view.Model, view.Where = model, "from the catalog"
	} else {
		g, err := inv.liveGPU(ctx, gpu)
		if err != nil {
			return view, err
		}
		view.Model, view.Where = g.Model, fmt.Sprintf("GPU %d of host %s", g.Index, g.Host)
	}
	view.Candidates = fit.Candidates(view.Model, t, o)
	view.Limits = fit.Limits(view.Model, t, false)
	_, view.Err = fit.Best(view.Model, t, o)
	return view, nil
}

// liveGPU reads a GPU of the project's first host, or of this machine.
func (inv *invocation) liveGPU(ctx context.Context, index int) (resource.GPU, error) {
	p, err := inv.open(project.Options{MayBeEmpty: true})
	if err != nil {
		return resource.GPU{}, err
	}
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
