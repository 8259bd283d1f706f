package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/durable"
	"cosplay/internal/project"
	"cosplay/internal/resource"
)

// starterFile is what init writes.
const starterFile = "cosplay.hcl"

func (inv *invocation) init() *cobra.Command {
	var (
		count    int
		simulate string
	)
	cmd := &cobra.Command{
		Use:   "init [GPU]",
		Short: "Write a starter cosplay.hcl for this machine",
		Long: `Write a commented cosplay.hcl with sessions that pass for a GPU (default: 2060).

On a machine without NVIDIA's driver the host is simulated, so that everything can be tried; with --simulate it is too.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"2060"}
			}
			t, err := target(args)
			if err != nil {
				return err
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
	if simulate != "" {
		if err := project.CheckSimulate(simulate); err != nil {
			return err
		}
	}
	const dir = "." // --chdir has been here
	if have, err := filepath.Glob(filepath.Join(dir, "*.hcl")); err == nil && len(have) > 0 {
		return fmt.Errorf("there is %s already; nothing was written. Edit it, or start in an empty folder", have[0])
	}
	found := ""
	if simulate == "" {
		var err error
		if found, err = inv.thisMachine(ctx); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, starterFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already; nothing was written", path)
	}
	if err := durable.WriteFile(path, []byte(starter(t, typed, count, simulate, found)), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	fmt.Fprintf(inv.Out, "Wrote %s: %s with target %s.\n", path, counted(count, "session"), t.ShortName())
	if found != "" {
		fmt.Fprintf(inv.Out, "This machine has %s.\n", found)
	} else if simulate == "" {
		fmt.Fprintln(inv.Out, "This machine has no NVIDIA driver, so the file simulates a host: 1 x h200.")
	}
	fmt.Fprintln(inv.Out, "Next: cosplay plan")
	return nil
}

// thisMachine names the GPUs that are here; "" where there is no driver.
func (inv *invocation) thisMachine(ctx context.Context) (string, error) {
	p, _, _, err := inv.openWith(project.Options{MayBeEmpty: true})
	if err != nil {
		return "", err
	}
	defer p.Close()
	live, err := p.Observe(ctx)
	if err != nil {
		return "", nil // whatever keeps NVML from answering, the starter simulates
	}
	models := map[string]int{}
	var order []string
	for _, g := range live.Hosts[0].GPUs {
		if models[g.Model.Name] == 0 {
			order = append(order, g.Model.Name)
		}
		models[g.Model.Name]++
	}
	var parts []string
	for _, name := range order {
		parts = append(parts, fmt.Sprintf("%d x %s", models[name], name))
	}
	return strings.Join(parts, ", "), nil
}

func starter(t resource.Target, typed string, count int, simulate, found string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s with target %s.\n", counted(count, "session"), t.ShortName())
	b.WriteString("#   cosplay plan      what would change      cosplay drift     was it touched since?\n")
	b.WriteString("#   cosplay apply     change it              cosplay destroy   put everything back\n\n")
	switch {
	case simulate != "" || found == "":
		if simulate == "" {
			simulate = "1 x h200"
		}
		b.WriteString("# A simulated host: nothing here needs a GPU. Remove the block to use this\n# machine's own GPUs.\n")
		fmt.Fprintf(&b, "host \"lab\" {\n  simulate = %q\n}\n\n", simulate)
	default:
		fmt.Fprintf(&b, "# This machine has %s. Without a host block all of them may be used.\n", found)
		b.WriteString("# To leave some alone, or to allow less:\n")
		b.WriteString("#\n# host \"local\" {\n#   gpus   = [0]                # these only\n#   manage = [\"slices\"]         # of mig-mode, slices, clocks, power, persistence\n# }\n\n")
	}
	b.WriteString("session \"worker\" {\n")
	if count > 1 {
		fmt.Fprintf(&b, "  count  = %d\n", count)
	}
	fmt.Fprintf(&b, "  target = %q  # cosplay ls lists what there is to pass for\n\n", typed)
	b.WriteString("  # command   = [\"python\", \"train.py\"]  # what cosplay exec runs when it is given nothing else\n")
	b.WriteString("  # workspace = \"./exp\"                 # where programs start; default: this folder\n")
	b.WriteString("  # env       = { SEED = 1 }\n\n")
	b.WriteString("  # fit {\n  #   tolerance = \"10%\"   # take the smallest slice whose error is within it\n  # }\n}\n")
	return b.String()
}
