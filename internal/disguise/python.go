package disguise

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// What only Python can do is in these files. The folder that has them is first
// on PYTHONPATH, which holds in every environment that is made later: venv, uv
// and conda each have a site folder of their own and no look at another.
//
//go:embed python/*.py
var pythonFiles embed.FS

// PythonDir is that folder, in the folder of a session.
const PythonDir = "python"

// PythonVariable has the folders in which Python looks first.
const PythonVariable = "PYTHONPATH"

const pythonSession = "session.json" // what the files are told

// pythonFigures is what the session lacks, for the files in PythonDir.
type pythonFigures struct {
	Target string   `json:"target"` // "NVIDIA GeForce RTX 2060"
	Lacks  []string `json:"lacks"`  // number formats: "bf16"
	Strict bool     `json:"strict"`
}

// NeedsPython reports whether there is anything to be done in Python. Where
// there is not, Python is left alone.
func NeedsPython(s resource.Session) bool {
	lacks := s.Target.Lacks()
	return slices.Contains(lacks, "tf32") || s.Strict && len(lacks) > 0
}

// InstallPython puts the part of the disguise that is in Python into a session's
// folder, or takes it out where the session has no need of it.
func InstallPython(dir string, s resource.Session) error {
	folder := filepath.Join(dir, PythonDir)
	if !NeedsPython(s) {
		return os.RemoveAll(folder)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the session's part for Python: %w", err)
	}
	told, err := json.Marshal(pythonFigures{Target: s.Target.Name, Lacks: s.Target.Lacks(), Strict: s.Strict})
	if err != nil {
		return err
	}
	if err := durable.ReplaceFile(filepath.Join(folder, pythonSession), append(told, '\n'), 0o644); err != nil {
		return err
	}
	files, err := pythonFiles.ReadDir(PythonDir)
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := pythonFiles.ReadFile(PythonDir + "/" + file.Name())
		if err != nil {
			return err
		}
		if err := durable.ReplaceFile(filepath.Join(folder, file.Name()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// PythonPath is the variable by which Python finds a session's part for it, the
// session's folder being where its programs see it. Behind it stays what the user
// asked for, else what there is otherwise. It is empty for a session without.
func PythonPath(s resource.Session, dir, otherwise string) map[string]string {
	if !NeedsPython(s) {
		return nil
	}
	rest, asked := s.Environ()[PythonVariable]
	if !asked {
		rest = otherwise
	}
	path := filepath.Join(dir, PythonDir)
	if rest != "" { // an empty part would be the folder that a program is in
		path += ":" + rest
	}
	return map[string]string{PythonVariable: path}
}

// withoutTF32 are the switches of those who compute in TF32 where the GPU can
// and the target could not. The first is that of NVIDIA's own libraries: it wins
// over whatever a program asks of them.
var withoutTF32 = map[string]string{
	"NVIDIA_TF32_OVERRIDE":         "0",
	"TRITON_F32_DEFAULT":           "ieee",
	"JAX_DEFAULT_MATMUL_PRECISION": "float32",
}
