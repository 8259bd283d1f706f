package apply_test

import (
	"strings"
	"testing"

	"cosplay/internal/apply"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

const contained = `host "lab" { runtime = "docker" }
session "worker" {
  count  = 2
  target = "2060"
}`

// TestRecoverContainers: a container whose creation was interrupted is found by its runtime, and taken over.
func TestRecoverContainers(t *testing.T) {
	w := worldtest.New(t, "h200").WithDocker(resource.DefaultImage)
	j := &worldtest.Journal{}
	if result, err := run(t, w, j, contained, resource.Prior{}, 1); err != nil || len(result.Failures) > 0 {
		t.Fatal(result.Failures, err)
	}
	var cut []apply.Entry // the ends of containers never came to the journal
	for _, e := range j.Entries {
		if e.Event != apply.Done || e.Made == nil || e.Made.Body == nil {
			cut = append(cut, e)
		}
	}
	recovered, notes := apply.Recover(resource.Prior{}, cut, w.Live)
	if len(notes) != 2 || len(recovered.Sessions) != 2 {
		t.Fatalf("%v, %+v", notes, recovered.Sessions)
	}
	for _, s := range recovered.Sessions {
		if s.Body == nil || s.Body.Runtime != "docker" || s.Spec.SSH.Kept != s.Body.SSHPort {
			t.Errorf("%s has %+v, and keeps the port %d", s.Address, s.Body, s.Spec.SSH.Kept)
		}
	}
	if p, _ := w.Plan(t, contained, recovered); !p.Empty() {
		t.Errorf("there is something left to do:\n%s", p)
	}
}

// TestContainersAtEveryPoint is TestCrashAtEveryPoint with containers and an image that is got first.
func TestContainersAtEveryPoint(t *testing.T) {
	points := 0
	for n := int64(0); ; n++ {
		w := worldtest.New(t, "h200").WithDocker()
		start := w.String()
		j := &worldtest.Journal{}
		reached := crash(w, j, n)
		if _, err := run(t, w, j, contained, resource.Prior{}, 1); err == nil && reached.Load() <= n {
			break
		}
		points++
		w.Fault = nil
		recovered, _ := apply.Recover(resource.Prior{}, j.Entries, w.Live)
		after := must(t, w, contained, recovered)
		if p, _ := w.Plan(t, contained, after); !p.Empty() {
			t.Fatalf("cut at %d: apply does not converge:\n%s", n, p)
		}
		must(t, w, "", after)
		if got := w.String(); got != start {
			t.Fatalf("cut at %d: the world is not as it was:\n%s", n, got)
		}
	}
	t.Logf("%d points", points)
	if points < 15 {
		t.Errorf("only %d points: the test proves too little", points)
	}
}

// TestImageWithoutEngine: a plan that was made for containers is refused where sessions run as processes now.
func TestImageWithoutEngine(t *testing.T) {
	w, j := worldtest.New(t, "h200").WithDocker(), &worldtest.Journal{}
	p, _ := w.Plan(t, contained, resource.Prior{})
	r := w.Run(j, 1)
	lab := r.Hosts[worldtest.HostName]
	lab.Images = nil
	r.Hosts[worldtest.HostName] = lab
	result, err := r.Execute(t.Context(), p, resource.Prior{}, w.Live)
	if err != nil || len(result.Failures) == 0 || !strings.Contains(result.Failures[0].Err.Error(), "cosplay plan") {
		t.Errorf("%v, %v", result.Failures, err)
	}
}
