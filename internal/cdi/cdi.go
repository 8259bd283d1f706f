// Package cdi gives a session's container access to its slice of a real GPU. It writes a specification of the
// Container Device Interface (CDI) with one device, named after the session; the engine or NVIDIA's container runtime
// adds that device to the container. The specification contains the device nodes of that slice only, the driver's
// libraries, and the files that the caller mounts in front of them.
//
// cosplay does not use NVIDIA's hooks: they would run ldconfig in the image and could place the image's own libcuda
// before the facade.
package cdi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	library "tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	"tags.cncf.io/container-device-interface/specs-go"

	"cosplay/internal/durable"
)

// Device is a session's device, by the vendor and the name that CDI gives it: cosplay/session=worker-3.
type Device struct{ Vendor, Name string }

// The vendors of cosplay's devices: of those for containers that cosplay creates, and of those for the containers of others.
const (
	Own       = "cosplay"
	ForOthers = "cosplay.dev" // of resource.DeviceKind
)

const class = "session"

// Dir is the folder in which engines and NVIDIA's runtime look for specifications that a reboot removes. Their other
// folder, /etc/cdi, belongs to the administrator.
const Dir = "/var/run/cdi"

// Qualified returns the name with which a caller requests a device from an engine.
func (d Device) Qualified() string { return parser.QualifiedName(d.Vendor, class, d.Name) }

// File is the path of a device's specification in a folder.
func (d Device) File(dir string) string {
	return filepath.Join(dir, library.GenerateTransientSpecName(d.Vendor, class, d.Name)+".json")
}

// Check returns why CDI does not accept a device's name, or no file system its specification's.
func (d Device) Check() error {
	const longest = 255 - len(".12345678901234567890") // bytes in the name of a file, which is written beside its place first
	if err := parser.ValidateDeviceName(d.Name); err != nil {
		return fmt.Errorf("%q cannot be the name of a CDI device: it begins and ends with an English letter or a digit, and has _ - . : between them", d.Name)
	}
	if file := d.File(""); len(file) > longest {
		return fmt.Errorf("%q is too long for the name of a CDI device: the name of its file would have %d bytes", d.Name, len(file))
	}
	return nil
}

// Edits is everything that CDI adds to a container with the device.
type Edits struct {
	Nodes  []File            // device nodes
	Mounts []File            // files and folders
	Env    map[string]string // variables of the container
}

// File is a path on the host and its path in the container.
type File struct {
	Host, Container string
	Writable        bool // of a mount; a program may always write to a device node
}

// visible with void, NVIDIA's keyword for "no devices", is in every specification. If NVIDIA's runtime is the engine's
// default, it would otherwise read this variable from the image and mount its own devices and driver libraries over
// cosplay's.
const (
	visible = "NVIDIA_VISIBLE_DEVICES"
	void    = "void"
)

// Write writes or replaces the specification of a device, and removes what killed writers of it have left, as Remove does. The
// bytes do not depend on the order of the edits.
func (d Device) Write(dir string, e Edits) error {
	data, err := d.Specification(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of CDI specifications: %w", err)
	}
	durable.Sweep(d.File(dir))
	if err := durable.WriteFile(d.File(dir), data, 0o644); err != nil {
		return fmt.Errorf("writing the device %s: %w", d.Qualified(), err)
	}
	return nil
}

// Remove removes the specification of a device if it exists. A running container keeps its devices, but cannot be
// started again.
func (d Device) Remove(dir string) error {
	if err := parser.ValidateDeviceName(d.Name); err != nil {
		return err
	}
	durable.Sweep(d.File(dir))
	if err := durable.Remove(d.File(dir)); err != nil {
		return fmt.Errorf("removing the device %s: %w", d.Qualified(), err)
	}
	return nil
}

// Writable reports whether this process can write a specification to a folder. The folder need not exist.
func Writable(dir string) bool { return durable.CanWriteIn(dir) == nil }

// Specification is the content of a device's specification.
func (d Device) Specification(e Edits) ([]byte, error) {
	spec, err := d.specification(e)
	if err != nil {
		return nil, fmt.Errorf("the device %s: %w", d.Qualified(), err)
	}
	data, err := json.MarshalIndent(spec, "", "  ")
	return append(data, '\n'), err
}

// specification converts the edits to CDI. CDI's own library validates them, and the specification requires the
// lowest version that supports them.
func (d Device) specification(e Edits) (*specs.Spec, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	edits := specs.ContainerEdits{Env: []string{visible + "=" + void}}
	for _, variable := range slices.Sorted(maps.Keys(e.Env)) {
		edits.Env = append(edits.Env, variable+"="+e.Env[variable])
	}
	byPath := func(f File) string { return f.Container }
	for _, n := range sorted(e.Nodes, byPath) {
		// Without the node's numbers, which are then read when a container starts: nvidia-uvm's differ after every boot.
		node := &specs.DeviceNode{Path: n.Container, Permissions: "rw"}
		if n.Host != n.Container {
			node.HostPath = n.Host
		}
		edits.DeviceNodes = append(edits.DeviceNodes, node)
	}
	for _, m := range sorted(e.Mounts, byPath) {
		access := "ro"
		if m.Writable {
			access = "rw"
		}
		edits.Mounts = append(edits.Mounts, &specs.Mount{HostPath: m.Host, ContainerPath: m.Container,
			Options: []string{"bind", access, "nosuid", "nodev", "rprivate"}})
	}
	if err := (&library.ContainerEdits{ContainerEdits: &edits}).Validate(); err != nil {
		return nil, err
	}
	spec := &specs.Spec{Kind: d.Vendor + "/" + class, Devices: []specs.Device{{Name: d.Name, ContainerEdits: edits}}}
	version, err := specs.MinimumRequiredVersion(spec)
	if err != nil {
		return nil, err
	}
	spec.Version = version
	return spec, specs.ValidateVersion(spec)
}

// Parse reads the edits of the one device of a specification.
func Parse(specification []byte) (e Edits, err error) {
	var spec specs.Spec
	if err := json.Unmarshal(specification, &spec); err != nil {
		return e, fmt.Errorf("reading a specification: %w", err)
	}
	if len(spec.Devices) != 1 {
		return e, fmt.Errorf("the specification has %d devices, not one", len(spec.Devices))
	}
	edits := spec.Devices[0].ContainerEdits
	e.Env = map[string]string{}
	for _, variable := range edits.Env {
		name, value, _ := strings.Cut(variable, "=")
		e.Env[name] = value
	}
	for _, n := range edits.DeviceNodes {
		e.Nodes = append(e.Nodes, File{Host: cmp.Or(n.HostPath, n.Path), Container: n.Path})
	}
	for _, m := range edits.Mounts {
		e.Mounts = append(e.Mounts, File{Host: m.HostPath, Container: m.ContainerPath, Writable: slices.Contains(m.Options, "rw")})
	}
	return e, nil
}

// check rejects what CDI's own library accepts: paths that depend on the working directory, and two entries for one
// path, of which the last would silently take effect.
func (e Edits) check() error {
	taken := map[string]bool{}
	for _, f := range slices.Concat(e.Nodes, e.Mounts) {
		for _, path := range []string{f.Host, f.Container} {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path {
				return fmt.Errorf("%q is not a clean absolute path", path)
			}
		}
		if taken[f.Container] {
			return fmt.Errorf("two things would be at %s in the container", f.Container)
		}
		taken[f.Container] = true
	}
	if _, set := e.Env[visible]; set {
		return fmt.Errorf("%s is cosplay's own", visible)
	}
	return nil
}

func sorted[T any](all []T, key func(T) string) []T {
	return slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
