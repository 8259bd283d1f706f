package docker

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/google/go-cmp/cmp"

	"cosplay/internal/cdi"
	"cosplay/internal/inside"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// TestLinked: a container to which another is linked has a name for each.
func TestLinked(t *testing.T) {
	w := newWorld(t)
	if w.Engine.podman {
		t.Skip("podman has no links")
	}
	made := w.prepare(t)
	w.foreign(t, "a-cosplay-test-"+random(), container.Config{}, &container.HostConfig{Links: []string{w.s.BodyName() + ":db"}})
	if all := w.list(t); len(all) != 1 || !cmp.Equal(all[0], made) {
		t.Errorf("listed %+v, made %+v", all, made)
	}
	for _, first := range []string{"/a-client/db", "/" + w.s.BodyName()} {
		c := container.Summary{Names: []string{first, "/a-client/db", "/" + w.s.BodyName()}, Labels: w.labels(w.s, w.given.UUID)}
		if !w.owns(c) {
			t.Errorf("with %s as the first of its names it is not the project's", first)
		}
	}
}

// TestRenamed: a container of the project that has got another name stays its own.
func TestRenamed(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made := w.prepare(t)
	renamed := made
	away := func() {
		t.Helper()
		other := "cosplay-test-" + random()
		check(t, w.Engine.client.ContainerRename(ctx, made.ID, other))
		renamed.Altered = []resource.Alteration{{Part: resource.AlteredName, From: w.s.BodyName(), To: other}}
	}
	away()
	if all := w.list(t); len(all) != 1 || !cmp.Equal(all[0], renamed) {
		t.Errorf("under another name: %+v, made %+v", all, made)
	}
	if out, _, _ := w.exec(t, nil, "echo", "in"); out != "in\n" {
		t.Errorf("in it: %q", out)
	}
	if again := w.prepare(t); !cmp.Equal(again, made) {
		t.Errorf("prepared: %+v, was %+v", again, made)
	}
	if there, err := w.inspect(ctx, w.s.BodyName()); err != nil || there == nil || there.ID != made.ID {
		t.Errorf("it has not its name back: %v", err)
	}

	away()
	squatter := w.foreign(t, w.s.BodyName(), container.Config{}, nil)
	if _, err := w.Prepare(ctx, w.s, w.given); err == nil || !strings.Contains(err.Error(), "the name "+w.s.BodyName()+" is taken by the container "+squatter[:12]) {
		t.Errorf("with the name taken: %v", err)
	}
	if all := w.list(t); len(all) != 1 || !cmp.Equal(all[0], renamed) {
		t.Errorf("with the name taken: %+v, want %+v", all, renamed)
	}
	check(t, unprepare(ctx, w.Runtime, w.s.ID))
	if all := w.labelled(t); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
	if there, err := w.inspect(ctx, squatter); err != nil || there == nil {
		t.Errorf("a foreign container was touched: %v", err)
	}
	if _, err := os.Stat(w.Folder(w.s.ID)); err == nil {
		t.Error("the session folder stays")
	}
}

// TestCopies: labels that were copied, as docker commit does, prove nothing.
func TestCopies(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made := w.prepare(t)
	there, err := w.inspect(ctx, made.ID)
	check(t, err)
	copied := w.foreign(t, "cosplay-test-"+random(), container.Config{Labels: there.Config.Labels}, nil)
	w.kill(t, made.ID)
	if all := w.list(t); len(all) != 0 {
		t.Errorf("a copy of the labels is listed: %+v", all)
	}
	check(t, unprepare(ctx, w.Runtime, w.s.ID))
	if left, err := w.inspect(ctx, copied); err != nil || left == nil {
		t.Fatalf("a copy was touched: %v", err)
	}
	w.kill(t, copied)

	// With the folder copied too there is no telling: nothing is touched.
	made = w.prepare(t)
	check(t, w.Engine.client.ContainerRename(ctx, made.ID, "cosplay-test-"+random()))
	copied = w.foreign(t, "cosplay-test-"+random(), container.Config{Labels: there.Config.Labels}, &container.HostConfig{Mounts: []mount.Mount{bind(cdi.File{Host: w.Inside(w.s.ID), Container: "/run/cosplay"})}})
	_, err = w.Prepare(ctx, w.s, w.given)
	for doing, err := range map[string]error{"Prepare": err, "Unprepare": unprepare(ctx, w.Runtime, w.s.ID)} {
		if err == nil || !strings.Contains(err.Error(), "has 2 containers and none is called "+w.s.BodyName()) || !strings.Contains(err.Error(), made.ID[:12]) || !strings.Contains(err.Error(), copied[:12]) {
			t.Errorf("%s: %v", doing, err)
		}
	}
	if all := w.labelled(t); len(all) != 2 || len(w.list(t)) != 1 {
		t.Errorf("there are %+v, listed %+v", all, w.list(t))
	}
	// The name decides.
	check(t, w.Engine.client.ContainerRename(ctx, made.ID, w.s.BodyName()))
	if again := w.prepare(t); !cmp.Equal(again, made) {
		t.Errorf("prepared: %+v, was %+v", again, made)
	}
	w.kill(t, copied)
}

// TestLatecomer: a container whose creation was under way when its maker died
// appears after all is cleared; it can still be removed by the session's ID.
func TestLatecomer(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.leave(t)
	check(t, os.RemoveAll(w.Folders))
	if all := w.list(t); len(all) != 1 || all[0].Session != w.s.ID || all[0].State != resource.Stopped {
		t.Errorf("listed: %+v", all)
	}
	check(t, unprepare(ctx, w.Runtime, w.s.ID))
	if all := w.labelled(t); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
}

// TestFailedRemoval: as long as there is a container, its folder stays.
func TestFailedRemoval(t *testing.T) {
	w := newWorld(t)
	w.s.Command = []string{"nowhere"}
	back := w.through(t, func(out http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		out.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(out, `{"message": "the disk is on fire"}`)
		return true
	})
	_, err := w.Prepare(context.Background(), w.s, w.given)
	if err == nil || !strings.Contains(err.Error(), "with code 127") || !strings.Contains(err.Error(), "the disk is on fire") {
		t.Errorf("it says %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.Inside(w.s.ID), "cosplay-init")); err != nil || len(w.labelled(t)) != 1 {
		t.Errorf("there are %v, its folder: %v", w.labelled(t), err)
	}
	back()
	check(t, unprepare(context.Background(), w.Runtime, w.s.ID))
}

// TestForeignNames: names of other states' containers are foreign, those of this state's are not, sealed or not.
func TestForeignNames(t *testing.T) {
	e := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.RawQuery, labelLineage) {
			t.Errorf("asked for %s", r.URL)
		}
		fmt.Fprintf(w, `[{"Names": ["/cosplay-b", "/link"], "Labels": {%q: "other"}}, {"Names": ["/cosplay-a"], "Labels": {%q: "l"}}]`, labelLineage, labelLineage)
	})
	for lineage, want := range map[string]string{"l": "cosplay-b link", "": "cosplay-a cosplay-b link"} {
		got, err := (Runtime{Engine: e, Sessions: inside.On(runtime.Host{Owner: resource.Owner{Lineage: lineage}})}).foreignNames(context.Background())
		check(t, err)
		if names := strings.Join(got, " "); names != want {
			t.Errorf("lineage %q: %s, want %s", lineage, names, want)
		}
	}
}

// TestOne: a session's container is found by its name and, after docker rename, by its labels; one of the same name that
// belongs to another state, or to none, is not.
func TestOne(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made := w.prepare(t)
	one := func(r Runtime) string {
		t.Helper()
		all, err := r.One(ctx, w.s.ID)
		check(t, err)
		var ids []string
		for _, c := range all {
			ids = append(ids, c.ID)
		}
		return strings.Join(ids, " ")
	}
	listed, err := w.Runtime.list(ctx, w.s.ID)
	check(t, err)
	if all, err := w.One(ctx, w.s.ID); err != nil || !cmp.Equal(all, listed) || len(all) != 1 || all[0].ID != made.ID {
		t.Errorf("%+v, %v; listed %+v", all, err, listed)
	}
	others, forged := w.Runtime, w.Runtime
	others.Owner.Lineage, forged.Owner.Key, forged.Owner.Bodies = "another", "another", nil
	if got := one(others) + one(forged); got != "" {
		t.Errorf("for another state: %s", got)
	}
	check(t, w.Engine.client.ContainerRename(ctx, made.ID, "cosplay-test-"+random()))
	w.foreign(t, w.s.BodyName(), container.Config{}, nil)
	if got := one(w.Runtime); got != made.ID {
		t.Errorf("after rename, with its name taken: %q, want %s", got, made.ID)
	}
}
