package cdi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const version = "550.163.01"

// machine creates a folder with the files of a host with two GPUs, the second with a MIG slice. Symbolic links to
// /dev/null replace the device nodes.
func machine(t *testing.T) Driver {
	t.Helper()
	d := Driver{Root: t.TempDir()}
	const gpus, caps = "/proc/driver/nvidia/gpus/", "/proc/driver/nvidia/capabilities/"
	for path, text := range map[string]string{
		gpus + "0000:84:00.0/information":      information(1),
		gpus + "10000:c1:00.0/information":     information(0),
		caps + "gpu1/mig/gi9/access":           "DeviceFileMinor: 84\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
		caps + "gpu1/mig/gi9/ci0/access":       "DeviceFileMinor: 85\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
		caps + "gpu1/mig/gi10/access":          "DeviceFileMinor: 93\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
		caps + "gpu1/mig/gi10/ci0/access":      "DeviceFileMode: 292\n",
		"/usr/bin/nvidia-smi":                  "#!/bin/sh\n",
		"/run/current-system/sw/bin/elsewhere": "",
	} {
		d.write(t, path, text)
	}
	for _, node := range []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia0", "nvidia1", "nvidia-caps/nvidia-cap84", "nvidia-caps/nvidia-cap85", "nvidia-caps/nvidia-cap93"} {
		path := d.host("/dev/" + node)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.Symlink("/dev/null", path))
	}
	return d
}

// information is what the kernel shows of a GPU.
func information(minor int) string {
	return fmt.Sprintf("Model: \t\t NVIDIA H200\nIRQ:   \t\t 88\nGPU UUID: \t GPU-%[1]d\nVideo BIOS: \t 96.00.74.00.11\nBus Type: \t PCIe\n"+
		"DMA Size: \t 52 bits\nBus Location: \t 0000:84:00.0\nDevice Minor: \t %[1]d\nGPU Firmware: \t 550.163.01\nGPU Excluded:\t No\n", minor)
}

func (d Driver) write(t *testing.T, path, text string) {
	t.Helper()
	path = d.host(path)
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path, []byte(text), 0o755))
}

// install places the driver's libraries as Debian does: the files in a separate folder, and a link to NVML's in the
// folder where programs look for it, together with a file that exists only there. It returns the link.
func install(t *testing.T) (nvml string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "x86_64-linux-gnu")
	own := filepath.Join(folder, "nvidia", "current")
	check(t, os.MkdirAll(own, 0o755))
	for file, soname := range map[string]string{
		"libcuda.so." + version:                  "libcuda.so.1",
		"libnvidia-ml.so." + version:             "libnvidia-ml.so.1",
		"libnvidia-ptxjitcompiler.so." + version: "libnvidia-ptxjitcompiler.so.1",
		"libnvidia-gpucomp.so." + version:        "libnvidia-gpucomp.so." + version,
		"../../libnvidia-nvvm.so." + version:     "libnvidia-nvvm.so.4",
		"libnvidia-nvvm70.so.4":                  "libnvidia-nvvm70.so.4",
	} {
		gcc(t, "-nostdlib", "-shared", "-Wl,-soname="+soname, "-x", "c", "/dev/null", "-o", filepath.Join(own, file))
	}
	for _, needless := range []string{"libnvidia-glcore.so." + version, "libnvidia-encode.so." + version, "libnvcuvid.so." + version, "libcuda.so.535.1", "libGLX_nvidia.so." + version} {
		check(t, os.WriteFile(filepath.Join(own, needless), []byte("not to be read"), 0o644))
	}
	check(t, os.Symlink("libnvidia-ml.so."+version, filepath.Join(own, "libnvidia-ml.so.1")))
	nvml = filepath.Join(folder, "libnvidia-ml.so.1")
	check(t, os.Symlink("nvidia/current/libnvidia-ml.so.1", nvml))
	return nvml
}

// gcc runs the C compiler and returns the line that it printed.
func gcc(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func named(name string) Device { return Device{Own, name} }

// write writes the specification of a device, and returns its path.
func write(dir, name string, e Edits) (string, error) {
	return named(name).File(dir), named(name).Write(dir, e)
}
