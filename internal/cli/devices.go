package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"cosplay/internal/render"
	"cosplay/internal/runtime"
)

func devicesCommand(inv *invocation) *cobra.Command {
	wanted := map[string]*bool{}
	cmd := &cobra.Command{
		Use:   "devices [SESSION...]",
		Short: "List the sessions that are CDI devices",
		Long: `List the sessions whose host has runtime = "cdi", each with the name by which any engine that reads devices of CDI gives it to a container: docker run --device NAME IMAGE. With names: only these sessions or blocks.

With --compose, --devcontainer, --podman or --apptainer: the lines to paste into a compose file, a devcontainer.json or a shell. Apptainer's have all mounts and variables, since it reads no devices.

Exit codes: 0 done; 1 error, or a session that is not a device.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, now, sessions, err := inv.peekChosen(cmd.Context(), args)
			if err != nil {
				return err
			}
			var view render.DevicesView
			for _, s := range sessions {
				place, err := p.Runtime(cmd.Context(), s, now.Prior)
				if err != nil {
					return err
				}
				offers, is := place.(runtime.Offerer)
				if !is && len(args) > 0 {
					return fmt.Errorf("%s is not a CDI device: host %q has runtime = %q. Fix: runtime = \"cdi\" in the host block", s.Address, s.Slice.Host, s.Runtime)
				}
				if !is {
					continue
				}
				offer, err := offers.Offer(s.ID)
				if err != nil {
					return fmt.Errorf("%s: %w", s.Address, err)
				}
				view = append(view, render.Offered{Session: s.Session, Offer: offer})
			}
			for tool, asked := range wanted {
				if *asked && inv.json {
					return fmt.Errorf("--json and --%s exclude each other. Fix: leave one of them out", tool)
				}
				if *asked && len(view) > 0 {
					render.DeviceLines[tool](inv.Out, view)
					return nil
				}
			}
			return inv.print(view)
		},
	}
	tools := slices.Sorted(maps.Keys(render.DeviceLines))
	for _, tool := range tools {
		wanted[tool] = cmd.Flags().Bool(tool, false, "print the lines for "+map[string]string{
			"compose": "a compose file", "devcontainer": "a devcontainer.json", "podman": "podman run", "apptainer": "apptainer exec"}[tool])
	}
	cmd.MarkFlagsMutuallyExclusive(tools...)
	return cmd
}
