package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// runContainer is the command by which stories start a container with a CDI device, as engines do: CDI's own library adds
// the device, and runc starts the container. Its files are those of this machine, and what it writes is lost.
//
//	container [-u UID] DEVICE COMMAND...
func runContainer() {
	uid := flag.Uint("u", 0, "UID of the command")
	flag.Parse()
	code, err := inContainer(uint32(*uid), flag.Arg(0), flag.Args()[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 125
	}
	os.Exit(code)
}

// overlay mounts this machine's files below a folder, so that they can be written to, in a mount namespace that ends with
// the container.
const overlay = `cd "$1" && mount -t tmpfs tmpfs layers && mkdir layers/upper layers/work root && chmod 755 layers/upper &&
	mount -t overlay -o lowerdir=/,upperdir=layers/upper,workdir=layers/work overlay root && exec runc --root "$1/state" run --bundle "$1" "$2"`

func inContainer(uid uint32, device string, command []string) (code int, err error) {
	dir, err := os.MkdirTemp("", "container-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "layers"), 0o755); err != nil {
		return 0, err
	}
	spec := &oci.Spec{
		Version:  "1.0.2",
		Root:     &oci.Root{Path: filepath.Join(dir, "root")},
		Hostname: "container",
		Process: &oci.Process{Args: command, Cwd: "/", User: oci.User{UID: uid, GID: uid}, NoNewPrivileges: true,
			Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "OMP_NUM_THREADS=1"}},
		Mounts: []oci.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"mode=755"}},
			{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"mode=1777"}},
			{Destination: "/run", Type: "tmpfs", Source: "tmpfs", Options: []string{"mode=755"}},
		},
		Linux: &oci.Linux{Namespaces: []oci.LinuxNamespace{{Type: oci.PIDNamespace}, {Type: oci.MountNamespace}, {Type: oci.IPCNamespace}, {Type: oci.UTSNamespace}}},
	}
	devices, err := cdi.NewCache(cdi.WithSpecDirs("/etc/cdi", "/var/run/cdi"))
	if err != nil {
		return 0, err
	}
	if _, err := devices.InjectDevices(spec, device); err != nil {
		return 0, fmt.Errorf("CDI device injection failed: %w", err)
	}
	config, err := json.Marshal(spec)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600); err != nil {
		return 0, err
	}
	run := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c", overlay, "sh", dir, filepath.Base(dir))
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt)
	go func() {
		<-ended
		_ = exec.Command("runc", "--root", filepath.Join(dir, "state"), "kill", filepath.Base(dir), "KILL").Run() // it may have ended
	}()
	err = run.Run()
	if run.ProcessState != nil {
		return run.ProcessState.ExitCode(), nil
	}
	return 0, err
}
