package cdi

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// mig returns the slice on the second GPU of a machine.
func mig(gi, ci int) Slice {
	return Slice{GPU: "GPU-1", MIG: true, GPUInstance: gi, ComputeInstance: ci}
}

func TestNodes(t *testing.T) {
	d := machine(t)
	for name, c := range map[string]struct {
		slice Slice
		want  string
	}{
		"a MIG slice":   {mig(9, 0), "/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia1 /dev/nvidia-caps/nvidia-cap84 /dev/nvidia-caps/nvidia-cap85 /dev/nvidia-uvm-tools"},
		"a whole GPU":   {Slice{GPU: "GPU-1"}, "/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia1 /dev/nvidia-uvm-tools"},
		"a long domain": {Slice{GPU: "GPU-0"}, "/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia0 /dev/nvidia-uvm-tools"},
	} {
		nodes, err := d.Nodes(c.slice)
		var got []string
		for _, n := range nodes {
			got = append(got, n.Container)
			if n.Host != d.Root+n.Container {
				t.Errorf("%s: %s is said to be at %s", name, n.Container, n.Host)
			}
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, %v; want %s", name, got, err, c.want)
		}
	}
	check(t, os.Remove(d.host("/dev/nvidia-uvm-tools")))
	if nodes, err := d.Nodes(mig(9, 0)); err != nil || len(nodes) != 5 {
		t.Errorf("without the tools: %v, %v", nodes, err)
	}
}

func TestNodesOfThisMachine(t *testing.T) {
	if got := (Driver{}).node("/dev/nvidiactl"); got != (File{Host: "/dev/nvidiactl", Container: "/dev/nvidiactl"}) {
		t.Errorf("got %v", got)
	}
}

func TestMissingNodes(t *testing.T) {
	for name, c := range map[string]struct {
		slice   Slice
		without string
		want    []string
	}{
		"no control node":      {mig(9, 0), "/dev/nvidiactl", []string{"there is no /dev/nvidiactl", "sudo nvidia-smi"}},
		"no unified memory":    {mig(9, 0), "/dev/nvidia-uvm", []string{"there is no /dev/nvidia-uvm", "sudo nvidia-modprobe -u -c0"}},
		"no node of the GPU":   {mig(9, 0), "/dev/nvidia1", []string{"there is no /dev/nvidia1", "sudo nvidia-modprobe -c1"}},
		"no capability node":   {mig(9, 0), "/dev/nvidia-caps/nvidia-cap85", []string{"nvidia-cap85", "sudo nvidia-modprobe -f /proc/driver/nvidia/capabilities/gpu1/mig/gi9/ci0/access"}},
		"no such GPU":          {Slice{GPU: "GPU-2"}, "", []string{"no GPU GPU-2", "nvidia-smi -L"}},
		"no such GPU instance": {mig(8, 0), "", []string{"MIG slice", "GPU-1", "nvidia-smi mig -lci"}},
		"no compute instance":  {mig(9, 1), "", []string{"gi9/ci1/access", "nvidia-smi mig -lci"}},
		"no number":            {mig(10, 0), "", []string{"has no DeviceFileMinor"}},
	} {
		d := machine(t)
		if c.without != "" {
			check(t, os.Remove(d.host(c.without)))
		}
		nodes, err := d.Nodes(c.slice)
		if err == nil || slices.ContainsFunc(c.want, func(part string) bool { return !strings.Contains(err.Error(), part) }) {
			t.Errorf("%s: got %v, %v; want words of %q", name, nodes, err, c.want)
		}
	}
}

func TestNodeThatIsNoDevice(t *testing.T) {
	d := machine(t)
	check(t, os.Remove(d.host("/dev/nvidia1")))
	d.write(t, "/dev/nvidia1", "what an engine leaves that mounted it before the driver was there")
	if _, err := d.Nodes(mig(9, 0)); err == nil || !strings.Contains(err.Error(), "/dev/nvidia1 is not a device") {
		t.Errorf("got %v", err)
	}
}

func TestBrokenNumber(t *testing.T) {
	d := machine(t)
	for _, text := range []string{"N/A", "-1"} {
		d.write(t, "/proc/driver/nvidia/gpus/0000:84:00.0/information", "GPU UUID: \t GPU-1\nDevice Minor: \t "+text+"\n")
		if _, err := d.Nodes(mig(9, 0)); err == nil || !strings.Contains(err.Error(), "not a number") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
