package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// hardware is a GPU as the driver has it.
type hardware struct {
	resource.Settings
	lock   int // which the driver does not report
	slices []resource.LiveSlice
	boot   string
}

func newHardware() *hardware {
	h := &hardware{boot: "boot-1"}
	h.set(resource.Settings{}.With(resource.MIGMode, resource.Off).With(resource.PersistenceMode, resource.Off).With(resource.PowerLimit, 700_000))
	return h
}

func (h *hardware) set(s resource.Settings) {
	h.Settings = s.Over(h.Settings)
	if s.Has(resource.SMClock) {
		h.lock = s.Value(resource.SMClock)
	}
	h.Settings = h.Without(resource.SMClock)
}

func (h *hardware) found() *Found {
	return &Found{Settings: h.Settings, BootID: h.boot, Now: "2026-01-02T03:04:05Z", GPU: resource.GPU{Slices: h.slices, LowClockReason: true}}
}

// change is what the agent does for a request.
func (h *hardware) change(g *resource.Page, lineage string, s resource.Settings) error {
	if err := MaySet(g, lineage, s); err != nil {
		return err
	}
	rebooted(g, h.found())
	Attempt(g, s, h.boot)
	h.set(s)
	Settled(g, s)
	return nil
}

// forget makes the driver drop what it keeps in persistence mode only: a limit of 500 W,
// which is in the baseline.
func (h *hardware) forget(t *testing.T, g *resource.Page, lineage string) {
	t.Helper()
	g.Baseline = g.Baseline.With(resource.PersistenceMode, resource.On).With(resource.PowerLimit, 500_000)
	for _, persistence := range []int{resource.Off, resource.On} {
		if err := h.change(g, lineage, resource.Settings{}.With(resource.PersistenceMode, persistence)); err != nil {
			t.Fatal(err)
		}
	}
	h.Settings, h.lock = h.With(resource.PowerLimit, 700_000), 0
}

func user(lineage string, uid int) resource.Holder {
	h := who(lineage)
	h.UID = &uid
	return h
}

// TestTheAgentReadsTheBaseline: a request cannot say what a GPU was like.
func TestTheAgentReadsTheBaseline(t *testing.T) {
	lie := resource.Settings{}.With(resource.MIGMode, resource.Off).With(resource.PersistenceMode, resource.Off).With(resource.PowerLimit, 210_000).With(resource.SMClock, 345)
	changed := resource.Settings{}.With(resource.PowerLimit, 700_000).With(resource.PersistenceMode, resource.On) // the GPU has the first
	for _, test := range []struct {
		name  string
		take  Take
		power int
		want  string
	}{
		{"unread", Take{Baseline: resource.Settings{}.With(resource.PowerLimit, 700_000)}, 0, "power limit of the GPU cannot be read now (nvmlDeviceGetPowerManagementLimit: Unknown Error (999)), and was 700 W when the plan was made"},
		{"another limit", Take{Baseline: lie}, 0, "power limit of the GPU is 700 W, and was 210 W when the plan was made"},
		{"as from its state", Take{Baseline: lie, FromState: true}, 0, "only root can confirm that"},
		{"as the configuration states it", Take{Baseline: lie, Stated: true}, 0, "the configuration states that the baseline of the GPU is power limit 210 W"},
		{"as the configuration states it, by root", Take{Baseline: lie, Stated: true, Trusted: true, Changed: changed}, 210_000, ""},
		{"as from its state, by root", Take{Baseline: lie, FromState: true, Trusted: true}, 210_000, ""},
		{"nothing", Take{}, 700_000, ""},
		{"the same", Take{Baseline: resource.Settings{}.With(resource.PowerLimit, 700_000)}, 700_000, ""},
	} {
		g := resource.Page{UUID: gpu}
		found := newHardware().found()
		if test.name == "unread" {
			found.Settings = found.Settings.Without(resource.PowerLimit)
			found.GPU.Degraded = []resource.Degradation{{Feature: resource.FeaturePower, Call: "nvmlDeviceGetPowerManagementLimit", Code: 999, Message: "Unknown Error"}}
		}
		err := Hold(&g, user("v", 1234), test.take, found)
		if test.want != "" {
			if err == nil || !strings.Contains(err.Error(), test.want) || len(g.Holders) > 0 {
				t.Errorf("%s: %v, %+v", test.name, err, g)
			}
			continue
		}
		if err != nil || g.Baseline.Value(resource.PowerLimit) != test.power || g.Baseline.Is(resource.MIGMode, resource.On) {
			t.Errorf("%s: %v, %+v", test.name, err, g.Baseline)
		}
		if g.Set.Is(resource.PowerLimit, 700_000) != test.take.Stated || g.Set.Has(resource.PersistenceMode) {
			t.Errorf("%s: counted as set: %+v", test.name, g.Set)
		}
	}
}

// TestReleaseWantsTheBaseline: the last holder stays until the GPU is as it was
// found, and may give up only what cosplay has not done itself.
func TestReleaseWantsTheBaseline(t *testing.T) {
	clock, none := 345, 0
	slice := resource.LiveSlice{Slice: resource.Slice{GPU: gpu, Profile: "1g.18gb", Size: 1}, Handle: resource.Handle{UUID: "MIG-v"}}
	for _, test := range []struct {
		name    string
		do      func(*hardware, *resource.Page)
		want    string // "" if it is released
		abandon string // what is said where the user gives it up; "" if it is released then
	}{
		{name: "nothing was changed", do: func(*hardware, *resource.Page) {}},
		{"power", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 200_000))
		}, "power limit 200 W instead of 700 W", "only root"},
		{"by a milliwatt", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 699_999))
		}, "power limit 699.999 W instead of 700 W", "only root"},
		{"clock", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.SMClock, clock))
		}, "SM clock 345 MHz instead of unlocked", "only root"},
		{"MIG", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.MIGMode, resource.On))
		}, "MIG mode on instead of off", "only root"},
		{"persistence", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.PersistenceMode, resource.On))
		}, "persistence mode on instead of off", "only root"},
		{"a slice", func(h *hardware, g *resource.Page) {
			h.slices = append(h.slices, slice)
			_ = NoteSlice(g, "v", slice)
		}, "slice", "only root"},
		{"a clock that was tried", func(h *hardware, g *resource.Page) {
			Attempt(g, resource.Settings{}.With(resource.SMClock, clock), h.boot)
		}, "SM clock", "only root"},
		{"a limit that was tried, and failed", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 200_000))
			Attempt(g, resource.Settings{}.With(resource.PowerLimit, 300_000), h.boot)
		}, "power limit 200 W", "only root"},
		{"another limit while leaving", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 200_000))
			_ = Leave(g, "v")
			if err := h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 210_000)); err == nil {
				t.Error("a limit that is not the baseline's was set while leaving")
			}
		}, "power limit 200 W", "only root"},
		{"all of it restored", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 200_000).With(resource.MIGMode, resource.On).With(resource.SMClock, clock))
			_ = Leave(g, "v")
			if err := h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 700_000).With(resource.MIGMode, resource.Off).With(resource.SMClock, none)); err != nil {
				t.Error(err)
			}
		}, "", ""},
		{"a limit of another process", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 200_000))
			h.Settings = h.With(resource.PowerLimit, 500_000)
		}, "power limit 500 W instead of 700 W", ""},
		{"a limit of another process, where cosplay set none", func(h *hardware, _ *resource.Page) { h.Settings = h.With(resource.PowerLimit, 500_000) }, "", ""},
		{"what the driver forgets without persistence mode", func(h *hardware, g *resource.Page) {
			h.forget(t, g, "v")
		}, "power limit 700 W instead of 500 W", "only root"},
		{"a limit of cosplay's that the driver forgot", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 300_000))
			h.forget(t, g, "v")
		}, "power limit 700 W instead of 500 W", "only root"},
		{"a clock of the baseline that the driver forgot", func(h *hardware, g *resource.Page) {
			h.forget(t, g, "v")
			g.Baseline = g.Baseline.With(resource.SMClock, 1200)
			_ = h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 500_000))
		}, "SM clock unlocked instead of 1200 MHz", "only root"},
		{"a reboot", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 200_000).With(resource.SMClock, clock))
			h.boot, h.Settings, h.lock = "boot-2", h.With(resource.PowerLimit, 650_000), 0
		}, "", ""},
		{"a limit that cannot be read", func(h *hardware, g *resource.Page) {
			_ = h.change(g, "v", resource.Settings{}.With(resource.PowerLimit, 200_000))
			h.Settings = h.Without(resource.PowerLimit)
		}, "power limit not readable", "only root"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, g, v := newHardware(), resource.Page{UUID: gpu, BootID: "boot-1"}, user("v", 1234)
			if err := Hold(&g, v, Take{}, h.found()); err != nil {
				t.Fatal(err)
			}
			test.do(h, &g)
			err := Release(&g, v, Parting{Found: h.found()})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("released: %v, want %q", err, test.want)
			}
			if err == nil {
				return
			}
			if len(g.Holders) != 1 || !g.Baseline.Has(resource.PowerLimit) {
				t.Fatalf("refused, and yet %+v", g)
			}
			err = Release(&g, v, Parting{Found: h.found(), Abandon: true})
			if (err == nil) != (test.abandon == "") || err != nil && !strings.Contains(err.Error(), test.abandon) {
				t.Errorf("given up: %v, want %q", err, test.abandon)
			}
			if err == nil {
				return
			}
			if err := Release(&g, v, Parting{Found: h.found(), Abandon: true, Trusted: true}); err != nil || len(g.Holders) > 0 {
				t.Fatalf("given up by root: %v", err)
			}
			if len(g.Changes) != 1 || g.Changes[0].User != "v" || *g.Changes[0].UID != 1234 || g.Changes[0].At == "" || g.Changes[0].Value == "" || g.Changes[0].Baseline == "" {
				t.Errorf("recorded: %+v", g.Changes)
			}
		})
	}
}

// TestReleaseWithoutTheGPU: a GPU that is lost keeps its last holder and its
// baseline, unless root gives them up.
func TestReleaseWithoutTheGPU(t *testing.T) {
	h, g := newHardware(), resource.Page{UUID: gpu}
	if err := Hold(&g, user("v", 1234), Take{}, h.found()); err != nil {
		t.Fatal(err)
	}
	for _, p := range []Parting{{}, {Abandon: true}} {
		if err := Release(&g, user("v", 1234), p); err == nil || len(g.Holders) != 1 {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if err := Release(&g, user("v", 0), Parting{Abandon: true, Trusted: true}); err != nil || len(g.Holders) > 0 || len(g.Changes) != 1 {
		t.Errorf("%v, %+v", err, g)
	}
}

// TestSlicesOfAReleasedHolder stay in the ledger while they exist, and are the
// holder's again when it is back; another user cannot have them by its lineage.
func TestSlicesOfAReleasedHolder(t *testing.T) {
	book := Book{Dir: t.TempDir()}
	h := newHardware()
	look := func() (*Found, error) { return h.found(), nil }
	entry := func(lineage string, uid int) Entry {
		return Entry{Book: book, GPU: gpu, Holder: user(lineage, uid), BootID: h.boot}
	}
	a, b := entry("a", 1), entry("b", 2)
	slice := resource.LiveSlice{Slice: resource.Slice{GPU: gpu, Profile: "1g.18gb", Size: 1}, Handle: resource.Handle{UUID: "MIG-a"}}
	h.slices = append(h.slices, slice)
	for _, err := range []error{a.Take(Take{}, look), a.Made([]resource.LiveSlice{slice}, nil), b.Take(Take{Others: []string{"a"}}, look), a.Release(Parting{AsItIs: true}, look), b.Release(Parting{}, look)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if all, err := book.Read(); err != nil || len(all) != 0 {
		t.Errorf("held: %+v, %v", all, err)
	}
	page, err := a.Page()
	if err != nil || len(page.Departed) != 1 || page.Departed[0].UUID != "MIG-a" || page.Departed[0].User != "a" || page.Departed[0].At == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	mallory := entry("a", 3)
	if err := mallory.Take(Take{}, look); err == nil || !strings.Contains(err.Error(), "that of a project of uid 1") {
		t.Errorf("another user acquires it in the project's name: %v", err)
	}
	if err := mallory.Destroying(slice); err == nil {
		t.Error("another user destroys it")
	}
	if err := a.Take(Take{}, look); err != nil {
		t.Fatal(err)
	}
	if err := a.Destroying(slice); err != nil {
		t.Error(err)
	}
	h.slices = nil
	if err := a.Destroyed(slice); err != nil {
		t.Error(err)
	}
	if err := a.Release(Parting{}, look); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(book.path(gpu)); err == nil {
		t.Error("the page stays with nothing in it")
	}
}

// TestWalk: whichever projects come and go, with settings that fail half way,
// processes that change settings themselves, and reboots: while a GPU is held, its
// baseline is what it was before, and when the last holder is released, each
// setting that cosplay changed has it again, or is on record.
func TestWalk(t *testing.T) {
	limits := []int{200_000, 300_000, 400_000, 700_000}
	released, refused := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		h, g := newHardware(), resource.Page{UUID: gpu, BootID: "boot-1"}
		before := *newHardware()
		for step := range 80 {
			lineage := fmt.Sprint("p", random.IntN(3))
			at := fmt.Sprintf("seed %d, step %d, %s", seed, step, lineage)
			mine := user(lineage, 1000)
			var others []string
			for _, o := range g.Others(lineage) {
				others = append(others, o.Lineage)
			}
			s := resource.Settings{}.With(resource.PowerLimit, limits[random.IntN(len(limits))])
			if random.IntN(3) == 0 {
				s = resource.Settings{}.With(resource.SMClock, random.IntN(3)*345)
			}
			switch random.IntN(9) {
			case 0, 1:
				held := len(g.Holders) > 0
				if Hold(&g, mine, Take{Others: others}, h.found()) == nil && !held {
					before = *h
				}
			case 2, 3:
				_ = h.change(&g, lineage, s)
			case 4: // noted, and then the agent is killed
				if MaySet(&g, lineage, s) == nil {
					rebooted(&g, h.found())
					Attempt(&g, s, h.boot)
					if random.IntN(2) == 0 {
						h.set(s)
					}
				}
			case 5:
				_ = Leave(&g, lineage)
			case 6: // as destroy does
				if Leave(&g, lineage) == nil {
					for _, s := range []resource.Settings{resource.Settings{}.Copy(resource.PowerLimit, g.Baseline), locked(0)} {
						if err := h.change(&g, lineage, s); err != nil {
							t.Fatalf("%s restores: %v, %+v", at, err, g)
						}
					}
				}
			case 7:
				if random.IntN(8) == 0 {
					h.Settings = h.With(resource.PowerLimit, 500_000)
				} else if random.IntN(20) == 0 {
					h.boot, h.Settings, h.lock = fmt.Sprint("boot-", step), h.With(resource.PowerLimit, 600_000), 0
				}
			case 8:
				known := len(g.Changes)
				_, holds := g.Holder(lineage)
				last := holds && len(others) == 0
				touched := g.Set
				err := Release(&g, mine, Parting{Found: h.found(), Abandon: random.IntN(4) == 0})
				if holds && err == nil {
					released++
				} else if err != nil {
					refused++
				}
				if !last || err != nil {
					continue
				}
				if h.lock != 0 && touched.Has(resource.SMClock) {
					t.Fatalf("%s left a lock at %d MHz", at, h.lock)
				}
				if touched.Has(resource.PowerLimit) && h.Value(resource.PowerLimit) != before.Value(resource.PowerLimit) && len(g.Changes) == known && len(g.Changes) < maxLeft {
					t.Fatalf("%s left %d mW, was %d, %+v", at, h.Value(resource.PowerLimit), before.Value(resource.PowerLimit), g)
				}
			}
			if len(g.Holders) > 0 && g.Baseline.Value(resource.PowerLimit) != before.Value(resource.PowerLimit) {
				t.Fatalf("%s: the baseline is %d mW, was %d", at, g.Baseline.Value(resource.PowerLimit), before.Value(resource.PowerLimit))
			}
		}
	}
	if released < 300 || refused < 100 {
		t.Errorf("released %d times, refused %d times: the walk proves too little", released, refused)
	}
}

// TestPagesOfFormat1 are read, and a lock in them counts as set.
func TestPagesOfFormat1(t *testing.T) {
	book := bookWith(t, "page-1.json")
	all, err := book.Read()
	if err != nil || len(all) != 1 || len(all[0].Holders) != 1 || len(all[0].Holders[0].Slices) != 1 || all[0].Baseline.Value(resource.PowerLimit) != 700_000 {
		t.Fatalf("%+v, %v", all, err)
	}
	h := newHardware()
	e := Entry{Book: book, GPU: gpu, Holder: user("6f3c1e0a", 1234), BootID: h.boot}
	look := func() (*Found, error) { return h.found(), nil }
	if err := e.Release(Parting{}, look); err == nil || !strings.Contains(err.Error(), "SM clock 1575 MHz") {
		t.Errorf("released with a lock: %v", err)
	}
	none := 0
	for _, err := range []error{e.Leave(), e.Setting(resource.Settings{}.With(resource.SMClock, none), look), e.Settled(resource.Settings{}.With(resource.SMClock, none))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(book.path(gpu))
	if err != nil || !strings.Contains(string(page), `"format_version": 2`) {
		t.Errorf("%v\n%s", err, page)
	}
	if err := e.Release(Parting{}, look); err != nil {
		t.Error(err)
	}
}

// TestChangesOfAnotherProcess: a setting that cosplay never set, and that changed, is
// recorded and does not block the release.
func TestChangesOfAnotherProcess(t *testing.T) {
	h, g, v := newHardware(), resource.Page{UUID: gpu, BootID: "boot-1"}, user("v", 1234)
	if err := Hold(&g, v, Take{}, h.found()); err != nil {
		t.Fatal(err)
	}
	h.Settings = h.With(resource.PowerLimit, 500_000)
	if err := Release(&g, v, Parting{Found: h.found()}); err != nil {
		t.Fatal(err)
	}
	if len(g.Changes) != 1 || g.Changes[0].Value != "500 W" || g.Changes[0].Baseline != "700 W" || g.Changes[0].Why != "another process changed it" {
		t.Errorf("recorded: %+v", g.Changes)
	}
}

// TestHistory: the history of each user is bounded. A flood removes no line of another
// user; refused requests remove no change; the last change of each kind always stays.
func TestHistory(t *testing.T) {
	book := Book{Dir: t.TempDir()}
	honest := Attempted{At: "2026-01-02T03:04:05Z", User: "ann", UID: 1234, Op: "take", GPU: gpu, Lineage: "a", State: "/home/ann/s"}
	if err := book.Record(honest); err != nil {
		t.Fatal(err)
	}
	taken := Attempted{At: "2026-01-02T03:04:06Z", User: "bob", UID: 1235, Op: "take", GPU: gpu, Lineage: "b"}
	set := Attempted{At: "2026-01-02T03:04:07Z", User: "bob", UID: 1235, Op: "set-mig", GPU: gpu, Value: "on", Lineage: "b"}
	for _, a := range []Attempted{taken, set} {
		if err := book.Record(a); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 8000 {
		if err := book.Record(Attempted{User: "bob", UID: 1235, Op: "set-power", GPU: gpu, Lineage: "b", Value: fmt.Sprint(n, strings.Repeat("x", 200))}); err != nil {
			t.Fatal(err)
		}
		if err := book.Record(Attempted{User: "bob", UID: 1235, Op: strings.Repeat("x", 1<<16), Refused: "\x1b[2J\n"}); err != nil {
			t.Fatal(err)
		}
	}
	size := int64(0)
	files, _ := filepath.Glob(filepath.Join(book.history(), "1235*"))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
		if info.Mode().Perm() != 0o644 {
			t.Errorf("%s has mode %v", f, info.Mode())
		}
	}
	if size > 4*maxHistory+8192 {
		t.Errorf("bob's history has %d bytes", size)
	}
	all, err := book.History()
	for _, a := range []Attempted{honest, taken, set} {
		if err != nil || !slices.Contains(all, a) {
			t.Errorf("%v: lost: %+v", err, a)
		}
	}
}

// TestRefusedRequestsRemoveNoChange: not even one that a later change followed.
func TestRefusedRequestsRemoveNoChange(t *testing.T) {
	book := Book{Dir: t.TempDir()}
	line := func(op, value, refused string) Attempted {
		return Attempted{UID: 1235, Op: op, GPU: gpu, Lineage: "b", Value: value, Refused: refused}
	}
	changes := []Attempted{line("take", "", ""), line("set-power", "200000 mW", ""), line("set-power", "300000 mW", "")}
	for _, a := range changes {
		if err := book.Record(a); err != nil {
			t.Fatal(err)
		}
	}
	for range 5000 {
		if err := book.Record(line("set-power", strings.Repeat("x", maxWords), "no")); err != nil {
			t.Fatal(err)
		}
	}
	all, err := book.History()
	for _, a := range changes {
		if err != nil || !slices.Contains(all, a) {
			t.Errorf("%v: lost: %+v", err, a)
		}
	}
}

// TestSettledWithoutAHolder: an agent whose project was released meanwhile writes nothing
// into the page of the next holder.
func TestSettledWithoutAHolder(t *testing.T) {
	h := newHardware()
	e := Entry{Book: Book{Dir: t.TempDir()}, GPU: gpu, Holder: user("next", 1), BootID: h.boot}
	if err := e.Take(Take{}, func() (*Found, error) { return h.found(), nil }); err != nil {
		t.Fatal(err)
	}
	e.Holder = user("released", 1)
	if err := e.Settled(resource.Settings{}.With(resource.PowerLimit, 200_000)); err != nil {
		t.Fatal(err)
	}
	if page, err := e.Page(); err != nil || page.Set.Has(resource.PowerLimit) {
		t.Errorf("%v: %+v", err, page.Set)
	}
}

// TestReleased: a GPU counts as released until it is acquired again. A release of a GPU
// that the project does not hold does not count.
func TestReleased(t *testing.T) {
	line := func(uid int, at, op, refused string) Attempted {
		return Attempted{At: "2026-01-02T03:04:0" + at + "Z", UID: uid, Op: op, GPU: gpu, Lineage: "a", Refused: refused}
	}
	take, release := line(1234, "1", "take", ""), line(1234, "3", "release", "")
	for name, test := range map[string]struct {
		lines []Attempted
		is    bool
	}{
		"released":           {[]Attempted{take, release}, true},
		"held":               {[]Attempted{take}, false},
		"acquired again":     {[]Attempted{take, release, line(1234, "4", "take", "")}, false},
		"refused":            {[]Attempted{take, line(1234, "3", "release", "not yet")}, false},
		"released by root":   {[]Attempted{take, line(0, "3", "release", "")}, true},
		"before it acquired": {[]Attempted{line(0, "0", "release", ""), take}, false},
		"by who has nothing": {[]Attempted{take, line(1235, "3", "release", ErrNotHeld.Error())}, false},
		"acquired by root":   {[]Attempted{line(0, "1", "take", ""), release}, true},
	} {
		book := Book{Dir: t.TempDir()}
		for _, l := range test.lines {
			if err := book.Record(l); err != nil {
				t.Fatal(err)
			}
		}
		got, err := book.Released("a")
		if err != nil || slices.Contains(got, gpu) != test.is {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if got, _ := book.Released("b"); len(got) > 0 {
			t.Errorf("%s: another project: %v", name, got)
		}
	}
}

// TestHistoryClock: lines that a clock recorded that was ahead keep their order, and a line that a newer file copies from
// the older one is one line.
func TestHistoryClock(t *testing.T) {
	t.Chdir(t.TempDir()) // a book without a folder reads none of the folder in which a command runs
	if err := errors.Join(os.Mkdir("history", 0o755), os.WriteFile("history/1.jsonl", []byte(`{"op":"take"}`), 0o644)); err != nil {
		t.Fatal(err)
	}
	if all, err := (Book{}).History(); err != nil || len(all) > 0 {
		t.Errorf("without a folder: %v, %v", all, err)
	}
	book := Book{Dir: t.TempDir()}
	for i, at := range []string{"2026-01-02T03:04:05.000000Z", "2026-01-12T00:00:00.000000Z", "9026-01-12T00:00:00.000000Z", "2026-01-02T03:04:07.000000Z", "2000-01-01T00:00:00.000000Z"} {
		if err := book.Record(Attempted{At: at, UID: 1234, Op: []string{"take", "set-mig", "release", "take", "set-power"}[i], GPU: gpu, Lineage: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := book.Record(Attempted{At: "2026-01-02T03:04:06.000000Z", UID: 1235, Op: "take", GPU: gpu, Lineage: "b"}); err != nil {
		t.Fatal(err)
	}
	all, err := book.History()
	want := []string{"take a 05", "take b 06", "set-mig a 07", "release a 07", "take a 07", "set-power a 07"}
	for i, a := range all {
		if got := a.Op + " " + a.Lineage + " " + a.At[17:19]; i >= len(want) || got != want[i] {
			t.Errorf("line %d is %s (%+v), %v", i, got, a, err)
		}
	}
	path := filepath.Join(book.history(), "1234.jsonl")
	data, _ := os.ReadFile(path)
	if err := os.WriteFile(path+".old", data, 0o644); err != nil {
		t.Fatal(err)
	}
	if again, err := book.History(); err != nil || len(again) != len(all) {
		t.Errorf("%d lines with the copies, want %d, %v", len(again), len(all), err)
	}
}

// TestLineages: a lineage belongs to its first user; root may use it. The ledger of an
// earlier version has only its holders.
func TestLineages(t *testing.T) {
	book, h := Book{Dir: t.TempDir()}, newHardware()
	look := func() (*Found, error) { return h.found(), nil }
	entry := func(lineage string, uid int) Entry {
		return Entry{Book: book, GPU: gpu, Holder: user(lineage, uid), BootID: h.boot}
	}
	use := func(e Entry) error {
		if err := e.Take(Take{}, look); err != nil {
			return err
		}
		return e.Release(Parting{}, look)
	}
	for _, step := range []struct {
		lineage string
		uid     int
		allowed bool
	}{
		{"a", 1, true}, {"a", 2, false}, {"a", 0, true}, {"a", 2, false}, {"a", 1, true},
		{"b", 2, true}, {"b", 1, false}, {"aa", 2, true}, {"r", 0, true}, {"r", 1, false},
	} {
		if err := use(entry(step.lineage, step.uid)); (err == nil) != step.allowed {
			t.Errorf("%s by uid %d: %v", step.lineage, step.uid, err)
		}
	}
	for n := range 5 {
		if err := use(entry(fmt.Sprint("run-", n), 2)); err != nil {
			t.Fatal(err)
		}
	}
	if err := use(entry("b", 2)); err != nil {
		t.Fatal(err)
	}
	noted, err := os.ReadFile(filepath.Join(book.lineages(), "2"))
	if err != nil || string(noted) != "aa\nrun-0\nrun-1\nrun-2\nrun-3\nrun-4\nb\n" {
		t.Errorf("%v: %q", err, noted)
	}
	if err := os.RemoveAll(book.lineages()); err != nil {
		t.Fatal(err)
	}
	if err := entry("a", 1).Take(Take{}, look); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(book.lineages()); err != nil {
		t.Fatal(err)
	}
	other := entry("a", 2)
	other.GPU = "GPU-other"
	if err := other.Take(Take{}, look); err == nil {
		t.Error("the lineage of a holder that an earlier version noted is another user's")
	}
}
