// Package driver embeds the files that cosplay installs, as make has built them: the simulated NVML and CUDA drivers,
// the facades, cosplay-init (the first program of a session's container), and the programs that verify runs in a
// session.
package driver

import (
	_ "embed" // the names
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed sim/names.txt
var names string

//go:embed cuda/names.txt
var cudaNames string

// The files that make builds.
const (
	NVML       = "libnvidia-ml.so.1"        // the simulated NVML library, by the name that programs load
	Facade     = "libnvidia-ml-facade.so.1" // in front of the driver's NVML in a session
	CUDA       = "libcuda.so.1"             // the simulated CUDA driver, by the name that programs load
	CUDAFacade = "libcuda-facade.so.1"      // in front of the CUDA driver in a session
	Init       = "cosplay-init"             // the first program of a container
	Who        = "cosplay-who"              // prints the user and the environment of a session's program
	Probe      = "cosplay-probe"            // asks NVML and CUDA as a program of a session does
)

// NotHere says what a cosplay that was built without cgo, or for macOS, has no access to.
const NotHere = "simulated hosts and GPUs need cosplay for Linux, amd64 or arm64, that is built with cgo"

// ErrNotHere is the error of such a cosplay.
var ErrNotHere = errors.New(NotHere + ". Fix: run the command on the machine that has them, or name that machine by connect in the host block")

// Missing lists what this binary was built without, although it needs it.
func Missing() []string {
	if !Here {
		return nil
	}
	var missing []string
	for _, name := range []string{NVML, Facade, CUDA, CUDAFacade, Init, Who, Probe} {
		if _, err := fs.Stat(built, "lib/"+name); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// Library returns a copy of the bytes of a library by its file name. The error states how to get a binary that contains it.
func Library(name string) ([]byte, error) {
	data, err := built.ReadFile("lib/" + name)
	if err != nil {
		return nil, fmt.Errorf("this cosplay was built without %s; build it with make build, not with go build alone", name)
	}
	return data, nil
}

// Names lists the functions that the simulated NVML exports, in order.
func Names() []string { return strings.Fields(names) }

// CUDANames lists the functions that NVIDIA's CUDA driver exports, in order; the simulated driver exports all of
// them.
func CUDANames() []string {
	var list []string
	for line := range strings.Lines(cudaNames) {
		if name, _, ok := strings.Cut(line, " "); ok && name != "#" {
			list = append(list, name)
		}
	}
	return list
}
