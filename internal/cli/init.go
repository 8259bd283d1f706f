package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/catalog"
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

// starterHost is what it simulates where there is no driver.
const starterHost = "1 x h200"

func (inv *invocation) init() *cobra.Command {
	var (
		count    int
		simulate string
	)
	cmd := &cobra.Command{
		Use:   "init [GPU]",
		Short: "Write a starter cosplay.hcl for this machine",
		Long: `Write a commented cosplay.hcl with sessions that pass for a GPU; without one named, for one that the GPUs of this machine come close to.

On a machine without NVIDIA's driver the host is simulated, so that everything can be tried; with --simulate it is too.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var t resource.Target
			if len(args) > 0 {
				var err error
				if t, err = target(args); err != nil {
					return err
				}
			}
			for _, given := range []struct {
				flag string
				set  bool
			}{{"--file", inv.file != ""}, {"--state", inv.state != ""}, {"--json", inv.json}} {
				if given.set {
					return fmt.Errorf("init takes no %s: it writes %s into the folder, and --chdir names another one", given.flag, starterFile)
				}
			}
			if count < 1 {
				return fmt.Errorf("--count %d: there is nothing to write for less than one session", count)
			}
			return inv.runInit(cmd.Context(), t, strings.Join(args, " "), count, simulate)
		},
	}
	cmd.Flags().IntVar(&count, "count", 1, "`number` of sessions")
	cmd.Flags().StringVar(&simulate, "simulate", "", "simulate this host: \"1 x h200\", \"8 x a100-80gb\", ...")
	return cmd
}

func (inv *invocation) runInit(ctx context.Context, t resource.Target, typed string, count int, simulate string) error {
	var (
		models []resource.Model
		found  string
		err    error
	)
	if simulate != "" {
		if models, err = machine.SimulatedModels(simulate); err != nil {
			return err
		}
	}
	for _, pattern := range []string{"*.hcl", "*.hcl.json"} {
		if have, err := filepath.Glob(pattern); err == nil && len(have) > 0 {
			return fmt.Errorf("there is %s already; nothing was written. Edit it, or start in an empty folder", have[0])
		}
	}
	if simulate == "" {
		if models, err = inv.thisMachine(ctx); err != nil {
			return err
		}
		found = modelWords(models)
	}
	if len(models) == 0 {
		if models, err = machine.SimulatedModels(starterHost); err != nil {
			return err
		}
	}
	if typed == "" {
		t = suited(models)
		typed = strings.ToLower(strings.TrimPrefix(t.ShortName(), "RTX "))
		if again, err := catalog.Target(typed); err != nil || again.Key != t.Key {
			typed = t.Key
		}
	}
	text, _, _ := config.Format(starterFile, []byte(starter(t, typed, count, simulate, found, runtime.Auto(false).Runtime)))
	if err := durable.WriteFile(starterFile, text, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", starterFile, err)
	}
	fmt.Fprintf(inv.Out, "Wrote %s: %s with target %s.\n", starterFile, prose.Count(count, "session"), t.ShortName())
	if found != "" {
		fmt.Fprintf(inv.Out, "This machine has %s.\n", found)
	} else if simulate == "" {
		fmt.Fprintf(inv.Out, "This machine has no NVIDIA driver, so the file simulates a host: %s.\n", starterHost)
	}
	if note := farOff(models, t); note != "" {
		fmt.Fprintf(inv.Out, "%s cosplay fit %s shows every slice.\n", note, typed)
	}
	fmt.Fprintln(inv.Out, "Next: cosplay plan")
	return nil
}

// starterTargets are what init takes where no GPU is named, the first that comes
// close on the machine's GPUs.
var starterTargets = []string{"2060", "3060", "3070", "3080", "3090", "4060", "4070", "4090", "t4", "a10"}

// suited is a GPU that those of a host come close to; of all in the catalog where
// none of the usual ones does.
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

// farOff says that no GPU of a host comes within the tolerance of a target; ""
// where one does.
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

// thisMachine lists the GPUs that are here; none where there is no driver.
func (inv *invocation) thisMachine(ctx context.Context) ([]resource.Model, error) {
	p, _, _, err := inv.openWith(project.Options{MayBeEmpty: true})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	live, err := p.Hardware(ctx)
	if err != nil {
		return nil, nil // whatever keeps NVML from answering, the starter simulates
	}
	var models []resource.Model
	for _, g := range live.Hosts[0].GPUs {
		models = append(models, g.Model)
	}
	return models, nil
}

// modelWords is "2 x NVIDIA H200, 1 x NVIDIA L40S".
func modelWords(models []resource.Model) string {
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
	}
	return strings.Join(prose.Numbered(names), ", ")
}

func starter(t resource.Target, typed string, count int, simulate, found string, onHardware resource.Runtime) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s with target %s.\n", prose.Count(count, "session"), t.ShortName())
	b.WriteString("#   cosplay plan      what would change      cosplay drift     was it touched since?\n")
	b.WriteString("#   cosplay apply     change it              cosplay destroy   put everything back\n\n")
	switch {
	case simulate != "" || found == "":
		if simulate == "" {
			simulate = starterHost
		}
		b.WriteString("# A simulated host: nothing here needs a GPU. Remove the block to use this\n# machine's own GPUs.\n")
		fmt.Fprintf(&b, "host \"lab\" {\n  simulate = %q\n", simulate)
		if simulated := runtime.Auto(true); simulated.Name != onHardware.Name {
			fmt.Fprintf(&b, "  # runtime  = %q  # sessions run %s; otherwise %s\n", onHardware.Name, onHardware.Where, simulated.Where)
		}
		b.WriteString("}\n\n")
	default:
		fmt.Fprintf(&b, "# This machine has %s. Without a host block all of them may be used.\n", found)
		b.WriteString("# To leave some alone, or to allow less:\n")
		b.WriteString("#\n# host \"local\" {\n#   gpus   = [0]                # these only\n#   manage = [\"slices\"]         # of mig-mode, slices, clocks, power, persistence\n# }\n\n")
	}
	b.WriteString("session \"worker\" {\n")
	if count > 1 {
		fmt.Fprintf(&b, "  count  = %d\n", count)
	}
	fmt.Fprintf(&b, "  target = %q  # cosplay ls lists all targets\n\n", typed)
	b.WriteString("  # command   = [\"python\", \"train.py\"]  # what cosplay exec runs when it is given nothing else\n")
	b.WriteString("  # workspace = \"./exp\"                 # where programs start; default: this folder\n")
	b.WriteString("  # env       = { SEED = 1 }\n\n")
	if onHardware.Uses("image") && found != "" {
		b.WriteString("  # image     = \"pytorch/pytorch:latest\" # any image; left out: cosplay:latest, built when it is missing\n")
		b.WriteString("  # limits {\n  #   memory = \"32GiB\"\n  # }\n\n")
	}
	b.WriteString("  # fit {\n  #   tolerance = \"10%\"   # take the smallest slice whose error is within it\n  # }\n}\n")
	return b.String()
}
