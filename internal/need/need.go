// Package need is for tests that take more than Go: a Docker engine, root, a
// program. Where that is wanting they are left out, and said so; where nothing
// may be left out, which COSPLAY_DOCKER=1 tells, they fail.
package need

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Everything reports whether no test may be left out.
func Everything() bool { return os.Getenv("COSPLAY_DOCKER") == "1" }

// Lacking ends a test for want of something, told in words.
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if Everything() {
		t.Fatalf("nothing may be left out (COSPLAY_DOCKER=1), but %s", why)
	}
	t.Skip(why)
}

// Root ends a test where this is not root with the programs at hand.
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

// Judge is NVIDIA's own nvidia-smi, which judges the simulated drivers and the
// facades: the one that scripts/install-nvidia-smi has fetched, or the machine's.
// Where there is none a test fails, unless COSPLAY_NO_NVIDIA_SMI=1 lets it go
// without.
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
