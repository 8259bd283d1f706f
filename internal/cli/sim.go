package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/sim"
)

// numbers are the arguments that are numbers, by their names in the usage.
type numbers map[string]int

// onSim is what a command does to a simulated host.
type onSim func(h *sim.Host, args []string, n numbers) error

func simCommand(inv *invocation) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "sim",
		Short: "Change the hardware of a simulated host, as an admin would",
		Long: `Do to a simulated host what an admin with nvidia-smi, a reboot or a broken driver would do to a real one.

The real nvidia-smi works on it too: LD_LIBRARY_PATH=.cosplay/sim/HOST nvidia-smi`,
	})
	var host string
	cmd.PersistentFlags().StringVar(&host, "host", "", "the simulated `host`; needed where the configuration has several")
	add := func(use, short string, do onSim) *cobra.Command {
		sub := &cobra.Command{Use: use, Short: short, Args: noArgs}
		if n := strings.Count(use, " "); n > 0 {
			sub.Args = wants(n, n)
		}
		sub.RunE = func(_ *cobra.Command, args []string) error { return inv.runSim(host, use, args, do) }
		cmd.AddCommand(sub)
		return sub
	}
	add("show", "Show the whole state of the simulated hardware, as JSON", func(h *sim.Host, _ []string, _ numbers) error {
		shown, err := h.Show()
		if err != nil {
			return err
		}
		return render.JSON(inv.Out, shown)
	})
	set := add("set GPU KEY VALUE", "Change a setting of a GPU, given by index", func(h *sim.Host, args []string, n numbers) error {
		if err := h.Set(n["GPU"], args[1], args[2]); err != nil {
			return err
		}
		return inv.warnForgetful(h, n["GPU"], args[1])
	})
	set.Long = "Change a setting of a GPU, given by index. The keys and their values:\n\n  " + strings.Join(sim.Keys(), "\n  ")
	add("create-slice GPU PROFILE SLOT", "Create a slice that is not cosplay's", func(h *sim.Host, args []string, n numbers) error {
		_, err := h.CreateSlice(n["GPU"], args[1], n["SLOT"])
		return err
	})
	add("destroy-slice GPU GPU-INSTANCE", "Destroy a slice, given by the id of its GPU instance",
		func(h *sim.Host, _ []string, n numbers) error { return h.DestroySlice(n["GPU"], n["GPU-INSTANCE"]) })
	add("reboot", "Reboot the host: slices, locks and limits are forgotten",
		func(h *sim.Host, _ []string, _ numbers) error { return h.Reboot() })
	var clear bool
	fault := add("fault FUNCTION[@GPU][:NTH]=WHAT", "Make an NVML call fail, hang, or do nothing and answer success",
		func(h *sim.Host, args []string, _ numbers) error {
			if clear {
				return h.ClearFaults()
			}
			if len(args) == 0 {
				return errors.New("which fault? For example: cosplay sim fault nvmlDeviceGetMigMode=hang")
			}
			fault, err := sim.ParseFault(args[0])
			if err != nil {
				return err
			}
			return h.SetFault(fault)
		})
	fault.Args = wants(0, 1)
	fault.Flags().BoolVar(&clear, "clear", false, "remove all faults")
	fault.Long = `Make the NTH call of an NVML function from now on misbehave; the default is the next, 0 is every call. With @GPU, only calls about that GPU count.
WHAT is an NVML code by number or name (IN_USE), hang, ignore, or absent: the library does not export the function.

  cosplay sim fault nvmlDeviceCreateGpuInstanceWithPlacement:3=INSUFFICIENT_RESOURCES
  cosplay sim fault nvmlDeviceGetSupportedGraphicsClocks@1:0=NOT_SUPPORTED
  cosplay sim fault nvmlDeviceGetMigMode=hang
  cosplay sim fault --clear`
	return cmd
}

// runSim runs a command on the simulated host with the name; "" is the only one.
func (inv *invocation) runSim(name, use string, args []string, do onSim) error {
	parsed := numbers{}
	for i, what := range strings.Fields(use)[1:] {
		if what != "GPU" && what != "SLOT" && what != "GPU-INSTANCE" {
			continue
		}
		n, err := strconv.Atoi(args[i])
		if err != nil || n < 0 {
			return fmt.Errorf("%s is %q, but it has to be a number from 0; cosplay sim show prints the hardware", what, args[i])
		}
		parsed[what] = n
	}
	p, err := inv.open(forHosts)
	if err != nil {
		return err
	}
	dir, err := simulatedDir(p.Project, name)
	if err != nil {
		return err
	}
	host, err := sim.Open(dir)
	if err != nil {
		return err
	}
	defer host.Close()
	return do(host, args, parsed)
}

func simulatedDir(p *project.Project, name string) (string, error) {
	dirs := p.SimDirs()
	names := slices.Sorted(maps.Keys(dirs))
	switch {
	case dirs[name] != "":
		return dirs[name], nil
	case len(names) == 0:
		return "", errors.New("no host of this configuration is simulated; write simulate = \"1 x h200\" in a host block")
	case name == "" && len(names) == 1:
		return dirs[names[0]], nil
	case name == "":
		return "", fmt.Errorf("which host? --host is one of %s", strings.Join(names, ", "))
	}
	return "", fmt.Errorf("there is no simulated host %q; there is %s", name, strings.Join(names, ", "))
}

// warnForgetful warns that a setting does not last: without persistence mode the driver
// forgets it when the last program closes the GPU.
func (inv *invocation) warnForgetful(h *sim.Host, gpu int, key string) error {
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
