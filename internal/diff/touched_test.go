package diff_test

import (
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// TestTouched: a plan that leaves a session out changes no GPU on which it touches no session, and releases that of a
// session that it removes.
func TestTouched(t *testing.T) {
	const stays = "host \"lab\" {}\nsession \"a\" {\n  target = \"2060\"\n  gpu    = 0\n}\n"
	w := worldtest.New(t, "h200", "h200")
	prior := bring(t, w, stays+"session \"b\" {\n  target = \"2060\"\n  gpu    = 1\n}\n", resource.Prior{})
	desired, prior, options, diags := w.Desired(t, stays, prior)
	if diags.HasErrors() || len(prior.GPUs) != 2 {
		t.Fatal(diags, prior.GPUs)
	}
	w.GPU("GPU-0").PowerMW = 500_000
	options.Left = map[resource.Address]bool{resource.One("a"): true}
	got := diff.Compare(desired, prior, w.Live, options).GPUs
	if len(got) != 1 || got[0].UUID != "GPU-1" || !got[0].GiveBack {
		t.Errorf("%+v", got)
	}
}
