package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"cosplay/internal/durable"
)

// hostRoot is where / of the host is mounted in the container that cosplay-node runs in; "" without a container.
type hostRoot string

// enter makes the root of the host that of this process: so cosplay has the host's libc, NVIDIA driver and paths, and kubelet
// knows the sockets of the driver by the same paths. It installs cosplay, a program of the container, on the host.
func (r hostRoot) enter(program, folder string) (installed string, err error) {
	if r == "" {
		return program, nil
	}
	if program, err = exec.LookPath(program); err != nil {
		return "", err
	}
	program = r.own(program)
	// Without HOME, which is the container's, cosplay reads that of root from the host's passwd.
	if err := errors.Join(syscall.Chroot(string(r)), os.Chdir("/"), os.Unsetenv("HOME")); err != nil {
		return "", fmt.Errorf("the folder %s of --root: %w", r, err)
	}
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("%s has no /proc: %w. Fix: mount / of the host there, with what is mounted below it", r, err)
	}
	installed = filepath.Join(folder, "bin", "cosplay")
	return installed, install(program, installed)
}

// container is / of the container, which stays open when the process enters the host.
var container = sync.OnceValue(func() int {
	root, err := syscall.Open("/", syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic(err) // a process can open its root
	}
	return root
})

// own is the path of a file of the container, before and after enter.
func (r hostRoot) own(path string) string {
	if r == "" || path == "" {
		return path
	}
	return fmt.Sprintf("/proc/self/fd/%d%s", container(), path)
}

// install copies a program of the container to the host, unless it is there, and starts it once.
func install(from, to string) error {
	program, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err != nil {
		return err
	}
	durable.Sweep(to)
	if there, err := os.ReadFile(to); err != nil || !bytes.Equal(there, program) {
		if err := durable.WriteFile(to, program, 0o755); err != nil {
			return err
		}
	}
	if said, err := exec.Command(to, "version").CombinedOutput(); err != nil {
		return fmt.Errorf("cosplay does not start on this host: %w: %s. It needs glibc 2.34 or newer, and a --folder without noexec",
			err, strings.Join(strings.Fields(string(said)), " "))
	}
	return nil
}

// keepDaemons moves the control daemons of MPS from the control group of the driver to that of the host. What is in the
// driver's ends with its pod, and the programs of other pods would lose the GPU.
func keepDaemons() (err error) {
	own, err := os.ReadFile("/proc/self/cgroup") // ID:CONTROLLERS:PATH, one for each hierarchy
	for line := range strings.Lines(string(own)) {
		_, of, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(of, ":")
		hierarchy := filepath.Join("/sys/fs/cgroup", strings.TrimPrefix(controllers, "name="))
		processes, _ := os.ReadFile(filepath.Join(hierarchy, path, "cgroup.procs")) // none of a hierarchy that is not mounted
		for pid := range strings.FieldsSeq(string(processes)) {
			if name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm")); strings.HasPrefix(string(name), "nvidia-cuda-mps") {
				err = errors.Join(err, os.WriteFile(filepath.Join(hierarchy, "cgroup.procs"), []byte(pid), 0)) //nolint:forbidigo // of the kernel
			}
		}
	}
	return err
}
