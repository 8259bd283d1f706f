package plan_test

import (
	"testing"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// TestUpAt: a lifetime counts from when the session was created, replaced or started; what is updated in place goes on
// with its lifetime and keeps its extension.
func TestUpAt(t *testing.T) {
	session := resource.Session{Address: resource.One("a"), ID: "a", Runtime: "docker"}
	body := &resource.Body{ID: "1"}
	for _, test := range []struct {
		name string
		was  resource.Moment
		op   plan.Op
		want resource.Moment
	}{
		{"created", 0, plan.Prepare{Session: session}, 900},
		{"replaced", 100, plan.Prepare{Session: session}, 900},
		{"started by apply", 100, plan.Prepare{Session: session, How: plan.Start}, 900},
		{"started", 100, plan.StartSession{Address: session.Address}, 900},
		{"updated in place", 100, plan.Prepare{Session: session, How: plan.Refit}, 100},
		{"recorded", 100, plan.Record{Session: session}, 100},
		{"stopped", 100, plan.StopSession{Address: session.Address}, 100},
		{"recorded, of an older cosplay", 0, plan.Record{Session: session}, 900},
		{"updated, of an older cosplay", 0, plan.Prepare{Session: session, How: plan.Refit}, 900},
		{"imported", 0, plan.Adopt{Session: resource.PriorSession{Session: session, Body: body}}, 900},
	} {
		was := resource.PriorSession{Session: session, Body: body, UpAt: test.was, ExtendedTo: 500}
		got, _ := plan.Fold(resource.Prior{Sessions: []resource.PriorSession{was}}, test.op, plan.Made{Body: body, At: 900}).Session(session.Address)
		if got.UpAt != test.want {
			t.Errorf("%s: up at %d, want %d", test.name, got.UpAt, test.want)
		}
		if kept := got.ExtendedTo == 500; kept != (test.want == test.was) && test.was != 0 {
			t.Errorf("%s: extended to %d", test.name, got.ExtendedTo)
		}
	}
}
