// Package disguise creates the files and the environment that make a session's GPU look like the target.
package disguise

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/resource"
)

// These files contain the part of the disguise that only Python code can do. Their folder is first on PYTHONPATH,
// which also takes effect in environments that the user creates later: venv, uv and conda each have their own site
// folder and do not read each other's.
//
//go:embed python/*.py python/cosplay_cuda/*.py
var pythonFiles embed.FS

// PythonDir is the name of that folder in a session's folder.
const PythonDir = "python"

// PythonVariable lists the folders that Python searches first.
const PythonVariable = "PYTHONPATH"

const pythonSession = "session.json" // parameters for the files

// pythonFigures lists the features that the target lacks, for the files in PythonDir.
type pythonFigures struct {
	Target string   `json:"target"` // "NVIDIA GeForce RTX 2060"
	Lacks  []string `json:"lacks"`  // number formats: "bf16"
	Strict bool     `json:"strict"`

	Compute string `json:"compute,omitempty"` // see resource.Session

	// What PyTorch reports of the target; without them, what CUDA reports.
	Capability string  `json:"capability,omitempty"` // "7.5"
	SMs        int     `json:"sms,omitempty"`
	MemoryMiB  int     `json:"memory_mib,omitempty"`
	L2MiB      float64 `json:"l2_mib,omitempty"`
}

// NeedsPython reports whether a session needs the Python part. Otherwise cosplay does not affect Python.
func NeedsPython(s resource.Session) bool {
	lacks := s.Target.Lacks()
	return slices.Contains(lacks, "tf32") || s.Strict && len(lacks) > 0 || s.Emulates() || reportsTarget(s)
}

// reportsTarget reports whether PyTorch reports the compute capability of the target.
func reportsTarget(s resource.Session) bool {
	return s.ReportedCapability() == resource.CapabilityTarget
}

// pythonTree returns the Python part of a session.
func pythonTree(s resource.Session) (*tree, error) {
	shown := pythonFigures{Target: s.Target.Name, Lacks: s.Target.Lacks(), Strict: s.Strict, Compute: s.Compute}
	if reportsTarget(s) {
		shown.Capability, shown.SMs = s.Target.ComputeCapability, s.Target.SMs
		shown.MemoryMiB, shown.L2MiB = s.Target.MemoryMiB, s.Target.L2MiB
	}
	figures, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	return oneTree(PythonDir, string(figures), func() (map[string]string, error) {
		files := map[string]string{pythonSession: string(figures) + "\n"}
		err := eachPythonFile(func(name string, text []byte) error {
			files[name] = string(text)
			return nil
		})
		return files, err
	})
}

// CopyPython installs the Python part of the disguise in a folder that a container sees, or removes it if the session
// does not need it. base is the folder of the session folders.
func CopyPython(base, dir string, s resource.Session) error {
	return placePython(dir, s, func(part *tree, folder string) error {
		for name, file := range part.files {
			path := filepath.Join(folder, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), file.Link(base, path)); err != nil {
				return err
			}
		}
		return nil
	})
}

// placePython places the Python part in a session's folder, or removes it if the session does not need it.
func placePython(dir string, s resource.Session, place func(part *tree, folder string) error) error {
	folder := filepath.Join(dir, PythonDir)
	if !NeedsPython(s) {
		return os.RemoveAll(folder)
	}
	part, err := pythonTree(s)
	if err == nil {
		err = place(part, folder)
	}
	if err != nil {
		return fmt.Errorf("making the session's part for Python: %w", err)
	}
	return nil
}

// eachPythonFile gives a function each file, by its path in PythonDir.
func eachPythonFile(do func(name string, text []byte) error) error {
	return fs.WalkDir(pythonFiles, PythonDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".py" {
			return err
		}
		text, err := pythonFiles.ReadFile(path)
		if err != nil {
			return err
		}
		return do(strings.TrimPrefix(path, PythonDir+"/"), text)
	})
}

// PythonPath returns the value of PYTHONPATH: the session's Python part, followed by the user's value, or otherwise
// the default. dir is the session's folder as its programs see it. The value is empty for a session without a Python
// part.
func PythonPath(s resource.Session, dir, otherwise string) map[string]string {
	if !NeedsPython(s) {
		return nil
	}
	rest, asked := s.Environ()[PythonVariable]
	if !asked {
		rest = otherwise
	}
	path := filepath.Join(dir, PythonDir)
	if rest != "" { // an empty element would mean the program's working directory
		path += ":" + rest
	}
	return map[string]string{PythonVariable: path}
}

// withoutTF32 switches TF32 off for a target that lacks it. The first variable is that of NVIDIA's own libraries,
// which overrides what a program requests.
var withoutTF32 = map[string]string{
	"NVIDIA_TF32_OVERRIDE":         "0",
	"TRITON_F32_DEFAULT":           "ieee",
	"JAX_DEFAULT_MATMUL_PRECISION": "float32",
}

// Environment returns the environment of every program in a session: the target's figures under the names of
// gpu-cosplay, the slices, and the user's variables, which take precedence. It leaves out sensitive values, which are
// added when a program starts. sliceID is the UUID of the MIG slice or whole GPU of the session's first device. Where
// programs can reach no other GPU, alone is true and CUDA_VISIBLE_DEVICES has the numbers of the devices, which many
// programs expect; otherwise it has their UUIDs.
func Environment(s resource.Session, sliceID string, alone bool) map[string]string {
	t := s.Target
	var numbers, ids []string
	for i, device := range s.Devices(resource.Handle{UUID: sliceID}) {
		numbers, ids = append(numbers, strconv.Itoa(i)), append(ids, device.UUID)
	}
	visible := ids
	if alone {
		visible = numbers
	}
	env := map[string]string{
		"GPU_COSPLAY_SESSION":        s.Address.Short(),
		"GPU_COSPLAY_CARD":           t.Key,
		"GPU_COSPLAY_PRETTY":         t.Name,
		"GPU_COSPLAY_VRAM_GB":        number(float64(t.MemoryMiB) / 1024),
		"GPU_COSPLAY_FP32_TFLOPS":    number(t.FP32TFLOPS),
		"GPU_COSPLAY_BF16_TC_TFLOPS": number(t.TensorBF16TFLOPS),
		"GPU_COSPLAY_BW_GBS":         number(t.BandwidthGBs),
		"GPU_COSPLAY_TDP_W":          strconv.Itoa(t.PowerW),
		"GPU_COSPLAY_PHYS_VRAM_MIB":  strconv.Itoa(s.Fit.Got.MemoryMiB),
		"CUDA_VISIBLE_DEVICES":       strings.Join(visible, ","),
		"NVIDIA_VISIBLE_DEVICES":     strings.Join(ids, ","),
		"PIP_BREAK_SYSTEM_PACKAGES":  "1", // the session itself isolates packages
	}
	if slices.Contains(t.Lacks(), "tf32") {
		maps.Copy(env, withoutTF32)
	}
	maps.Copy(env, s.Env)
	return env
}

// MPS returns the variables by which the programs of a session use their GPU through the MPS daemon with these pipes,
// with the session's shares as limits. It is empty for a session without a daemon. A program that clears them gets the
// daemon's defaults.
func MPS(s resource.Session, pipes string) map[string]string {
	if s.MPS == "" {
		return nil
	}
	env := map[string]string{resource.PipeVariable: pipes, resource.MemoryVariable: resource.MemoryLimits(len(s.More)+1, s.Target.MemoryMiB+resource.ContextMiB)}
	if s.Slice.Percent > 0 {
		env[resource.PercentVariable] = strconv.Itoa(s.Slice.Percent)
	}
	return env
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
