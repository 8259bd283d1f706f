package disguise_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program reads a program of testdata.
func program(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	check(t, err)
	return string(text)
}

// A CUDA build of PyTorch has bases that no class can leave and functions that reach a driver. It works as a CPU build does, and
// NVIDIA's runtime starts without a device.
func TestTorchCUDABuild(t *testing.T) {
	got := newTorchSession(t, "rtx-3060", "cpu").run(t, program(t, "cudabuild.py"))
	want := "torch._C._cuda_of_a_later_version is not available in this session: its host has no GPU, and the CPU computes\n" +
		"cuda:0 True True 11.8 11080 (2, 20, 5) ['sm_75', 'sm_86']"
	if got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}

// A preparation that fails leaves PyTorch as it was, at whichever step.
func TestTorchUndo(t *testing.T) {
	got := newTorchSession(t, "rtx-3060", "cpu").run(t, program(t, "undo.py"))
	if want := "False None 0\n2.0\ncuda:0 4096 11.7"; got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}

// A PyTorch that cannot be prepared finds no GPU, whatever it lacks: one line states its version and a fix, and the program runs.
func TestUnpreparedTorch(t *testing.T) {
	const use = `import torch
print(torch.__version__, torch.zeros(2).dtype, torch.zeros(2).split(1)[0].device, torch.backends.cuda.matmul.allow_tf32, len(torch._modes),
    torch.cuda.device_count())`
	everyPython(t, func(t *testing.T, python string) {
		s := session(t, "rtx-2060")
		s.Compute, s.Strict = "cpu", true
		for version, why := range map[string]string{"2.9.0": "(AttributeError: ", "1.12.1+cu116": "(which is older than 1.13)", "git": "(ValueError: "} {
			theirs := t.TempDir()
			check(t, os.CopyFS(theirs, os.DirFS("testdata/python")))
			file := filepath.Join(theirs, "torch", "__init__.py")
			text, err := os.ReadFile(file)
			check(t, err)
			built := "\nimport types\n_C = types.SimpleNamespace(_cuda_getDeviceCount=lambda: 0)\ncuda.device_count = lambda: 1 # NVML's\n"
			check(t, os.WriteFile(file, []byte(strings.Replace(string(text), `"2.9.0"`, `"`+version+`"`, 1)+built), 0o644))
			out, said := pythonOf(t, python, s, theirs).run("-c", use)
			if want := version + " torch.float32 cpu True 0 0"; out != want {
				t.Errorf("it prints %q, want %q", out, want)
			}
			before := "cosplay: PyTorch " + version + " finds no GPU in this session: its host has none, and cosplay cannot prepare this version " + why
			if !strings.HasPrefix(said, before) || !strings.Contains(said, "Fix: install PyTorch 1.13 to ") || strings.Contains(said, "\n") {
				t.Errorf("standard error has\n%s\nwant one line that begins with\n%s", said, before)
			}
		}
	})
}
