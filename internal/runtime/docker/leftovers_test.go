package docker

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"cosplay/internal/resource"
)

// TestUnstarted: a container that was created and never started is no stopped one.
func TestUnstarted(t *testing.T) {
	w := newWorld(t)
	w.leave(t)
	if all := w.list(t); len(all) != 1 || all[0].State != resource.Stopped || !all[0].Unstarted {
		t.Errorf("listed: %+v", all)
	}
	made := w.prepare(t)
	check(t, w.Engine.client.ContainerKill(context.Background(), made.ID, "KILL"))
	if all := w.list(t); len(all) != 1 || all[0].State != resource.Stopped || all[0].Unstarted {
		t.Errorf("after it ran: %+v", all)
	}
}

// TestLeftovers: a container of a session that the state does not know is a leftover if
// it never ran, and a folder if no container has it, of any owner.
func TestLeftovers(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	leftovers := func(known ...string) []resource.Body {
		t.Helper()
		all, err := w.Leftovers(ctx, w.list(t), known)
		check(t, err)
		return all
	}
	if all := leftovers(); len(all) != 0 {
		t.Errorf("before anything there is %+v", all)
	}
	made := w.prepare(t)
	if all := leftovers(); len(all) != 0 {
		t.Errorf("what runs, or was forgotten, is a leftover: %+v", all)
	}
	check(t, w.remove(ctx, made.ID))
	if all := leftovers(); len(all) != 1 || all[0].Session != w.s.ID || all[0].ID != "" {
		t.Errorf("of a folder alone: %+v", all)
	}
	if all := leftovers(w.s.ID); len(all) != 0 {
		t.Errorf("what the state knows is a leftover: %+v", all)
	}

	// A container of another user has the folder, and it is not touched.
	out, err := exec.Command("docker", "create", "-v", w.Folder(w.s.ID)+":/x", tiny, "x").Output()
	check(t, err)
	theirs := string(out[:12])
	if all := leftovers(); len(all) != 0 {
		t.Errorf("what another container has is a leftover: %+v", all)
	}
	check(t, exec.Command("docker", "rm", theirs).Run())

	// A container that the engine finished too late.
	granted, err := w.grant(ctx, w.access(), w.s, w.given, false)
	check(t, err)
	late, err := w.create(ctx, w.s, w.given.UUID, granted, 0)
	check(t, err)
	if all := leftovers(); len(all) != 1 || all[0].ID != late {
		t.Errorf("of a container that never ran: %+v", all)
	}
	forger := w.Runtime
	forger.Owner.Key = "other"
	if all, err := forger.Leftovers(ctx, w.list(t)[:0], nil); err != nil || len(all) != 0 {
		t.Errorf("with another key: %+v, %v", all, err)
	}
	check(t, unprepare(ctx, w.Runtime, w.s.ID))
	if _, err := os.Stat(w.Folder(w.s.ID)); err == nil || len(leftovers()) != 0 || len(w.labelled(t)) != 0 {
		t.Errorf("it was not removed: %+v", leftovers())
	}
}
