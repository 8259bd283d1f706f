// Package need checks what a test requires besides Go: a Docker engine, root, a program. If the requirement is
// missing, the test is skipped with a message; with COSPLAY_DOCKER=1, which forbids skipping, it fails.
package need

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Everything reports whether skipping a test is forbidden.
func Everything() bool { return os.Getenv("COSPLAY_DOCKER") == "1" }

// Lacking skips or fails a test because a requirement, described in words, is missing.
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if Everything() {
		t.Fatalf("nothing may be left out (COSPLAY_DOCKER=1), but %s", why)
	}
	t.Skip(why)
}

// Root skips or fails a test unless it runs as root and the programs are installed.
func Root(t testing.TB, programs ...string) {
	t.Helper()
	var wanting []string
	if os.Geteuid() != 0 {
		wanting = append(wanting, "root")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			wanting = append(wanting, program)
		}
	}
	if len(wanting) > 0 {
		Lacking(t, "it takes %s", strings.Join(wanting, ", "))
	}
}

// Judge returns the path of NVIDIA's own nvidia-smi, against which tests check the simulated drivers and the facades:
// the one that scripts/install-nvidia-smi has downloaded, or the machine's. Without either a test fails, unless
// COSPLAY_NO_NVIDIA_SMI=1 permits skipping.
func Judge(t testing.TB) (path string, there bool) {
	t.Helper()
	if path = os.Getenv("COSPLAY_NVIDIA_SMI"); path != "" {
		return path, true
	}
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		return path, true
	}
	if os.Getenv("COSPLAY_NO_NVIDIA_SMI") != "1" {
		t.Fatal("there is no nvidia-smi to judge by: run scripts/install-nvidia-smi FOLDER and set " +
			"COSPLAY_NVIDIA_SMI=FOLDER/nvidia-smi, or go without it by COSPLAY_NO_NVIDIA_SMI=1")
	}
	t.Log("no nvidia-smi here, so nothing was judged")
	return "", false
}

// MPS returns the folder of NVIDIA's MPS control daemon, which starts without a GPU: beside the judge, or on PATH.
func MPS(t testing.TB) (dir string, there bool) {
	t.Helper()
	const daemon = "nvidia-cuda-mps-control"
	if judge := os.Getenv("COSPLAY_NVIDIA_SMI"); judge != "" {
		dir = filepath.Join(filepath.Dir(judge), "mps")
		if _, err := os.Stat(filepath.Join(dir, daemon)); err == nil {
			return dir, true
		}
	}
	path, err := exec.LookPath(daemon)
	if err != nil && Everything() {
		t.Fatal("there is no " + daemon + ": run scripts/install-nvidia-smi FOLDER and set COSPLAY_NVIDIA_SMI=FOLDER/nvidia-smi")
	}
	return filepath.Dir(path), err == nil
}

// Torch returns a Python interpreter that has PyTorch: $COSPLAY_TORCH_PYTHON, or that of the distribution.
func Torch(t testing.TB) (python string) {
	t.Helper()
	python = torchPython()
	if python == "" {
		Lacking(t, "there is no PyTorch: apt-get install python3-torch")
	}
	return python
}

// TorchIfAny is Torch for a test that has a part without PyTorch: python is "" where there is none, and nothing is skipped.
func TorchIfAny(t testing.TB) (python string) {
	t.Helper()
	python = torchPython()
	if python == "" && Everything() {
		t.Fatal("there is no PyTorch: apt-get install python3-torch")
	}
	return python
}

func torchPython() string {
	for _, python := range []string{os.Getenv("COSPLAY_TORCH_PYTHON"), "/usr/bin/python3", "python3"} {
		if python != "" && exec.Command(python, "-c", "import importlib.util as i, sys; sys.exit(i.find_spec('torch') is None)").Run() == nil {
			return python
		}
	}
	return ""
}

// Mounts reports whether the user of the tests may mount in a mount namespace.
func Mounts() bool {
	flags := "-m"
	if os.Geteuid() != 0 {
		flags = "-Urm"
	}
	return exec.Command("unshare", flags, "mount", "-t", "tmpfs", "tmpfs", "/tmp").Run() == nil
}
