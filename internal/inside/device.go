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

// WriteDevice writes the specification of a device that gives a container the slices of a session. cuda asks for the
// disguise of CUDA.
func (in Sessions) WriteDevice(device cdi.Device, s resource.Session, given resource.Handle, cuda bool) error {
	edits, err := in.access(s, given, cuda)
	if err != nil {
		return err
	}
	return device.Write(in.Specs, edits)
}

// access is how a device gives access to the slices of a session on hardware: their nodes, the driver's libraries with the
// facades in front, its programs.
func (in Sessions) access(s resource.Session, given resource.Handle, cuda bool) (e cdi.Edits, err error) {
	library, err := in.library()
	if err != nil {
		return e, err
	}
	if e.Nodes, err = in.nodes(s, given); err != nil {
		return e, err
	}
	version, err := driverVersion(in.Driver.Root, library)
	if err != nil {
		return e, err
	}
	libraries, err := cdi.Libraries(library, version)
	e.Mounts = append(cdi.Mounts(libraries, in.fronts(s.ID, cuda)), in.Driver.Tools()...)
	return e, err
}

// RemoveDevice removes the specification of a session's device, if there is one.
func (in Sessions) RemoveDevice(device cdi.Device) error {
	if in.SimDir != "" || unix.Access(in.Specs, unix.F_OK) != nil {
		return nil
	}
	return device.Remove(in.Specs)
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
