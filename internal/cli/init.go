package cli

import (
	"bytes"
	"context"
	_ "embed" // the starter file
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"cosplay/catalog"
	"cosplay/driver"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/fit"
	"cosplay/internal/machine"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// starterFile is what init writes.
const starterFile = "cosplay.hcl"

// starterHost is the host that it simulates if there is no driver.
const starterHost = "1 x h200"

func initCommand(inv *invocation) *cobra.Command {
	var (
		count    int
		simulate string
		from     string
	)
	cmd := &cobra.Command{
		Use:   "init [GPU]",
		Short: "Write a starter cosplay.hcl for this machine",
		Long: `Write a commented cosplay.hcl with sessions that present a GPU. Without a GPU, cosplay chooses a target that fits the GPUs of this machine.

On a machine without NVIDIA's driver, or with --simulate, the file simulates the host.

With --from-gpu-cosplay, the file has a session with an import block for each session of gpu-cosplay that runs: cosplay apply imports them, and their containers and slices stay as they are. docs/from-gpu-cosplay.md has every step.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var t resource.Target
			if len(args) > 0 {
				var err error
				if t, err = target(args); err != nil {
					return err
				}
			}
			for _, flag := range []string{"file", "state", "json"} {
				if cmd.Flags().Changed(flag) {
					return fmt.Errorf("init takes no --%s: it writes %s into the folder, and --chdir names another one", flag, starterFile)
				}
			}
			if from != "" && (len(args) > 0 || cmd.Flags().Changed("count")) {
				return fmt.Errorf("--%s takes GPUs and number of sessions from the state of gpu-cosplay. Fix: leave out the rest", fromFlag)
			}
			if from != "" {
				return inv.initFrom(cmd.Context(), from, simulate)
			}
			if count < 1 {
				return fmt.Errorf("--count %d: there is nothing to write for less than one session", count)
			}
			return inv.runInit(cmd.Context(), t, strings.Join(args, " "), count, simulate)
		},
	}
	cmd.Flags().IntVar(&count, "count", 1, "`number` of sessions")
	cmd.Flags().StringVar(&simulate, "simulate", "", "simulate this host: \"1 x h200\", \"8 x a100-80gb\", ...")
	cmd.Flags().StringVar(&from, fromFlag, "", "import the sessions of gpu-cosplay, whose state is at this `PATH`")
	cmd.Flags().Lookup(fromFlag).NoOptDefVal = inHome
	return cmd
}

func (inv *invocation) runInit(ctx context.Context, t resource.Target, typed string, count int, simulate string) error {
	models, found, err := inv.starterModels(ctx, simulate)
	if err != nil {
		return err
	}
	if typed == "" {
		t = suited(models)
		typed = strings.ToLower(strings.TrimPrefix(t.ShortName(), "RTX "))
		if again, err := catalog.Target(typed); err != nil || again.Key != t.Key {
			typed = t.Key
		}
	}
	view := starterView{Target: t, Typed: typed, Count: count, Sessions: prose.Count(count, "session"), Simulate: simulate, Found: found, Client: !driver.Here,
		OnHardware: runtime.Auto(false).Runtime, OnSim: runtime.Auto(true).Runtime}
	if simulate == "" && found == "" {
		view.Simulate = starterHost
	}
	view.Shares = count > len(models) && !slices.ContainsFunc(models, resource.Model.MIG)
	text, err := starter(view)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(starterFile, text, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", starterFile, err)
	}
	fmt.Fprintf(inv.Out, "Wrote %s: %s with target %s.\n", starterFile, prose.Count(count, "session"), t.ShortName())
	if found != "" {
		fmt.Fprintf(inv.Out, "This machine has %s.\n", found)
	} else if simulate == "" {
		fmt.Fprintf(inv.Out, "This machine has no NVIDIA driver, so the file simulates a host: %s.\n", starterHost)
	}
	if view.Client {
		fmt.Fprintln(inv.Out, "Sessions are on a machine with Linux: write its name into connect.")
	}
	if note := farOff(models, t); note != "" {
		fmt.Fprintf(inv.Out, "%s cosplay fit %s shows every slice.\n", note, typed)
	}
	fmt.Fprintln(inv.Out, "Next: cosplay plan")
	return nil
}

// starterModels are the GPUs for which init writes a file, in a folder without one: those of the simulated host, of this
// machine with their names in found, or of the host that it simulates if there is no driver.
func (inv *invocation) starterModels(ctx context.Context, simulate string) (models []resource.Model, found string, err error) {
	if simulate != "" {
		models, err = machine.SimulatedModels("", simulate)
	}
	if err != nil {
		return nil, "", err
	}
	if err := emptyFolder(); err != nil {
		return nil, "", err
	}
	if simulate == "" {
		if models, err = inv.thisMachine(ctx); err != nil {
			return nil, "", err
		}
		names := prose.Each(models, func(m resource.Model) string { return m.Name })
		found = strings.Join(prose.Numbered(names), ", ")
	}
	if len(models) == 0 {
		models, err = machine.SimulatedModels("", starterHost)
	}
	return models, found, err
}

// emptyFolder refuses a folder with a configuration.
func emptyFolder() error {
	for _, pattern := range []string{"*.hcl", "*.hcl.json"} {
		if have, err := filepath.Glob(pattern); err == nil && len(have) > 0 {
			return fmt.Errorf("there is %s already; nothing was written. Edit it, or start in an empty folder", have[0])
		}
	}
	return nil
}

// starterTargets are the targets that init tries in turn if the user names none.
var starterTargets = []string{"2060", "3060", "3070", "3080", "3090", "4060", "4070", "4090", "t4", "a10"}

// suited is the first target that fits the GPUs of a host: of the usual ones, or else of
// the catalog.
func suited(models []resource.Model) resource.Target {
	var usual []resource.Target
	for _, name := range starterTargets {
		if t, err := catalog.Target(name); err == nil {
			usual = append(usual, t)
		}
	}
	for _, t := range slices.Concat(usual, catalog.Targets()) {
		if farOff(models, t) == "" {
			return t
		}
	}
	return usual[0]
}

// farOff is the note that no GPU of a host is within the tolerance of a target; "" if one is.
func farOff(models []resource.Model, t resource.Target) string {
	var (
		options = resource.DefaultFit()
		closest resource.Fit
		on      string
	)
	for _, m := range models {
		for _, f := range fit.Candidates(m, t, options) {
			if on == "" || f.Error(options.Prefer) < closest.Error(options.Prefer) {
				closest, on = f, m.ShortModel()
			}
		}
	}
	switch {
	case on == "":
		return fmt.Sprintf("Note: no GPU of this host has the %d MiB of %s, so plan will refuse it.", t.MemoryMiB, t.ShortName())
	case closest.Error(options.Prefer) > options.Tolerance:
		return fmt.Sprintf("Note: the closest that %s comes to %s is FP32 %s.", on, t.ShortName(), fit.Percent(closest.FP32Ratio()))
	}
	return ""
}

// thisMachine lists the GPUs of this machine; none if there is no driver.
func (inv *invocation) thisMachine(ctx context.Context) ([]resource.Model, error) {
	p, err := inv.open(project.Options{MayBeEmpty: true})
	if err != nil {
		return nil, err
	}
	live, err := p.Hardware(ctx)
	if err != nil {
		return nil, nil // without NVML, the starter simulates
	}
	return prose.Each(live.Hosts[0].GPUs, func(g resource.GPU) resource.Model { return g.Model }), nil
}

// starterText writes the starter file; config.Format lays it out.
//
//go:embed starter.hcl.tmpl
var starterText string

// starterView is what the starter file depends on.
type starterView struct {
	Target            resource.Target
	Typed             string // the target as the user writes it
	Count             int
	Shares            bool   // there are fewer GPUs than sessions, and none has MIG
	Sessions          string // their number in words
	Simulate          string // "" uses the GPUs of this machine
	Found             string // the GPUs of this machine
	Client            bool   // this cosplay reaches hosts on other machines alone
	OnHardware, OnSim resource.Runtime
}

func starter(view starterView) ([]byte, error) {
	var b bytes.Buffer
	err := template.Must(template.New("starter").Parse(starterText)).Execute(&b, view)
	text, _, _ := config.Format(starterFile, b.Bytes())
	return text, err
}
