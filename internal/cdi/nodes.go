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
	GPU string // UUID

	// Of a MIG slice:
	MIG                          bool
	GPUInstance, ComputeInstance int
}

// Driver is the NVIDIA driver as the kernel of this machine shows it.
type Driver struct {
	Root string // the folder that contains dev, proc and usr; empty for /
}

// Nodes lists the device nodes that give a program access to a slice and to nothing else. For a MIG slice, the GPU's
// own node permits only what the two capability nodes permit.
func (d Driver) Nodes(s Slice) ([]File, error) {
	minor, err := d.minor(s.GPU)
	if err != nil {
		return nil, err
	}
	type node struct{ path, make string }
	wanted := []node{
		{"/dev/nvidiactl", "nvidia-smi"},
		{"/dev/nvidia-uvm", "nvidia-modprobe -u -c0"},
		{fmt.Sprintf("/dev/nvidia%d", minor), fmt.Sprintf("nvidia-modprobe -c%d", minor)},
	}
	for _, c := range s.capabilities(minor) {
		number, err := d.number(c, "DeviceFileMinor")
		if err != nil {
			return nil, fmt.Errorf("the MIG slice of the GPU %s is not there: %w; look with nvidia-smi mig -lci", s.GPU, err)
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

// capabilities are the files in which the kernel names the nodes of a MIG slice of a GPU.
func (s Slice) capabilities(minor int) []string {
	if !s.MIG {
		return nil
	}
	instance := fmt.Sprintf("/proc/driver/nvidia/capabilities/gpu%d/mig/gi%d", minor, s.GPUInstance)
	return []string{instance + "/access", fmt.Sprintf("%s/ci%d/access", instance, s.ComputeInstance)}
}

// minor returns the number in the name of a GPU's node, which can differ from its index.
func (d Driver) minor(gpu string) (int, error) {
	const gpus = "/proc/driver/nvidia/gpus"
	entries, _ := os.ReadDir(d.host(gpus)) // without the folder there is no GPU
	for _, e := range entries {
		file := filepath.Join(gpus, e.Name(), "information")
		if uuid, err := d.value(file, "GPU UUID"); err == nil && uuid == gpu { // one that cannot be read is another's
			return d.number(file, "Device Minor")
		}
	}
	return 0, fmt.Errorf("the NVIDIA driver shows no GPU %s in %s; nvidia-smi -L lists the GPUs", gpu, gpus)
}

// number reads a value that is a number.
func (d Driver) number(path, key string) (int, error) {
	value, err := d.value(path, key)
	if err != nil {
		return 0, err
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < 0 {
		return 0, fmt.Errorf("%s in %s is %q, not a number", key, path, value)
	}
	return number, nil
}

// value reads a value from a file with lines such as "Device Minor:       0".
func (d Driver) value(path, key string) (string, error) {
	data, err := os.ReadFile(d.host(path))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no %s", path, key)
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
