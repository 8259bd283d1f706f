package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/worldtest"
)

// TestAnyConfiguration: whatever of the language is put together, on a fleet that is large enough it is planned,
// applied, and found as it should be; or refused at a line.
func TestAnyConfiguration(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	targets := catalog.Targets()
	planned, refused := 0, 0
	for range 60 {
		with := firstValues()
		for _, path := range slices.Sorted(maps.Keys(values)) {
			if v := values[path][1]; v != "" && random.IntN(3) == 0 {
				with[path] = v
			}
		}
		with["target"] = fmt.Sprintf("%q", targets[random.IntN(len(targets))].Key)
		with["count"] = fmt.Sprint(random.IntN(6))
		if with["ssh.port"] != "" {
			with["ssh.port"] = "2200 + count.index"
		}
		if with["ports"] != "" {
			with["ports"] = `["${8080 + count.index}:80"]`
		}
		if with["name"] != "" {
			with["name"] = `"lab-${count.index}"`
		}
		text := fleetOf(with)
		w := &world{World: worldtest.New(t, "h200", "h200", "h200", "h200", "h200", "h200").WithDocker("one:latest", "two:latest"), t: t}
		p, diags := w.plan(text)
		if diags.HasErrors() {
			refused++
			checkPlaces(t, diags, text)
			continue
		}
		planned++
		w.apply(p)
		if again, diags := w.plan(text); diags.HasErrors() || !again.Empty() || again.Diff.Changes() {
			t.Errorf("after the apply there is more to do: %v\n%s\n%s", diags, again, text)
		}
	}
	t.Logf("%d planned, %d refused", planned, refused)
	if planned < 20 {
		t.Error("too few were planned for a result")
	}
}

// checkPlaces makes sure that errors stand at a line and say what to do.
func checkPlaces(t *testing.T, diags hcl.Diagnostics, text string) {
	t.Helper()
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		if d.Subject == nil || d.Subject.Start.Line < 1 || d.Subject.End.Byte > len(text) || strings.TrimSpace(d.Detail) == "" {
			t.Errorf("%s: %s: %v\n%s", d.Summary, d.Detail, d.Subject, text)
		}
	}
}
