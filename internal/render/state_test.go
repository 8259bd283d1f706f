package render

import (
	"bytes"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// partOf is what a state remembers of one session and of its GPU.
func partOf(w *world, i int) StatePart {
	s := w.prior.Sessions[i]
	g, _ := w.prior.GPU(s.Slice.Host, s.Slice.GPU)
	return StatePart{Lineage: w.prior.Lineage, Serial: w.prior.Serial, Sessions: []resource.PriorSession{s}, GPUs: []resource.PriorGPU{g}}
}

func TestStateShow(t *testing.T) {
	for name, test := range map[string]struct {
		world *world
		want  []string
	}{
		"a process": {one().applied(), []string{"session.worker[0]", "  slice            1g.18gb, slot 0", "(GPU instance ", "  fit              at 1575 MHz: FP32 +0.0 %", "  session folder   "}},
		"docker":    {blocks().applied(), []string{"  image ", "  user ", "  container ", "  restart "}},
		"not made":  {unmade(one().applied()), []string{"  session folder   not created yet"}},
	} {
		var out bytes.Buffer
		Show(&out, Style{}, StateItem{partOf(test.world, 0), test.world.prior})
		for _, want := range append(test.want, "SET TO", "MIG mode") {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, out.String())
			}
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if columns(line) > defaultWidth {
				t.Errorf("%s is too wide: %q", name, line)
			}
		}
	}
}

// unmade takes the first session's folder and slice away.
func unmade(w *world) *world {
	w.prior.Sessions[0].Body, w.prior.Sessions[0].Handle = nil, nil
	return w
}

// TestForgotten: each thing that is left is named with the commands that remove
// it, and a GPU with those that give it its settings back, in their order.
func TestForgotten(t *testing.T) {
	const was, set, lock = 700000, 320000, 1200
	g := resource.PriorGPU{Host: "lab", UUID: "GPU-1",
		Baseline: resource.Settings{}.With(resource.MIGMode, resource.Off).With(resource.PersistenceMode, resource.Off).With(resource.PowerLimit, was).With(resource.SMClock, lock),
		Applied:  resource.Settings{}.With(resource.MIGMode, resource.On).With(resource.PersistenceMode, resource.On).With(resource.PowerLimit, set).With(resource.SMClock, set)}
	s := resource.PriorSession{Session: resource.Session{Address: resource.One("a"), Slice: resource.Slice{Host: "lab", GPU: "GPU-1", Profile: "1g.18gb", Size: 1}},
		Handle: &resource.Handle{GPUInstance: 7, ComputeInstance: 1, UUID: "MIG-1"}, Body: &resource.Body{ID: "0123456789abcdef", Runtime: "docker"}}
	half := s
	half.Address, half.Handle, half.Body = resource.One("half"), &resource.Handle{GPUInstance: 8}, &resource.Body{ID: "/my files/half", Runtime: "process"}
	v := ForgottenView{StatePart: StatePart{Serial: 3, Sessions: []resource.PriorSession{s, half}, GPUs: []resource.PriorGPU{g}}}
	commands := []string{
		"docker rm -f 0123456789ab",
		"nvidia-smi mig -i GPU-1 -dci -gi 7 -ci 1",
		"nvidia-smi mig -i GPU-1 -dgi -gi 7",
		"rm -r '/my files/half'",
		"nvidia-smi mig -i GPU-1 -dgi -gi 8",
		"nvidia-smi -i GPU-1 -lgc 1200,1200",
		"nvidia-smi -i GPU-1 -pl 700",
		"nvidia-smi -i GPU-1 -mig 0",
		"nvidia-smi -i GPU-1 -pm 0",
	}
	var out, data bytes.Buffer
	Forgotten(&out, Style{}, v)
	Show(&out, Style{}, v)
	if err := JSON(&data, v); err != nil {
		t.Fatal(err)
	}
	rest, said := out.String(), data.String()
	for _, c := range commands {
		var found bool
		if _, rest, found = strings.Cut(rest, "  "+c+"\n"); !found {
			t.Errorf("no %q, or in the wrong place:\n%s", c, out.String())
		}
		if !strings.Contains(said, `"`+c+`"`) {
			t.Errorf("no %q in JSON", c)
		}
	}
	for _, want := range []string{"session.half", "MIG-1", "FOUND WITH", "Forgotten: 2 sessions and 1 GPU. ", "serial 2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q:\n%s", want, out.String())
		}
	}

	// A clock lock of an unknown state is lifted; a setting that cosplay never changed is left alone.
	g.Baseline, g.Applied = g.Baseline.Without(resource.SMClock), resource.Settings{}.Copy(resource.SMClock, g.Applied)
	if got := strings.Join(v.restoring(g), "; "); got != "nvidia-smi -i GPU-1 -rgc" {
		t.Errorf("restores by %s", got)
	}
	if v.SimDirs = map[string]string{"lab": "/x/.cosplay/sim/lab"}; !strings.HasPrefix(v.restoring(g)[0], "LD_LIBRARY_PATH=/x/.cosplay/sim/lab nvidia-smi ") {
		t.Errorf("on a simulated host: %s", v.restoring(g))
	}
}

// TestStateSecret: no screen of the state shows its key.
func TestStateSecret(t *testing.T) {
	w := blocks().applied()
	v := partOf(w, 0)
	var out bytes.Buffer
	Show(&out, Style{}, v)
	Show(&out, Style{Verbose: true}, StateItem{v, w.prior})
	Forgotten(&out, Style{Verbose: true}, ForgottenView{StatePart: v})
	for _, write := range []func() error{
		func() error { return JSON(&out, v) },
		func() error { return JSON(&out, StateItem{StatePart: v}) },
		func() error { return JSON(&out, StateItem{StatePart: StatePart{GPUs: v.GPUs}}) },
		func() error { return JSON(&out, ForgottenView{StatePart: v}) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if w.prior.Key == "" || strings.Contains(out.String(), w.prior.Key) {
		t.Errorf("the key %q is shown, or there is none", w.prior.Key)
	}
}
