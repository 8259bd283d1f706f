package cdi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Slice is the part of a physical GPU that a session gets.
type Slice struct {
	PCI             string // as NVML prints it: 00000000:84:00.0
	GPUInstance     *int   // nil for the whole GPU, like ComputeInstance
	ComputeInstance *int
}

// Driver is the NVIDIA driver as the kernel of this machine shows it.
type Driver struct {
	Root string // the folder that contains dev, proc and usr; empty for /
}

// Nodes lists the device nodes that give a program access to a slice and to nothing else. For a MIG slice, the GPU's
// own node permits only what the two capability nodes permit.
func (d Driver) Nodes(s Slice) ([]File, error) {
	minor, err := d.minor(s.PCI)
	if err != nil {
		return nil, err
	}
	gpu := fmt.Sprintf("/dev/nvidia%d", minor)
	type node struct{ path, make string }
	wanted := []node{
		{"/dev/nvidiactl", "nvidia-smi"},
		{"/dev/nvidia-uvm", "nvidia-modprobe -u -c0"},
		{gpu, fmt.Sprintf("nvidia-modprobe -c%d", minor)},
	}
	capabilities, err := d.capabilities(s, minor)
	if err != nil {
		return nil, err
	}
	for _, c := range capabilities {
		number, err := d.number(c, "DeviceFileMinor")
		if err != nil {
			return nil, fmt.Errorf("the MIG slice of the GPU at %s is not there: %w; look with nvidia-smi mig -lci", s.PCI, err)
		}
		wanted = append(wanted, node{fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", number), "nvidia-modprobe -f " + c})
	}
	var nodes []File
	for _, w := range wanted {
		if err := d.present(w.path); err != nil {
			return nil, fmt.Errorf("%w; make it with: sudo %s", err, w.make)
		}
		nodes = append(nodes, d.node(w.path))
	}
	if tools := "/dev/nvidia-uvm-tools"; d.present(tools) == nil { // for debuggers and profilers
		nodes = append(nodes, d.node(tools))
	}
	return nodes, nil
}

func (d Driver) host(path string) string { return filepath.Join("/", d.Root, path) }

func (d Driver) node(path string) File { return File{Host: d.host(path), Container: path} }

// capabilities are the files in which the kernel names the nodes of a MIG slice.
func (d Driver) capabilities(s Slice, minor int) ([]string, error) {
	if s.GPUInstance == nil && s.ComputeInstance == nil {
		return nil, nil
	}
	if s.GPUInstance == nil || s.ComputeInstance == nil {
		return nil, fmt.Errorf("a MIG slice of the GPU at %s needs both a GPU instance and a compute instance", s.PCI)
	}
	instance := fmt.Sprintf("/proc/driver/nvidia/capabilities/gpu%d/mig/gi%d", minor, *s.GPUInstance)
	return []string{instance + "/access", fmt.Sprintf("%s/ci%d/access", instance, *s.ComputeInstance)}, nil
}

// minor returns the number in the name of a GPU's node, which can differ from its index.
func (d Driver) minor(pci string) (int, error) {
	address, err := kernelAddress(pci)
	if err != nil {
		return 0, err
	}
	minor, err := d.number("/proc/driver/nvidia/gpus/"+address+"/information", "Device Minor")
	if err != nil {
		return 0, fmt.Errorf("the NVIDIA driver shows no GPU at %s: %w; look with nvidia-smi -L", pci, err)
	}
	return minor, nil
}

// kernelAddress converts a PCI address to the kernel's form: NVML writes the domain with eight digits and may use
// capital letters.
func kernelAddress(pci string) (string, error) {
	var domain, bus, device, function uint32
	n, err := fmt.Sscanf(strings.ToLower(pci), "%x:%x:%x.%x", &domain, &bus, &device, &function)
	if err != nil || n != 4 {
		return "", fmt.Errorf("%q is not a PCI address such as 00000000:84:00.0", pci)
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", domain, bus, device, function), nil
}

// number reads a value from a file with lines such as "Device Minor:       0".
func (d Driver) number(path, key string) (int, error) {
	data, err := os.ReadFile(d.host(path))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) != key {
			continue
		}
		value = strings.TrimSpace(value)
		number, err := strconv.Atoi(value)
		if err != nil || number < 0 {
			return 0, fmt.Errorf("%s in %s is %q, not a number", key, path, value)
		}
		return number, nil
	}
	return 0, fmt.Errorf("%s has no %s", path, key)
}

func (d Driver) present(path string) error {
	info, err := os.Stat(d.host(path))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s", path)
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeCharDevice == 0 {
		return fmt.Errorf("%s is not a device", path)
	}
	return nil
}
