package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cosplay/internal/resource"
)

const gpu = "GPU-51a0c0de"

func who(lineage string) resource.Holder {
	return resource.Holder{Lineage: lineage, State: "/home/" + lineage + "/cosplay.state.json", User: lineage}
}

func locked(mhz int) resource.Settings { return resource.Settings{}.With(resource.SMClock, mhz) }

// blank is the look at a GPU that reports nothing.
func blank() (*Found, error) { return &Found{}, nil }

func TestWholeGPUHasRoomForOne(t *testing.T) {
	for _, first := range []bool{true, false} {
		g := resource.Page{UUID: gpu}
		if err := Hold(&g, who("a"), Take{Whole: first}, nil); err != nil {
			t.Fatal(err)
		}
		err := Hold(&g, who("b"), Take{Whole: !first, Others: []string{"a"}}, nil)
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "/home/a/cosplay.state.json") {
			t.Errorf("a whole %v, b whole %v: %v", first, !first, err)
		}
	}
}

// TestSlices: only the one who made a slice may destroy it, and a slice that is
// noted for another cannot be claimed.
func TestSlices(t *testing.T) {
	at := func(start int, uuid string) resource.LiveSlice {
		return resource.LiveSlice{Slice: resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: start, Size: 1}, Handle: resource.Handle{UUID: uuid}}
	}
	g := resource.Page{UUID: gpu}
	if err := NoteSlice(&g, "a", at(0, "MIG-a")); err == nil {
		t.Error("who holds nothing makes a slice")
	}
	if err := Hold(&g, who("a"), Take{Slices: []resource.LiveSlice{at(0, "MIG-a")}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := Hold(&g, who("b"), Take{Others: []string{"a"}, Slices: []resource.LiveSlice{at(0, "MIG-a"), at(1, "MIG-b")}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		lineage string
		slice   resource.LiveSlice
		allowed bool
	}{
		{"a", at(0, "MIG-a"), true},
		{"a", at(0, "MIG-other"), false},
		{"a", at(1, "MIG-b"), false},
		{"b", at(0, "MIG-a"), false},
		{"b", at(1, "MIG-b"), true},
		{"c", at(2, "MIG-c"), false},
	} {
		if err := MayDestroy(&g, test.lineage, test.slice); (err == nil) != test.allowed {
			t.Errorf("%s destroys %s: %v", test.lineage, test.slice.UUID, err)
		}
	}
	DropSlice(&g, "b", at(1, "MIG-b"))
	if err := MayDestroy(&g, "b", at(1, "MIG-b")); err == nil {
		t.Error("a slice that was destroyed is destroyed again")
	}
}

// TestOnlyTheFirstUserActs for a project, and root, who does not replace that user.
func TestOnlyTheFirstUserActs(t *testing.T) {
	book := Book{Dir: t.TempDir()}
	as := func(uid int) Entry {
		h := who("a")
		h.User, h.UID = fmt.Sprint("user", uid), &uid
		return Entry{Book: book, GPU: gpu, Holder: h}
	}
	slice := resource.LiveSlice{Slice: resource.Slice{GPU: gpu, Profile: "1g.18gb", Size: 1}}
	all := map[string]func(Entry) error{
		"take":    func(e Entry) error { return e.Take(Take{}, blank) },
		"set":     func(e Entry) error { return e.Setting(resource.Settings{}, blank) },
		"make":    func(e Entry) error { return errors.Join(e.Making(blank, Wanted{Slice: slice.Slice})...) },
		"destroy": func(e Entry) error { return e.Destroying(slice) },
		"leave":   Entry.Leave,
		"release": func(e Entry) error { return e.Release(Parting{}, blank) },
	}
	for _, user := range []struct {
		uid     int
		allowed bool
	}{{1000, true}, {1001, false}, {0, true}, {1000, true}} {
		for _, name := range []string{"take", "set", "make", "destroy", "leave", "release"} {
			if name == "release" && user.allowed {
				continue
			}
			if err := all[name](as(user.uid)); (err == nil) != user.allowed {
				t.Errorf("uid %d, %s: %v", user.uid, name, err)
			}
		}
		page, err := as(0).Page()
		if err != nil || len(page.Holders) != 1 || *page.Holders[0].UID != 1000 || page.Holders[0].User != "user1000" {
			t.Errorf("after uid %d: %+v, %v", user.uid, page.Holders, err)
		}
	}
}

// TestHalfKnownSlice: a slice that was being made when its maker died has no UUID
// in the book. What another project has made in its place since is not meant.
func TestHalfKnownSlice(t *testing.T) {
	at := resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 3, Size: 1}
	g := resource.Page{UUID: gpu, Holders: []resource.Holder{who("a"), who("b")}}
	g.Holders[0].Slices = []resource.LiveSlice{{Slice: at}}
	theirs := resource.LiveSlice{Slice: at, Handle: resource.Handle{UUID: "MIG-b"}}
	if err := MayDestroy(&g, "a", theirs); err != nil {
		t.Errorf("what may be its own: %v", err)
	}
	g.Holders[1].Slices = []resource.LiveSlice{theirs}
	if err := MayDestroy(&g, "a", theirs); err == nil {
		t.Error("another's slice may be destroyed")
	}
}

// TestBook: many at once, and nothing is lost; with the last holder the page is removed.
func TestBook(t *testing.T) {
	book := Book{Dir: t.TempDir()}
	for i := range 2 {
		if err := (Entry{Book: book, GPU: fmt.Sprint("GPU-", i), Holder: who(fmt.Sprint("p", 8+i))}).Take(Take{}, blank); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			e := Entry{Book: book, GPU: fmt.Sprint("GPU-", i%2), Holder: who(fmt.Sprint("p", i))}
			var others []string
			for o := range 10 {
				others = append(others, fmt.Sprint("p", o))
			}
			if err := e.Take(Take{Baseline: locked(i), Others: others}, blank); err != nil {
				t.Error(err)
			}
			for start := range 5 {
				if err := errors.Join(e.Making(blank, Wanted{Slice: resource.Slice{GPU: e.GPU, Profile: "1g.18gb", Start: start, Size: 1}})...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	all, err := book.Read()
	if err != nil || len(all) != 2 || len(all[0].Holders) != 5 || len(all[1].Holders) != 5 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, h := range all[0].Holders[1:] {
		if len(h.Slices) != 5 {
			t.Errorf("%s has %d slices", h.Lineage, len(h.Slices))
		}
	}
	for i := range 10 {
		e := Entry{Book: book, GPU: fmt.Sprint("GPU-", i%2), Holder: who(fmt.Sprint("p", i))}
		if err := e.Release(Parting{}, blank); err != nil {
			t.Error(err)
		}
		if err := e.Release(Parting{}, blank); !errors.Is(err, ErrNotHeld) {
			t.Errorf("again: %v", err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(book.Dir, "ledger", "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestDamagedPages(t *testing.T) {
	for content, want := range map[string]string{
		"":                         "damaged",
		`{"format_version": 1, "u`: "damaged",
		`{"format_version": 9, "uuid": "` + gpu + `"}`: "newer cosplay",
		`{"format_version": 1, "uuid": "GPU-other"}`:   "moved",
	} {
		book := Book{Dir: t.TempDir()}
		if err := os.MkdirAll(book.folder(), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(book.path(gpu), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := book.Read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
		if err := (Entry{Book: book, GPU: gpu, Holder: who("a")}).Take(Take{}, blank); err == nil {
			t.Errorf("%q was written over", content)
		}
		if now, _ := os.ReadFile(book.path(gpu)); string(now) != content {
			t.Errorf("%q became %q", content, now)
		}
	}
	if err := (Entry{Book: Book{Dir: t.TempDir()}, GPU: "../x"}).Release(Parting{}, blank); err == nil {
		t.Error("a page outside of the book")
	}
}

// TestHostNames: a host has one ledger, whatever each project calls it.
func TestHostNames(t *testing.T) {
	g := resource.Page{UUID: gpu}
	if err := Hold(&g, who("a"), Take{}, nil); err != nil {
		t.Fatal(err)
	}
	made := resource.LiveSlice{Slice: resource.Slice{Host: "lab", GPU: gpu, Profile: "1g.18gb", Start: 1, Size: 1}, Handle: resource.Handle{UUID: "MIG-1"}}
	if err := NoteSlice(&g, "a", made); err != nil {
		t.Fatal(err)
	}
	made.Host = "local"
	if err := MayDestroy(&g, "a", made); err != nil {
		t.Error(err)
	}
	elsewhere := made
	elsewhere.Start = 2
	if MayDestroy(&g, "a", elsewhere) == nil {
		t.Error("a slice that it has not made may be destroyed")
	}
	if DropSlice(&g, "a", made); len(g.Holders[0].Slices) != 0 {
		t.Errorf("%+v", g.Holders)
	}
}

// TestGoneMeanwhile: a project that counted on other holders, which have left, does not
// acquire a GPU that was restored, and does not release one that no project would restore.
func TestGoneMeanwhile(t *testing.T) {
	g := resource.Page{UUID: gpu}
	if err := Hold(&g, who("b"), Take{Others: []string{"a"}}, nil); err == nil || !strings.Contains(err.Error(), "have left it") || len(g.Holders) != 0 {
		t.Errorf("taken: %v, %+v", err, g)
	}
	for _, lineage := range []string{"a", "b"} {
		if err := Hold(&g, who(lineage), Take{Others: []string{"a"}[:len(g.Holders)]}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := Release(&g, who("a"), Parting{AsItIs: true}); err != nil {
		t.Error(err)
	}
	if err := Release(&g, who("b"), Parting{AsItIs: true}); err == nil || !strings.Contains(err.Error(), "have left the GPU") || len(g.Holders) != 1 {
		t.Errorf("let go: %v, %+v", err, g)
	}
}

// TestLateBaseline: a setting that was not read when the GPU was acquired gets its baseline before it is first changed,
// and only then.
func TestLateBaseline(t *testing.T) {
	e := Entry{Book: Book{Dir: t.TempDir()}, GPU: gpu, Holder: who("a"), BootID: "boot"}
	length := func(value int) resource.Settings { return resource.Settings{}.With(resource.TimeSlice, value) }
	if err := e.Take(Take{}, blank); err != nil {
		t.Fatal(err)
	}
	if err := e.Setting(length(1), func() (*Found, error) { return nil, errors.New("lost") }); err == nil {
		t.Error("changed without a baseline")
	}
	for _, now := range []int{2, 1} { // the second change finds the first
		if err := e.Setting(length(1), func() (*Found, error) { return &Found{Settings: length(now)}, nil }); err != nil {
			t.Fatal(err)
		}
		if err := e.Settled(length(1)); err != nil {
			t.Fatal(err)
		}
	}
	page, err := e.Page()
	if err != nil || !page.Baseline.Is(resource.TimeSlice, 2) || !page.Set.Is(resource.TimeSlice, 1) {
		t.Errorf("%+v, %v", page, err)
	}
	if err := e.Release(Parting{}, func() (*Found, error) { return &Found{Settings: length(1)}, nil }); err == nil {
		t.Error("released without its baseline")
	}
}

// TestStamp: a page that was written again shows even if its size and time are the same.
func TestStamp(t *testing.T) {
	book := Book{Dir: t.TempDir()}
	if stamp, err := book.Stamp(); stamp != "" || err != nil {
		t.Errorf("no ledger: %q, %v", stamp, err)
	}
	seen := map[string]bool{}
	for _, lineage := range []string{"a", "b"} {
		err := book.change(gpu, ourDeath, func(g *resource.Page) error {
			g.Holders = []resource.Holder{who(lineage)}
			return nil
		})
		if err := errors.Join(err, os.Chtimes(book.path(gpu), time.Unix(1, 0), time.Unix(1, 0))); err != nil {
			t.Fatal(err)
		}
		stamp, err := book.Stamp()
		if again, _ := book.Stamp(); err != nil || stamp != again || seen[stamp] {
			t.Errorf("%s: %q, then %q, %v", lineage, stamp, again, err)
		}
		seen[stamp] = true
	}
}
