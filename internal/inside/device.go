package inside

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
	"cosplay/internal/resource"
)

// WriteDevice writes the specification of a session's CDI device: the nodes of its slices, the driver's libraries with
// the facades in front, its programs. cuda asks for the disguise of CUDA.
func (in Sessions) WriteDevice(device string, s resource.Session, given resource.Handle, cuda bool) error {
	library, err := in.library()
	if err != nil {
		return err
	}
	nodes, err := in.nodes(s, given)
	if err != nil {
		return err
	}
	version, err := driverVersion(in.Driver.Root, library)
	if err != nil {
		return err
	}
	libraries, err := cdi.Libraries(library, version)
	if err != nil {
		return err
	}
	mounts := append(cdi.Mounts(libraries, in.fronts(s.ID, cuda)), in.Driver.Tools()...)
	_, err = cdi.Write(in.Specs, device, cdi.Edits{Nodes: nodes, Mounts: mounts})
	return err
}

// RemoveDevice removes the specification of a session's device, if there is one.
func (in Sessions) RemoveDevice(device string) error {
	if in.SimDir != "" || unix.Access(in.Specs, unix.F_OK) != nil {
		return nil
	}
	return cdi.Remove(in.Specs, device)
}

// nodes are those of all slices of a session; what they share is there once.
func (in Sessions) nodes(s resource.Session, given resource.Handle) ([]cdi.File, error) {
	var all []cdi.File
	for _, part := range s.Slices() {
		nodes, err := in.Driver.Nodes(cdi.Slice{GPU: part.GPU,
			MIG: !part.Whole(), GPUInstance: given.GPUInstance, ComputeInstance: given.ComputeInstance})
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(nodes, func(n cdi.File) bool { return slices.Contains(all, n) })...)
	}
	return all, nil
}

// driverVersion is in the name of the NVML library's file, or else in a file of the kernel.
func driverVersion(root, library string) (string, error) {
	if version := disguise.DriverVersion(library); version != "" {
		return version, nil
	}
	data, err := os.ReadFile(filepath.Join("/", root, "sys/module/nvidia/version"))
	if err != nil {
		return "", fmt.Errorf("the version of the NVIDIA driver cannot be read: %w. Fix: load the driver (nvidia-smi shows whether it is)", err)
	}
	return cmp.Or(strings.TrimSpace(string(data)), "unknown"), nil
}
