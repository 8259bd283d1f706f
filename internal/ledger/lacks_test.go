package ledger

import (
	"os"
	"slices"
	"testing"

	"cosplay/internal/resource"
)

// TestGivenUp: what a driver refused is known in the same boot, with the same driver,
// also after the holder was released; a file that cannot be read counts for nothing.
func TestGivenUp(t *testing.T) {
	const gpu, boot, driver = "GPU-0", "boot-1", "550.1"
	book := Book{Dir: t.TempDir()}
	one := resource.Degradation{Feature: resource.FeaturePower, Call: "nvmlDeviceSetPowerManagementLimit", Code: 3, Set: true}
	other := resource.Degradation{Feature: resource.FeatureClock, Call: "nvmlDeviceSetGpuLockedClocks", Code: 13, Set: true}
	e := Entry{Book: book, GPU: gpu, BootID: boot, Holder: resource.Holder{Lineage: "a", State: "/a", User: "ann"}}
	if news, err := e.GiveUp(one, driver, resource.Settings{}, resource.Page{}); err != nil || news {
		t.Errorf("no project holds the GPU: %v, %v", news, err)
	}
	if err := e.Book.change(gpu, powerLoss, func(g *resource.Page) error {
		g.Holders = []resource.Holder{e.Holder}
		g.Set = g.Set.With(resource.SMClock, 0)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	before, err := e.Page()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Book.change(gpu, powerLoss, func(g *resource.Page) error {
		Attempt(g, resource.Settings{}.With(resource.SMClock, 1575), boot)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		lacks resource.Degradation
		news  bool
	}{{one, true}, {other, true}, {one, false}} {
		if news, err := e.GiveUp(step.lacks, driver, locked(1575), before); err != nil || news != step.news {
			t.Errorf("%s is news: %v, %v", step.lacks.Feature, news, err)
		}
	}
	if page, err := e.Page(); err != nil || page.Set.Value(resource.SMClock) != 0 || page.Lock != nil {
		t.Errorf("a lock that was refused is noted: %+v, %v", page, err)
	}
	if err := os.Remove(book.path(gpu)); err != nil {
		t.Fatal(err)
	}
	if got := book.GivenUp(gpu, boot, driver); !slices.Equal(got, []resource.Degradation{one, other}) {
		t.Errorf("given up: %+v", got)
	}
	if got := slices.Concat(book.GivenUp(gpu, "boot-2", driver), book.GivenUp(gpu, boot, "560.1"), book.GivenUp("GPU-1", boot, driver), Book{}.GivenUp(gpu, boot, driver)); len(got) != 0 {
		t.Errorf("given up elsewhere: %+v", got)
	}
	if got := book.GivenUp(gpu, boot, resource.UnknownDriver); len(got) != 2 {
		t.Errorf("given up with a driver that does not report its version: %+v", got)
	}
	if err := os.WriteFile(book.LacksPath(gpu), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := book.GivenUp(gpu, boot, driver); len(got) != 0 {
		t.Errorf("a damaged file says %+v", got)
	}
	if pages, err := book.Read(); err != nil || len(pages) != 0 {
		t.Errorf("the file is taken for a page: %+v, %v", pages, err)
	}
}

// TestRefusedSettingIsTakenBack: a refused request removes its own note, unless the
// setting was noted again since.
func TestRefusedSettingIsTakenBack(t *testing.T) {
	before := resource.Page{Set: resource.Settings{}.With(resource.PowerLimit, 300_000)}
	for _, test := range []struct {
		name  string
		tried resource.Settings
		since resource.Settings
		want  resource.Settings
	}{
		{"a mode", resource.Settings{}.With(resource.MIGMode, resource.On), resource.Settings{}, before.Set},
		{"a mode, with a limit set since", resource.Settings{}.With(resource.MIGMode, resource.On), resource.Settings{}.With(resource.PowerLimit, 200_000), resource.Settings{}.With(resource.PowerLimit, 200_000)},
		{"a limit", resource.Settings{}.With(resource.PowerLimit, 400_000), resource.Settings{}, before.Set},
		{"a limit, with another set since", resource.Settings{}.With(resource.PowerLimit, 400_000), resource.Settings{}.With(resource.PowerLimit, 200_000), resource.Settings{}.With(resource.PowerLimit, 200_000)},
		{"a lock", locked(1575), resource.Settings{}, before.Set},
		{"a lock, with another set since", locked(1575), locked(1200), locked(1200).Over(before.Set)},
	} {
		g := before
		Attempt(&g, test.tried, "boot-1")
		if test.since != (resource.Settings{}) {
			Attempt(&g, test.since, "boot-1")
			Settled(&g, test.since)
		}
		takeBack(&g, test.tried, before)
		if g.Set != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, g.Set, test.want)
		}
	}
}
