package disguise_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/need"
	"cosplay/internal/resource"
)

// torchPython is Debian's interpreter, which has Debian's PyTorch if it is installed.
const torchPython = "/usr/bin/python3"

// torchSession is a session of a simulated host, for programs with a real PyTorch.
type torchSession struct {
	dir string
	env []string
}

func newTorchSession(t *testing.T, target, compute string, change ...func(*resource.Session)) torchSession {
	t.Helper()
	if err := exec.Command(torchPython, "-c", "import torch").Run(); err != nil {
		need.Lacking(t, "there is no PyTorch: apt-get install python3-torch")
	}
	m := newMachine(t, "h200-sxm")
	found, err := catalog.Target(target)
	check(t, err)
	uuid := m.gpu(t, 0).UUID
	s := resource.Session{Address: resource.One("worker"), Target: found, Compute: compute}
	for _, f := range change {
		f(&s)
	}
	dir := t.TempDir()
	given := resource.Handle{UUID: uuid}
	check(t, disguise.Install(dir, s, given, m.library(), filepath.Join(m.dir, driver.CUDA)))
	env := append(os.Environ(), "LD_LIBRARY_PATH="+lib(dir), "PYTHONDONTWRITEBYTECODE=1")
	for name, value := range disguise.PythonPath(s, dir, "") {
		env = append(env, name+"="+value)
	}
	return torchSession{dir, env}
}

// run returns what a program prints.
func (s torchSession) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	c := exec.Command(torchPython, append([]string{"-c", program}, args...)...)
	c.Env, c.Dir = s.env, t.TempDir()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// PyTorch computes on the CPU under the name of CUDA, books its memory, and raises its own errors.
func TestTorch(t *testing.T) {
	s := newTorchSession(t, "rtx-2060", "cpu")
	for _, test := range []struct{ name, program, want string }{
		{"devices", `print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.get_device_name(), torch.cuda.get_device_capability(),
			torch.cuda.get_device_properties(0).multi_processor_count, torch.cuda.get_device_properties(0).total_memory >> 20)`,
			"True 1 NVIDIA GeForce RTX 2060 (7, 5) 30 6144"},
		{"tensors", `x = torch.arange(4.).cuda(); y = (x * 2).reshape(2, 2)
print(x.device, y.t().device, y.is_cuda, y.cpu().device, x.type(), y[0], torch.zeros_like(x).device, x.new_ones(2).device)`,
			"cuda:0 cuda:0 True cpu torch.cuda.FloatTensor tensor([0., 2.], device='cuda:0') cuda:0 cuda:0"},
		{"gradients", `m = torch.nn.Linear(3, 2).to("cuda"); x = torch.ones(1, 3, requires_grad=True)
m(x.cuda()).sum().backward(); print(m.weight.device, m.weight.grad.device, x.grad.device, m.state_dict()["bias"].device)`,
			"cuda:0 cuda:0 cpu cuda:0"},
		{"two devices", `x, y = torch.ones(3, device="cuda"), torch.ones(3)
try: x + y
except RuntimeError as error: print(error)
print((x + torch.tensor(1.)).device)`,
			"Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!\ncuda:0"},
		{"numpy", `try: torch.ones(3, device="cuda").numpy()
except TypeError as error: print(error)`,
			"can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."},
		{"memory", `x = torch.empty(1000, 1000, device="cuda"); y = torch.empty(5, device="cuda")
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved()); del x, y
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.max_memory_allocated()); torch.cuda.empty_cache()
print(torch.cuda.memory_reserved())`, "4000768 23068672\n0 23068672 4000768\n0"},
		{"dropout", `x = torch.ones(1024, 1024, device="cuda", requires_grad=True); before = torch.cuda.memory_allocated()
y = torch.nn.functional.dropout(x, 0.3); print(torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before)
y.sum().backward(); del y; print(torch.cuda.memory_allocated() - before)`, "5242880 5242880\n4194304"},
		{"out of memory", `try: torch.empty(7 << 30, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error: print(str(error)[:57])
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.ones(2, device="cuda").sum().item())`,
			"CUDA out of memory. Tried to allocate 7.00 GiB (GPU 0; 6.\n0 0 2.0"},
		{"graphs", `x, g = torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(g): y = x * 2 + 1
x.fill_(5); g.replay(); print(y.tolist())
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()): x.sum().item()
except RuntimeError as error: print(str(error.__context__).splitlines()[0])`,
			"[11.0, 11.0, 11.0, 11.0]\nCUDA error: operation not permitted when stream is capturing"},
		{"threads", `import threading
found = []
t = threading.Thread(target=lambda: found.append(torch.ones(3, device="cuda") * 2)); t.start(); t.join(); print(found[0].device)`, "cuda:0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := s.run(t, "import torch\n"+test.program); got != test.want {
				t.Errorf("it prints\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// With strict, an unsupported dtype is an error in each thread of a program.
func TestTorchStrict(t *testing.T) {
	s := newTorchSession(t, "rtx-2060", "cpu", func(s *resource.Session) { s.Strict = true })
	got := s.run(t, `import threading, torch
def work():
    try: print(torch.ones(3, device="cuda").bfloat16().dtype)
    except RuntimeError as error: print(str(error)[:37])
work()
thread = threading.Thread(target=work); thread.start(); thread.join()`)
	if want := strings.Repeat("\nNVIDIA GeForce RTX 2060 has no torch.", 2)[1:]; got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}

// The rules of the allocator, its record of what took the memory, of cuBLAS' workspaces and of attention, without PyTorch and without a driver.
func TestTorchAllocator(t *testing.T) {
	python := pythons(t)[0]
	for _, test := range []string{"allocator", "origins", "workspaces", "sdpa"} {
		out, err := exec.Command(python, "testdata/"+test+"_test.py").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", test, err, out)
		}
	}
}
