package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/sim"
)

func (inv *invocation) sim() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "sim",
		Short: "Handle the hardware of a simulated host behind cosplay's back",
		Long: `Do to a simulated host what an admin with nvidia-smi, a reboot or a broken driver would do to a real one.

The real nvidia-smi works on it too: LD_LIBRARY_PATH=.cosplay/sim/HOST nvidia-smi`,
	})
	var host string
	cmd.PersistentFlags().StringVar(&host, "host", "", "the simulated `host`; needed where the configuration has several")
	on := func(do func(*sim.Host) error) error {
		return inv.onSimulated(host, do)
	}
	cmd.AddCommand(inv.simShow(on), inv.simSet(on), simCreateSlice(on), simDestroySlice(on), simReboot(on), simFault(on))
	return cmd
}

// onSim runs something on the simulated host that the flags name.
type onSim = func(do func(*sim.Host) error) error

func (inv *invocation) onSimulated(name string, do func(*sim.Host) error) error {
	p, _, _, err := inv.openHosts()
	if err != nil {
		return err
	}
	defer p.Close()
	dir, err := simulatedDir(p, name)
	if err != nil {
		return err
	}
	host, err := sim.Open(dir)
	if err != nil {
		return err
	}
	defer host.Close()
	return do(host)
}

func simulatedDir(p *project.Project, name string) (string, error) {
	var names []string
	for _, h := range p.Intent.Hosts {
		if h.Simulate != "" {
			names = append(names, h.Name)
			if h.Name == name {
				return p.Machine.SimDir(name), nil
			}
		}
	}
	switch {
	case len(names) == 0:
		return "", fmt.Errorf("no host of this configuration is simulated; write simulate = \"1 x h200\" in a host block")
	case name == "" && len(names) == 1:
		return p.Machine.SimDir(names[0]), nil
	case name == "":
		return "", fmt.Errorf("which host? --host is one of %s", strings.Join(names, ", "))
	}
	return "", fmt.Errorf("there is no simulated host %q; there is %s", name, strings.Join(names, ", "))
}

func (inv *invocation) simShow(on onSim) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show the whole state of the simulated hardware, as JSON",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			return on(func(h *sim.Host) error {
				shown, err := h.Show()
				if err != nil {
					return err
				}
				return render.JSON(inv.Out, shown)
			})
		},
	}
}

func (inv *invocation) simSet(on onSim) *cobra.Command {
	return &cobra.Command{
		Use:   "set GPU KEY VALUE",
		Short: "Change a setting of a GPU, given by index",
		Long:  "Change a setting of a GPU, given by index. The keys and their values:\n\n  " + strings.Join(sim.Keys(), "\n  "),
		Args:  wants(3, 3),
		RunE: func(_ *cobra.Command, args []string) error {
			gpu, err := number("GPU", args[0])
			if err != nil {
				return err
			}
			return on(func(h *sim.Host) error {
				if err := h.Set(gpu, args[1], args[2]); err != nil {
					return err
				}
				return inv.tellForgetful(h, gpu, args[1])
			})
		},
	}
}

// tellForgetful warns that what was set does not last: without persistence mode
// the driver forgets it when the last program lets go of the GPU.
func (inv *invocation) tellForgetful(h *sim.Host, gpu int, key string) error {
	if key != "power-limit" && key != "clock-lock" {
		return nil
	}
	shown, err := h.Show()
	if err == nil && !shown.GPUs[gpu].Persistence {
		fmt.Fprintf(inv.Err, "persistence is off on GPU %d: the driver forgets the %s at the next command. cosplay sim set %d persistence on keeps it.\n",
			gpu, strings.ReplaceAll(key, "-", " "), gpu)
	}
	return err
}

func simCreateSlice(on onSim) *cobra.Command {
	return &cobra.Command{
		Use:   "create-slice GPU PROFILE SLOT",
		Short: "Make a slice that is not cosplay's",
		Args:  wants(3, 3),
		RunE: func(_ *cobra.Command, args []string) error {
			gpu, err := number("GPU", args[0])
			if err != nil {
				return err
			}
			slot, err := number("SLOT", args[2])
			if err != nil {
				return err
			}
			return on(func(h *sim.Host) error {
				_, err := h.CreateSlice(gpu, args[1], slot)
				return err
			})
		},
	}
}

func simDestroySlice(on onSim) *cobra.Command {
	return &cobra.Command{
		Use:   "destroy-slice GPU GPU-INSTANCE",
		Short: "Destroy a slice, given by the id of its GPU instance",
		Args:  wants(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			gpu, err := number("GPU", args[0])
			if err != nil {
				return err
			}
			instance, err := number("GPU-INSTANCE", args[1])
			if err != nil {
				return err
			}
			return on(func(h *sim.Host) error { return h.DestroySlice(gpu, instance) })
		},
	}
}

func simReboot(on onSim) *cobra.Command {
	return &cobra.Command{
		Use:   "reboot",
		Short: "Reboot the host: slices, locks and limits are forgotten",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return on((*sim.Host).Reboot) },
	}
}

func simFault(on onSim) *cobra.Command {
	var clear bool
	cmd := &cobra.Command{
		Use:   "fault FUNCTION[@GPU][:NTH]=WHAT",
		Short: "Make an NVML call fail, hang, or do nothing and answer success",
		Long: `Make the NTH call of an NVML function from now on misbehave; the default is the next, 0 is every call. With @GPU, only calls about that GPU count.
WHAT is an NVML code by number or name (IN_USE), hang, ignore, or absent: the library does not export the function.

  cosplay sim fault nvmlDeviceCreateGpuInstanceWithPlacement:3=INSUFFICIENT_RESOURCES
  cosplay sim fault nvmlDeviceGetSupportedGraphicsClocks@1:0=NOT_SUPPORTED
  cosplay sim fault nvmlDeviceGetMigMode=hang
  cosplay sim fault --clear`,
		Args: wants(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return on(func(h *sim.Host) error {
				if clear {
					return h.ClearFaults()
				}
				if len(args) == 0 {
					return fmt.Errorf("which fault? For example: cosplay sim fault nvmlDeviceGetMigMode=hang")
				}
				fault, err := sim.ParseFault(args[0])
				if err != nil {
					return err
				}
				return h.SetFault(fault)
			})
		},
	}
	cmd.Flags().BoolVar(&clear, "clear", false, "remove all faults")
	return cmd
}

func number(what, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %q, but it has to be a number from 0; cosplay sim show lists what there is", what, text)
	}
	return n, nil
}
