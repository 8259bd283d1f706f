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
