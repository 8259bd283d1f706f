package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/catalog"
	"cosplay/internal/agent"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/hostfile"
	"cosplay/internal/machine"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

func hostCommand(inv *invocation) *cobra.Command {
	cmd := group(&cobra.Command{Use: "host", Short: "Export a host, to plan for it elsewhere"})
	var out string
	export := &cobra.Command{
		Use:   "export [HOST]",
		Short: "Write the GPUs of a host into a file for simulate and --on",
		Long: `Read the GPUs of a host and write them as JSON. Where the file is, a machine without the GPUs can plan for them: simulate = "rack.json" in a host block, cosplay fit 2060 --on rack.json.

The file has models, MIG profiles with their placements, clocks, power limits, settings, UUIDs and PCI addresses of the GPUs, their slices, the ids and the memory of the processes on them, the driver's version, and the calls that the driver refused. It has no names of processes, users or projects, and nothing of a state. Slices of cosplay's sessions are in it like those of other programs.

  cosplay host export -o rack.json`,
		Args: wants(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return inv.exportHost(cmd.Context(), strings.Join(args, ""), out)
		},
	}
	export.Flags().StringVarP(&out, "out", "o", "", "write to this `file`, whose name ends in .json, instead of to standard output")
	cmd.AddCommand(export)
	return cmd
}

func (inv *invocation) exportHost(ctx context.Context, name, out string) error {
	switch {
	case out != "" && !hostfile.Names(out):
		return fmt.Errorf("--out %s: the name of the file has to end in %s, by which simulate and --on know it from the name of a GPU", out, hostfile.Ending)
	case strings.HasSuffix(out, ".hcl.json"):
		return fmt.Errorf("--out %s: files whose names end in .hcl.json are configurations; choose another name", out)
	}
	p, err := inv.open(project.Options{HostsOnly: true, MayBeEmpty: true})
	if err != nil {
		return err
	}
	host, err := readHost(ctx, p, name)
	if err != nil {
		return err
	}
	data, err := hostfile.Encode(host, Version)
	if err != nil {
		return err
	}
	warnHeld(inv.Err, host)
	if out == "" {
		_, err := terminal.Raw(inv.Out).Write(data)
		return err
	}
	if err := durable.WriteFile(out, data, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", out, err)
	}
	fmt.Fprintf(inv.Out, "Wrote %s: host %s with %s.\n", out, host.Name, prose.Count(len(host.GPUs)+len(host.Unusable), "GPU"))
	file := filepath.Base(out)
	fmt.Fprintf(inv.Out, "Next, where the file is: simulate = %q in a host block, or cosplay fit 2060 --on %s\n", file, file)
	return nil
}

// readHost reads the GPUs of the host with the name; "" is the only one.
func readHost(ctx context.Context, p *opened, name string) (resource.Host, error) {
	hosts := p.Intent.Hosts
	names := prose.Each(hosts, func(h config.Host) string { return h.Name })
	switch {
	case name != "" && !slices.Contains(names, name):
		return resource.Host{}, fmt.Errorf("there is no host %q; there is %s", name, strings.Join(names, ", "))
	case name == "" && len(hosts) > 1:
		return resource.Host{}, fmt.Errorf("which host? One of %s: cosplay host export %s", strings.Join(names, ", "), names[0])
	case name != "":
		p.Intent.Hosts = slices.DeleteFunc(slices.Clone(hosts), func(h config.Host) bool { return h.Name != name })
	}
	live, err := p.Hardware(ctx)
	switch failed, is := errors.AsType[*agent.Error](err); {
	case is && failed.Call == "dlopen":
		return resource.Host{}, fmt.Errorf("there is no GPU to export, since there is no NVML library. Fix: run this command on the machine that has the GPUs, with NVIDIA's driver\n  %w", err)
	case err != nil:
		return resource.Host{}, fmt.Errorf("nothing was exported: %w", err)
	}
	host := live.Hosts[0]
	if len(host.GPUs)+len(host.Unusable) == 0 {
		return host, fmt.Errorf("there is no GPU to export: the driver of host %s lists none. Fix: run this command on the machine that has the GPUs", host.Name)
	}
	return host, nil
}

// warnHeld reports what a plan on the host considers and the export does not have.
func warnHeld(w io.Writer, host resource.Host) {
	held := prose.Only(host.GPUs, func(g resource.GPU) bool {
		return slices.ContainsFunc(host.Ledger, func(p resource.Page) bool { return p.UUID == g.UUID })
	})
	if len(held) > 0 {
		gpus := prose.And(prose.Each(held, func(g resource.GPU) string { return fmt.Sprint(g.Index) }))
		fmt.Fprintf(w, "Warning: projects of cosplay use GPU %s. The export has their slices, but not which settings they need or restore.\n", gpus)
	}
}

// modelOn finds a GPU for --on: one of the catalog, or a GPU of the file of an exported host.
func modelOn(on string, index int) (model resource.Model, where string, err error) {
	if !hostfile.Names(on) {
		model, err = catalog.HostModel(on)
		return model, "from the catalog", err
	}
	host, err := machine.Simulated("", on)
	if err != nil {
		return model, "", err
	}
	i := slices.IndexFunc(host.GPUs, func(g resource.GPU) bool { return g.Index == index })
	if i < 0 {
		return model, "", fmt.Errorf("%s has no GPU %d that answers", on, index)
	}
	return host.GPUs[i].Model, fmt.Sprintf("GPU %d of %s", index, on), nil
}
