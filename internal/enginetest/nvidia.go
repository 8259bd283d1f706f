package enginetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cosplay/internal/durable"
	"cosplay/internal/need"
)

// Hook simulates NVIDIA's hook. An engine that finds it in the path accepts requests for GPUs, and calls it when a
// container starts.
type Hook struct {
	Dir string // for Options.Path
	log string
}

// recordHook records the devices that a container requested: the engine passes them to the hook in the container's
// environment.
const recordHook = `#!/bin/sh
bundle=$(grep -o '"bundle":"[^"]*"' | cut -d '"' -f 4)
grep -o '"NVIDIA_VISIBLE_DEVICES=[^"]*"' "$bundle/config.json" | cut -d = -f 2- | tr -d '"' >>%s
`

// RecordingHook returns a hook that grants every request and records it.
func RecordingHook(t testing.TB) Hook {
	t.Helper()
	h := Hook{Dir: t.TempDir()}
	h.log = filepath.Join(h.Dir, "requests")
	script(t, h.file(), fmt.Sprintf(recordHook, h.log))
	return h
}

// FailingHook returns a hook with the error message of NVIDIA's hook for a device that does not exist.
func FailingHook(t testing.TB, device string) Hook {
	t.Helper()
	h := Hook{Dir: t.TempDir()}
	script(t, h.file(), fmt.Sprintf("#!/bin/sh\necho 'nvidia-container-cli: device error: %s: unknown device' >&2\nexit 1\n", device))
	return h
}

func (h Hook) file() string { return filepath.Join(h.Dir, "nvidia-container-runtime-hook") }

// Requests returns the device ids that containers requested, separated by commas, in the order of their starts.
func (h Hook) Requests(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(h.log)
	if err != nil {
		t.Fatalf("the hook was not called: %v", err)
	}
	return strings.Fields(string(data))
}

// toolkit is the version of NVIDIA's container toolkit that supplies the runtime.
const toolkit = "v1.20.1"

// runtimeConfig is NVIDIA's own configuration file with the values that a test sets.
const runtimeConfig = `[nvidia-container-runtime]
mode = %q
runtimes = ["runc"]
log-level = "info"
debug = %q
[nvidia-container-runtime.modes.cdi]
spec-dirs = [%q]
`

// NVIDIARuntime returns the path of NVIDIA's own container runtime, for Options.Runtimes. The runtime works in mode
// "cdi" or "auto" and reads CDI specifications from a folder. It is built once from the module proxy and cached for
// the user; if that fails, the test is skipped.
func NVIDIARuntime(t testing.TB, mode, specDir string) string {
	t.Helper()
	program, err := builtRuntime()
	if err != nil {
		need.Lacking(t, "NVIDIA's container runtime cannot be built: %v", err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "nvidia-container-runtime", "config.toml")
	check(t, os.Mkdir(filepath.Dir(config), 0o755))
	check(t, durable.WriteFile(config, fmt.Appendf(nil, runtimeConfig, mode, filepath.Join(dir, "log"), specDir), 0o644))
	path := filepath.Join(dir, "runtime")
	script(t, path, fmt.Sprintf("#!/bin/sh\nXDG_CONFIG_HOME=%s exec %s \"$@\"\n", strconv.Quote(dir), strconv.Quote(program)))
	return path
}

// builtRuntime builds in a temporary place and renames the result, so that concurrent tests do not see an incomplete
// program.
func builtRuntime() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "cosplay-test")
	program := filepath.Join(dir, "nvidia-container-runtime-"+toolkit)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	build := exec.Command("go", "install", "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-container-runtime@"+toolkit)
	build.Dir = scratch
	build.Env = append(os.Environ(), "GOBIN="+scratch, "CGO_ENABLED=1", "CGO_CFLAGS=-w")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, os.Rename(filepath.Join(scratch, "nvidia-container-runtime"), program)
}

func script(t testing.TB, path, text string) {
	t.Helper()
	check(t, durable.WriteFile(path, []byte(text), 0o755))
}
