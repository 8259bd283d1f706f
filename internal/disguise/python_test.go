package disguise_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/disguise"
	"cosplay/internal/need"
	"cosplay/internal/resource"
)

// A target's number formats follow from its compute capability.
func TestLacks(t *testing.T) {
	since := map[string]float64{"bf16": 8.0, "tf32": 8.0, "fp8": 8.9, "fp6": 10.0, "fp4": 10.0}
	for _, target := range catalog.Targets() {
		var capability float64
		_, err := fmt.Sscan(target.ComputeCapability, &capability)
		check(t, err)
		lacks := target.Lacks()
		for format, first := range since {
			if missing := slices.Contains(lacks, format); missing != (capability < first) {
				t.Errorf("%s has compute capability %g, and that it lacks %s is %v", target.Key, capability, format, missing)
			}
		}
		if len(lacks) > len(since) {
			t.Errorf("%s lacks %v", target.Key, lacks)
		}
	}
}

// pythonSession is a session with its part for Python and a torch to import.
type pythonSession struct {
	t      *testing.T
	python string // the interpreter
	dir    string
	env    map[string]string
}

// pythons are the interpreters of this machine: each version that has a name on
// the path.
func pythons(t *testing.T) []string {
	t.Helper()
	var all []string
	names := []string{"python3"}
	for minor := range 30 {
		names = append(names, fmt.Sprintf("python3.%d", minor))
	}
	for _, name := range names {
		out, err := exec.Command(name, "-c", `import os, sys; assert sys.version_info >= (3, 6); print(os.path.realpath(sys.executable))`).Output()
		if path := strings.TrimSpace(string(out)); err == nil && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	if len(all) == 0 {
		need.Lacking(t, "there is no python3: apt-get install python3")
	}
	return all
}

func newPython(t *testing.T, python, target string, strict bool) pythonSession {
	t.Helper()
	s := session(t, target)
	s.Strict = strict
	torch, err := filepath.Abs("testdata/python")
	check(t, err)
	return pythonOf(t, python, s, torch)
}

func pythonOf(t *testing.T, python string, s resource.Session, otherwise string) pythonSession {
	t.Helper()
	dir := t.TempDir()
	check(t, disguise.CopyPython(filepath.Dir(dir), dir, s))
	env := map[string]string{"PYTHONPATH": otherwise, "PATH": os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE": "1", "HOME": dir}
	maps.Copy(env, disguise.Environment(s, "MIG-1", false))
	maps.Copy(env, disguise.PythonPath(s, dir, otherwise))
	return pythonSession{t, python, dir, env}
}

// run returns a program's standard output and standard error.
func (p pythonSession) run(args ...string) (out, complaint string) {
	p.t.Helper()
	c := exec.Command(p.python, args...)
	for name, value := range p.env {
		c.Env = append(c.Env, name+"="+value)
	}
	var stderr strings.Builder
	c.Stderr = &stderr
	printed, err := c.Output()
	if err != nil && stderr.Len() == 0 {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(string(printed)), strings.TrimSpace(stderr.String())
}

func (p pythonSession) says(want string, args ...string) {
	p.t.Helper()
	if out, complaint := p.run(args...); out != want || complaint != "" {
		p.t.Errorf("%v\nsays %s, want %s\n%s", args, out, want, complaint)
	}
}

func everyPython(t *testing.T, test func(t *testing.T, python string)) {
	for _, python := range pythons(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(python)))+"/"+filepath.Base(python), func(t *testing.T) { test(t, python) })
	}
}

const switches = `import torch
print(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision(), torch.cuda.is_initialized())`

// The TF32 switches are off if the target lacks TF32, and unchanged otherwise. The code does not start CUDA, so a
// program can still fork.
func TestWithoutTF32(t *testing.T) {
	everyPython(t, func(t *testing.T, python string) {
		for target, want := range map[string]string{
			"gtx-1080": "False False highest False", "rtx-2060": "False False highest False", "rtx-3060": "True True high False", "h100-sxm": "True True high False",
		} {
			p := newPython(t, python, target, false)
			p.says(want, "-c", switches)
			override := "0"
			if strings.HasPrefix(want, "True") {
				override = "None"
			}
			p.says(override, "-c", `import os; print(os.environ.get("NVIDIA_TF32_OVERRIDE"))`)
		}
		p := newPython(t, python, "rtx-2060", true)
		p.says("0", "-c", `import os, torch
child = os.fork()
if not child:
    os._exit(torch.cuda.mem_get_info() != (6 << 30, 6 << 30))
print(os.waitpid(child, 0)[1])`)
	})
}

// On hardware, capability = "target" gives programs the target's properties, and those who compile for the GPU its own.
func TestCapabilityOnHardware(t *testing.T) {
	const ask = `import sys, torch
def ask(kind, name):
    scope = {"torch": torch, "__name__": name}
    exec("c = torch.cuda.get_device_capability(); p = torch.cuda.get_device_properties(0)", scope)
    p = scope["p"]
    print(kind, scope["c"], p.name, p.major, p.minor, p.multi_processor_count, p.total_memory >> 20, p.warp_size)
ask("program", "__main__"); ask("inductor", "torch._inductor.runtime"); ask("triton", "triton.runtime")
try: torch.cuda.get_device_properties(7)
except AssertionError as error: print(error)`
	const real = "(9, 0) NVIDIA H200 9 0 132 143771 32"
	everyPython(t, func(t *testing.T, python string) {
		for capability, want := range map[string]string{"": real, resource.CapabilityReal: real, resource.CapabilityTarget: "(7, 5) NVIDIA GeForce RTX 2060 7 5 30 6144 32"} {
			s := session(t, "rtx-2060")
			s.Capability = capability
			torch, err := filepath.Abs("testdata/python")
			check(t, err)
			pythonOf(t, python, s, torch).says("program "+want+"\ninductor "+real+"\ntriton "+real+"\nInvalid device id", "-c", ask)
		}
	})
}

// With strict, an unsupported dtype is an error that states a fix.
func TestStrict(t *testing.T) {
	const attempt = `import torch
def attempt(what):
    try:
        what()
    except RuntimeError as error:
        return str(error)
cuda, half, brain = "cuda", torch.float16, torch.bfloat16
with torch.autocast(cuda, brain):
    cast = attempt(lambda: torch.zeros(2, dtype=half, device=cuda) @ torch.zeros(2, dtype=half, device=cuda))
print([error is not None for error in (
    attempt(lambda: torch.zeros(2, dtype=brain, device=cuda)),
    attempt(lambda: torch.zeros(2, device=cuda).bfloat16()),
    attempt(lambda: torch.zeros(2, dtype=brain).to(cuda)),
    cast,
    attempt(lambda: torch.zeros(2, dtype=torch.float8_e4m3fn, device=cuda)),
    attempt(lambda: torch.zeros(2, dtype=torch.float4_e2m1fn_x2, device=cuda)),
    attempt(lambda: torch.zeros(2, dtype=brain)),
    attempt(lambda: torch.zeros(2, dtype=brain).split(1)),
    attempt(lambda: torch.zeros(2, dtype=half, device=cuda).split(1)),
    attempt(lambda: torch.zeros(2, dtype=torch.int8, device=cuda)),
)], torch.cuda.is_bf16_supported())`
	yes := func(n int) string { return strings.TrimSuffix(strings.Repeat("True, ", n), ", ") }
	no := func(n int) string { return strings.TrimSuffix(strings.Repeat("False, ", n), ", ") }
	everyPython(t, func(t *testing.T, python string) {
		for target, want := range map[string]string{
			"rtx-2060": "[" + yes(6) + ", " + no(4) + "] False", "rtx-3060": "[" + no(4) + ", " + yes(2) + ", " + no(4) + "] True",
			"rtx-4090": "[" + no(5) + ", " + yes(1) + ", " + no(4) + "] True", "rtx-5090": "[" + no(10) + "] True",
		} {
			newPython(t, python, target, true).says(want, "-c", attempt)
			newPython(t, python, target, false).says("["+no(10)+"] True", "-c", attempt)
		}
		_, complaint := newPython(t, python, "rtx-2060", true).run("-c", `import torch; torch.zeros(2, device="cuda").split(1)[0].bfloat16()`)
		if want := "RuntimeError: NVIDIA GeForce RTX 2060 has no torch.bfloat16, and the session says strict = true; use another dtype, like torch.float16, " +
			"or take strict out of the session's block"; !strings.HasSuffix(complaint, want) {
			t.Errorf("it says %s", complaint)
		}
		_, complaint = newPython(t, python, "rtx-2060", true).run("-c", `import sys; sys.modules["torch.overrides"] = None; import torch`)
		if complaint == "" {
			t.Error("a torch that cannot be strict is imported")
		}
	})
}

// Python starts as usual: it loads the same modules and libraries, and only one of cosplay's files.
func TestPythonStartsAsEver(t *testing.T) {
	const look = `import sys; print(sorted(set(sys.modules) - {"sitecustomize"}), sorted(set(l.split()[-1] for l in open("/proc/self/maps") if ".so" in l)))`
	everyPython(t, func(t *testing.T, python string) {
		with := newPython(t, python, "rtx-2060", true)
		check(t, os.Remove(filepath.Join(with.dir, "python", "cosplay_torch.py")))
		check(t, os.Remove(filepath.Join(with.dir, "python", "session.json")))
		without, _ := newPython(t, python, "rtx-3060", false).run("-c", look)
		with.says(without, "-c", look)
		with.says("True True", "-c", `import importlib.util, sys; print(importlib.util.find_spec("torch") is not None, "torch" not in sys.modules)`)
		with.env["PYTHONPATH"] = filepath.Join(with.dir, "python")
		if exec.Command(python, "-c", "import torch").Run() == nil {
			return
		}
		with.says("no torch", "-c", "try:\n    import torch\nexcept ImportError as error: print('no', error.name)")
	})
}

// A framework that finds no GPU on a simulated host is explained by one line; on hardware nothing is printed.
func TestOtherFrameworks(t *testing.T) {
	everyPython(t, func(t *testing.T, python string) {
		theirs := t.TempDir()
		for _, name := range []string{"cupy", "jax", "tensorflow"} {
			check(t, os.WriteFile(filepath.Join(theirs, name+".py"), []byte("version = 1\n"), 0o644))
		}
		s := session(t, "rtx-2060")
		const program = "import jax, cupy, json, tensorflow, jax\nprint(jax.version + cupy.version + tensorflow.version)"
		pythonOf(t, python, s, theirs).says("3", "-c", program)
		s.Compute = "cpu"
		out, explained := pythonOf(t, python, s, theirs).run("-c", program)
		lines := strings.Split(explained, "\n")
		if out != "3" || len(lines) != 3 {
			t.Fatalf("it prints %s and\n%s\nwant a line for each framework", out, explained)
		}
		for i, name := range []string{"JAX", "CuPy", "TensorFlow"} {
			if want := "cosplay: " + name + " finds no GPU in this session: its host has none"; !strings.HasPrefix(lines[i], want) {
				t.Errorf("%q, want %q", lines[i], want)
			}
		}
	})
}

// The user's own sitecustomize runs, whatever it does. So do those of tools that precede cosplay's and load the next
// one.
func TestOtherSitecustomize(t *testing.T) {
	everyPython(t, func(t *testing.T, python string) {
		theirs := t.TempDir()
		p := pythonOf(t, python, session(t, "rtx-2060"), theirs)
		write := func(text string) {
			check(t, os.WriteFile(filepath.Join(theirs, "sitecustomize.py"), []byte(text), 0o644))
		}
		write("import sys\nsys.user = __file__\n")
		p.says(filepath.Join(theirs, "sitecustomize.py")+" True", "-c", "import sys, sitecustomize; print(sys.user, sitecustomize.__file__ == sys.user)")
		p.says(filepath.Join(p.dir, "python"), "-c", "import sys; print(next(f.cosplay_part for f in sys.meta_path if hasattr(f, 'cosplay_part')))")
		write("raise ValueError('theirs')\n")
		_, ours := p.run("-c", "")
		p.env["PYTHONPATH"] = theirs
		if _, alone := p.run("-c", ""); ours != alone || !strings.Contains(ours, "ValueError: theirs") {
			t.Errorf("a sitecustomize that fails says\n%s\nwithout us\n%s", ours, alone)
		}
		write("import sys\nsys.said = getattr(sys, 'said', 0) + 1\nfrom importlib.machinery import PathFinder\n" +
			"import importlib.util\nspec = PathFinder.find_spec('sitecustomize', [p for p in sys.path if p != " + fmt.Sprintf("%q", theirs) + "])\n" +
			"module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\n")
		p.env["PYTHONPATH"] = theirs + ":" + filepath.Join(p.dir, "python")
		p.says("1 Finder", "-c", "import sys; print(sys.said, type(sys.meta_path[0]).__name__)")
	})
}

// The part works in environments that are created later. If Python is started with an option that ignores its environment, NVIDIA's
// libraries still read their switch.
func TestVenv(t *testing.T) {
	everyPython(t, func(t *testing.T, python string) {
		p := pythonOf(t, python, session(t, "rtx-2060"), "")
		venv := filepath.Join(t.TempDir(), "venv")
		if _, complaint := p.run("-m", "venv", "--without-pip", venv); complaint != "" {
			t.Fatal(complaint)
		}
		p.python = filepath.Join(venv, "bin", "python")
		site, _ := p.run("-c", `import sysconfig; print(sysconfig.get_paths()["purelib"])`)
		check(t, os.CopyFS(site, os.DirFS("testdata/python")))
		p.says("False False highest False", "-c", switches)
		check(t, os.WriteFile(filepath.Join(site, "sitecustomize.py"), []byte("import sys\nsys.user = True\n"), 0o644))
		const whose = `import sys; print(getattr(sys, "user", "the system's"))`
		alone, _ := pythonSession{t, p.python, p.dir, map[string]string{}}.run("-c", whose)
		p.says(alone, "-c", whose)
		for _, flag := range []string{"-I", "-E"} {
			p.says("True True high False", flag, "-c", switches)
			p.says("0", flag, "-c", `import os; print(os.environ["NVIDIA_TF32_OVERRIDE"])`)
		}
	})
}

// The files work with Python 3.6 and do no harm in Python 2.
func TestPythonSyntax(t *testing.T) {
	python := pythons(t)[0]
	files, err := filepath.Glob("python/*.py")
	check(t, err)
	more, err := filepath.Glob("python/cosplay_cuda/*.py")
	check(t, err)
	if len(files) != 3 || len(more) == 0 {
		t.Errorf("the files are %v and %v", files, more)
	}
	files = append(files, more...)
	for _, file := range files {
		out, err := exec.Command(python, "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read(), feature_version=(3, 6))", file).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %s", file, out)
		}
	}
}
