// Package cdi gives the container of a session its slice of a real GPU: it
// writes a specification of the Container Device Interface whose one device is
// named after the session, for the engine itself or for NVIDIA's container
// runtime to put into the container. In it are the device nodes of that slice
// alone, the driver's libraries, and whatever the caller mounts in front of them.
//
// NVIDIA's hooks are not used. They would run ldconfig in the image and could put
// the image's own libcuda before ours.
package cdi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
	library "tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	"tags.cncf.io/container-device-interface/specs-go"

	"cosplay/internal/durable"
)

// What our devices are called: cosplay/session=worker-3.
const (
	vendor = "cosplay"
	class  = "session"
)

// Dir is where engines and NVIDIA's runtime look for specifications that do not
// outlive the machine's next start; the other of their two folders, /etc/cdi, is
// the administrator's.
const Dir = "/var/run/cdi"

// Qualified is the name by which an engine is asked for a session's device.
func Qualified(name string) string { return parser.QualifiedName(vendor, class, name) }

// Edits is what a container gets with its device.
type Edits struct {
	Nodes  []Node
	Mounts []Mount
}

// Node is a device node: where it is on the host, and where in the container.
type Node struct {
	Host, Container string
}

// Mount is a file or folder of the host, and where a container finds it,
// read-only.
type Mount struct {
	Host, Container string
}

// void is NVIDIA's word for nothing. Where its runtime is the engine's own choice,
// it would bring in its devices and the driver's libraries over ours for what an
// image says of this variable.
const void = "NVIDIA_VISIBLE_DEVICES=void"

// Write writes the specification of a session's device, or replaces it whole,
// and returns its path. The same edits in any order give the same bytes.
func Write(dir, name string, e Edits) (path string, err error) {
	spec, err := specification(name, e)
	if err != nil {
		return "", fmt.Errorf("the device %s: %w", Qualified(name), err)
	}
	data, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of CDI specifications: %w", err)
	}
	path = file(dir, name)
	if err := durable.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("writing the device %s: %w", Qualified(name), err)
	}
	return path, nil
}

// Remove removes the specification of a session's device, if it is there. A
// container that runs keeps what it was given; it cannot be started again.
func Remove(dir, name string) error {
	if err := parser.ValidateDeviceName(name); err != nil {
		return err
	}
	if err := durable.Remove(file(dir, name)); err != nil {
		return fmt.Errorf("removing the device %s: %w", Qualified(name), err)
	}
	return nil
}

// Writable tells whether this process could write a specification in a folder,
// making it first if it has to.
func Writable(dir string) bool {
	for {
		err := unix.Access(dir, unix.W_OK|unix.X_OK)
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return err == nil
		}
		dir = filepath.Dir(dir)
	}
}

func file(dir, name string) string {
	return filepath.Join(dir, library.GenerateTransientSpecName(vendor, class, name)+".json")
}

// specification is the edits in the words of the interface, checked by its own
// library and asking for no newer version of it than they need.
func specification(name string, e Edits) (*specs.Spec, error) {
	if err := parser.ValidateDeviceName(name); err != nil {
		return nil, fmt.Errorf("%w; a name has letters and digits, and between them - _ . or : too", err)
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	edits := specs.ContainerEdits{Env: []string{void}}
	for _, n := range sorted(e.Nodes, func(n Node) string { return n.Container }) {
		edits.DeviceNodes = append(edits.DeviceNodes, n.spec())
	}
	for _, m := range sorted(e.Mounts, func(m Mount) string { return m.Container }) {
		edits.Mounts = append(edits.Mounts, m.spec())
	}
	if err := (&library.ContainerEdits{ContainerEdits: &edits}).Validate(); err != nil {
		return nil, err
	}
	spec := &specs.Spec{Kind: vendor + "/" + class, Devices: []specs.Device{{Name: name, ContainerEdits: edits}}}
	version, err := specs.MinimumRequiredVersion(spec)
	if err != nil {
		return nil, err
	}
	spec.Version = version
	return spec, specs.ValidateVersion(spec)
}

// spec leaves the numbers of the node to the moment when a container starts:
// those of nvidia-uvm differ after every start of the machine.
func (n Node) spec() *specs.DeviceNode {
	node := &specs.DeviceNode{Path: n.Container, Permissions: "rw"}
	if n.Host != n.Container {
		node.HostPath = n.Host
	}
	return node
}

func (m Mount) spec() *specs.Mount {
	return &specs.Mount{HostPath: m.Host, ContainerPath: m.Container, Options: []string{"bind", "ro", "nosuid", "nodev", "rprivate"}}
}

// check finds what the interface's own library lets through: paths that mean
// something else in another folder, and two things in one place, of which the
// last would win in silence.
func (e Edits) check() error {
	taken := map[string]bool{}
	place := func(host, container string) error {
		for _, path := range []string{host, container} {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path {
				return fmt.Errorf("%q is not a clean absolute path", path)
			}
		}
		if taken[container] {
			return fmt.Errorf("two things would be at %s in the container", container)
		}
		taken[container] = true
		return nil
	}
	for _, n := range e.Nodes {
		if err := place(n.Host, n.Container); err != nil {
			return err
		}
	}
	for _, m := range e.Mounts {
		if err := place(m.Host, m.Container); err != nil {
			return err
		}
	}
	return nil
}

func sorted[T any](all []T, key func(T) string) []T {
	return slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
