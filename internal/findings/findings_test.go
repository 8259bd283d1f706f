package findings_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/findings"
	"cosplay/internal/public"
)

// clock gives a later time at each reading.
type clock int

func (c *clock) next() string {
	*c++
	return "2026-01-01T00:00:0" + string('0'+rune(*c)) + "Z"
}

func drift(class, session string) public.Drift {
	return public.Drift{Class: class, Host: "lab", Session: &session, From: "running", To: "stopped"}
}

func classes[T any](all []T, of func(T) string) []string {
	var names []string
	for _, one := range all {
		names = append(names, of(one))
	}
	return names
}

func dated(d public.DatedDrift) string { return d.Class + " " + d.Since + " " + d.Ended }
func open(d public.DatedDrift) string  { return d.Class + " " + d.Since }

// reread is a record after it was written to a file and read.
func reread(t *testing.T, r findings.Record) findings.Record {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again findings.Record
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

func TestBeginAndEnd(t *testing.T) {
	var now clock
	var record findings.Record
	step := func(found ...public.Drift) findings.Change {
		c := findings.Compare(record, found, now.next())
		record = reread(t, c.Record)
		return c
	}
	if c := step(); c.Changed {
		t.Error("nothing found: the record changes")
	}
	c := step(drift("a", "w"))
	want(t, "begun", classes(c.Begun, dated), "a 2026-01-01T00:00:02Z ")
	other := drift("a", "w")
	other.To = "paused"
	c = step(other, drift("a", "v"))
	want(t, "open", classes(c.Open, open), "a 2026-01-01T00:00:02Z", "a 2026-01-01T00:00:03Z")
	want(t, "begun", classes(c.Begun, dated), "a 2026-01-01T00:00:03Z ")
	if c = step(drift("a", "v"), other); c.Changed || len(c.Begun)+len(c.Ended) > 0 {
		t.Errorf("the same in another order: %+v", c)
	}
	c = step(drift("a", "v"))
	want(t, "ended", classes(c.Ended, dated), "a 2026-01-01T00:00:02Z 2026-01-01T00:00:05Z")
	if c = step(drift("a", "v")); c.Changed {
		t.Error("ended twice")
	}
	step()
	if len(record.Findings) > 0 {
		t.Errorf("the record keeps what no receiver knows: %+v", record)
	}
}

func TestSentOnce(t *testing.T) {
	var now clock
	informs := drift("image-moved", "w")
	informs.Informs = true
	record := findings.Compare(findings.Record{}, []public.Drift{drift("a", "w"), informs}, now.next()).Record
	begun, ended := record.Unsent("mail")
	want(t, "first", classes(begun, dated), "a 2026-01-01T00:00:01Z ")
	want(t, "first", classes(ended, dated))

	record = reread(t, record.Sent("mail", begun, ended, now.next()))
	begun, ended = record.Unsent("mail")
	if len(begun)+len(ended) > 0 {
		t.Errorf("sent again: %v %v", begun, ended)
	}
	// It ends while the receiver is down, comes back before it was sent, and ends for good.
	record = findings.Compare(record, nil, now.next()).Record
	record = findings.Compare(record, []public.Drift{drift("a", "w")}, now.next()).Record
	if begun, ended = record.Unsent("mail"); len(begun)+len(ended) > 0 {
		t.Errorf("the receiver knows that it is open: %v %v", begun, ended)
	}
	record = findings.Compare(record, nil, now.next()).Record
	for range 3 { // the receiver is down
		c := findings.Compare(record, nil, now.next())
		if c.Changed {
			t.Error("a clean run changes the record")
		}
		record = reread(t, c.Record)
	}
	_, ended = record.Unsent("mail")
	want(t, "end", classes(ended, dated), "a 2026-01-01T00:00:01Z 2026-01-01T00:00:05Z")
	if left := record.Sent("mail", nil, ended, "").Findings; len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left := findings.Compare(record, nil, "2026-01-09T00:00:00Z").Record.Findings; len(left) > 0 {
		t.Errorf("after a week without the receiver: %v", left)
	}
}

// TestReceivers: each receiver gets each beginning and each end once, also of what ends while it is sent.
func TestReceivers(t *testing.T) {
	var now clock
	record := findings.Compare(findings.Record{}, []public.Drift{drift("a", "w")}, now.next()).Record
	begun, _ := record.Unsent("mail")
	record = record.Sent("mail", begun, nil, now.next())
	begun, _ = record.Unsent("chat")
	want(t, "chat", classes(begun, dated), "a 2026-01-01T00:00:01Z ")
	record = findings.Compare(record, nil, now.next()).Record // it ends while chat is sent the beginning
	record = record.Sent("chat", begun, nil, now.next())
	for _, receiver := range []string{"mail", "chat"} {
		begun, ended := record.Unsent(receiver)
		want(t, receiver, classes(begun, dated))
		want(t, receiver, classes(ended, dated), "a 2026-01-01T00:00:01Z 2026-01-01T00:00:03Z")
		record = record.Sent(receiver, nil, ended, now.next())
	}
	if len(record.Findings) > 0 {
		t.Errorf("left: %v", record)
	}
	// It began and ended while the only receiver was sent the beginning.
	record = findings.Compare(record, []public.Drift{drift("a", "w")}, now.next()).Record
	begun, _ = record.Unsent("mail")
	record = findings.Compare(record, nil, now.next()).Record.Sent("mail", begun, nil, now.next())
	_, ended := record.Unsent("mail")
	want(t, "mail", classes(ended, dated), "a 2026-01-01T00:00:07Z 2026-01-01T00:00:09Z")
}

func TestRebootIsOneFinding(t *testing.T) {
	found := []public.Drift{{Class: "host-rebooted", Host: "lab"}}
	for _, name := range []string{"a", "b", "c"} {
		d := drift("slice-gone", name)
		d.ByReboot = true
		found = append(found, d)
	}
	c := findings.Compare(findings.Record{}, found, "2026-01-01T00:00:00Z")
	want(t, "open", classes(c.Open, open), "host-rebooted 2026-01-01T00:00:00Z")
}

func TestForeignSlicesAreSeveral(t *testing.T) {
	one := public.Drift{Class: "foreign-slice", Host: "lab", GPU: "GPU-1", To: "slot 1", Informs: true}
	two := one
	two.To = "slot 2"
	if c := findings.Compare(findings.Record{}, []public.Drift{one, two}, "2026-01-01T00:00:00Z"); len(c.Begun) != 2 {
		t.Errorf("begun: %v", c.Begun)
	}
}

// TestClock: a finding that began by a clock that was ahead began when cosplay saw that.
func TestClock(t *testing.T) {
	first := findings.Compare(findings.Record{}, []public.Drift{drift("a", "one")}, "2026-01-11T00:00:00Z")
	second := findings.Compare(reread(t, first.Record), []public.Drift{drift("a", "one")}, "2026-01-01T00:00:00Z")
	if third := findings.Compare(reread(t, second.Record), []public.Drift{drift("a", "one")}, "2026-01-01T00:00:09Z"); !second.Changed || third.Changed || third.Open[0].Since != "2026-01-01T00:00:00Z" {
		t.Errorf("%+v, %+v", second, third)
	}
}
