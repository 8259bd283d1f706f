package docker

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
)

// TestRemains: a container identifies its session; only the key proves it,
// and without it the container is the project's only if the state has its ID.
func TestRemains(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made := w.prepare(t)
	only := func(r Runtime) resource.Remains {
		t.Helper()
		all, err := r.Remains(ctx)
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0]
	}
	want := w.s
	spec := w.s.Spec
	spec.SSH.Kept = made.SSHPort
	want.Spec = spec
	if got := only(w.Runtime); !got.Proven || !cmp.Equal(got.Body, made) || cmp.Diff(want, got.Session) != "" {
		t.Errorf("%+v: %s", got, cmp.Diff(want, got.Session))
	}

	// Without its folder only the labels are left.
	if err := os.Remove(filepath.Join(w.Folder(w.s.ID), "session.json")); err != nil {
		t.Fatal(err)
	}
	if got := only(w.Runtime); got.Session.ID != w.s.ID || got.Session.Address != w.s.Address || got.Session.Slice.GPU != w.s.Slice.GPU || !got.Session.Spec.IsZero() {
		t.Errorf("%+v", got.Session)
	}

	for name, key := range map[string]string{"another key": "other", "no key": ""} {
		lost := w.Runtime
		lost.Owner.Key = key
		if got := only(lost); got.Proven {
			t.Errorf("%s proves it", name)
		}
		check(t, unprepare(ctx, lost, w.s.ID))
		if all := w.labelled(t); len(all) != 1 {
			t.Fatalf("%s: a container without proof was removed", name)
		}
	}
	known := w.Runtime
	known.Owner.Key, known.Owner.Bodies = "other", []string{made.ID}
	if all, err := known.List(ctx); err != nil || len(all) != 1 || all[0].ID != made.ID {
		t.Errorf("%+v, %v", all, err)
	}
	check(t, unprepare(ctx, known, w.s.ID))
	if all := w.labelled(t); len(all) != 0 {
		t.Error("a container that the state has was not removed")
	}

	// The ID does not make another project's container the own one.
	other := container.Summary{ID: made.ID, Names: []string{"/" + w.s.BodyName()}, Labels: known.labels(w.s, w.given.UUID)}
	other.Labels[labelLineage] = "other"
	if known.owns(other) {
		t.Error("another lineage's container counts as own")
	}
}
