package third

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/cli"
	"cosplay/internal/runtime"
	"cosplay/internal/state"
)

// TestMain registers the runtime, which is the one line that a runtime needs outside of
// its folder, and lets the test binary be the agent.
func TestMain(m *testing.M) {
	runtime.Register(driver)
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(cli.Main(os.Args[1:], cli.Stdio()))
	}
	os.Exit(m.Run())
}

const configuration = `
host "lab" {
  simulate = "1 x h200"
  runtime  = "bare"
}
session "worker" {
  count  = 2
  target = "2060"
  env    = { SEED = "1" }
}
`

// TestThirdRuntime runs all commands with a runtime that no other package names.
func TestThirdRuntime(t *testing.T) {
	dir := t.TempDir()
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "cosplay.hcl"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	try := func(code int, args []string, wanted ...string) {
		t.Helper()
		var out bytes.Buffer
		got := cli.Main(append([]string{"--chdir", dir}, args...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
		if got != code {
			t.Fatalf("cosplay %q ends with %d, want %d:\n%s", args, got, code, &out)
		}
		for _, w := range wanted {
			if !strings.Contains(out.String(), w) {
				t.Errorf("cosplay %q does not print %q:\n%s", args, w, &out)
			}
		}
	}
	bodies := func() int {
		all, _ := filepath.Glob(filepath.Join(dir, ".cosplay/sessions/default/lab.bare/*/session.json"))
		return len(all)
	}

	configure(strings.Replace(configuration, "target ", "image = \"debian\"\n  target ", 1))
	try(0, []string{"validate"}, `"image" has no effect on host "lab"`, `runtime is "bare", which does not use it`, `runtime = "docker"`)

	configure(configuration)
	try(0, []string{"plan"}, "bare runtime", "2 to create")
	try(0, []string{"apply", "--auto-approve"}, "bare folder")
	if n := bodies(); n != 2 {
		t.Fatalf("%d bodies after apply, want 2", n)
	}
	try(0, []string{"plan"}, "No changes.")
	try(0, []string{"doctor"}, "sessions run in bare folders")
	try(0, []string{"exec", "worker-1", "--", "pwd"}, "lab.bare/worker-1")
	try(1, []string{"logs", "worker-1"}, "session.worker[1] has no log: sessions of host \"lab\" run in bare folders")
	try(1, []string{"ssh", "worker-1"}, "session.worker[1] has no ssh")

	// A change replaces the body, since the runtime does not rewrite it.
	configure(strings.Replace(configuration, `"1" }`, `"2" }`, 1))
	try(0, []string{"plan"}, "2 to replace", "its bare folder is")
	try(0, []string{"apply", "--auto-approve"})

	if err := os.RemoveAll(filepath.Join(dir, ".cosplay/sessions/default/lab.bare/worker-0")); err != nil {
		t.Fatal(err)
	}
	try(2, []string{"drift"}, "bare folder", "removed by hand")
	try(0, []string{"apply", "--auto-approve"})
	if err := os.Remove(filepath.Join(dir, state.FileName)); err != nil {
		t.Fatal(err)
	}
	try(0, []string{"state", "rebuild", "--auto-approve"}, "2 sessions")
	try(0, []string{"plan"}, "No changes.")
	try(0, []string{"destroy", "--auto-approve"})
	if n := bodies(); n != 0 {
		t.Errorf("%d bodies after destroy", n)
	}
}
