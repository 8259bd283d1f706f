package plan_test

import (
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// TestExpire: a session that expires is on record as expired from the first step on, wherever the run is interrupted, so
// that no later apply brings it up again; the others stay.
func TestExpire(t *testing.T) {
	w := &world{World: worldtest.New(t, "h200"), t: t}
	p, diags := w.plan(lab + "session \"worker\" {\n  count = 2\n  target = \"2060\"\n}\n")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	w.apply(p)
	first, other := w.prior.Sessions[0], w.prior.Sessions[1]
	record := resource.Expired{Address: first.Address, At: 900, Why: "ttl"}
	ending := plan.Build(resource.Desired{Sessions: []resource.Session{other.Session}}, w.prior, w.Live, diff.Options{
		Left: map[resource.Address]bool{other.Address: true}, Ending: map[resource.Address]resource.Expired{first.Address: record}, Grace: 10})
	if err := ending.Check(); err != nil {
		t.Fatal(err)
	}
	now, ended := w.prior, false
	for _, s := range ending.Steps {
		op, ends := s.Do.Op.(plan.EndSession)
		now = plan.Fold(now, s.Do.Op, plan.Made{})
		ended = ended || ends
		if got, is := now.HasExpired(first.Address); is != ended || is && got != record {
			t.Errorf("after %s: %+v", s.ID, got)
		}
		if ends && (op.Grace != 10 || op.ID != first.ID) {
			t.Errorf("%+v", op)
		}
		if _, there := now.Session(first.Address); !there && !ended {
			t.Errorf("%s removes it before it is on record", s.ID)
		}
		if _, there := now.Session(other.Address); !there {
			t.Errorf("%s removes the other session", s.ID)
		}
	}
	if _, there := now.Session(first.Address); there || !ended {
		t.Errorf("it is still there, or was not ended:\n%s", ending)
	}
	extended := record
	extended.ExtendedTo = 5000
	back := plan.Fold(now.Expire(extended), plan.Prepare{Session: first.Session}, plan.Made{Body: first.Body, At: 2000})
	if s, _ := back.Session(first.Address); s.UpAt != 2000 || s.ExtendedTo != 5000 || len(back.Expired) != 0 {
		t.Errorf("up again: %d, extended to %d, %v", s.UpAt, s.ExtendedTo, back.Expired)
	}
}
