package place

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"cosplay/internal/resource"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func join(lists ...[]Request) []Request {
	var all []Request
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// with applies a change to every request of a list.
func with(list []Request, change func(*Request)) []Request {
	for i := range list {
		change(&list[i])
	}
	return list
}

// rackWith applies a change to the first GPU of a rack.
func rackWith(change func(*GPU), models ...string) []GPU {
	gpus := rack("lab", models...)
	change(&gpus[0])
	return gpus
}

func mixed() []Request {
	return join(ask("lab", "big", 1, "3090"), ask("lab", "mid", 2, "3060"), ask("lab", "old", 1, "1660"))
}

// TestGolden compares placements with testdata, one readable file for each case.
func TestGolden(t *testing.T) {
	clock := 1980
	besideOthers := func(g *GPU) {
		g.MIG, g.FixedClockMHz, g.Fixed[resource.PowerLimit] = true, &clock, true
		g.Foreign = []resource.LiveSlice{foreign(*g, "3g.71gb", 4)}
	}
	exact := func(q *Request) { q.Want.Fit.Tolerance = 0 }
	bandwidth := func(q *Request) { q.Want.Fit.Prefer = resource.PreferBandwidth }
	atMost := func(e float64) func(*Request) {
		return func(q *Request) { q.Want.Fit.MaxError = &e }
	}
	pinned := func(uuid string) func(*Request) { return func(q *Request) { q.Want.GPU = uuid } }
	at := func(slice string) func(*Request) {
		return func(q *Request) { q.Want.GPU, q.Want.Slice = "GPU-lab0", slice }
	}

	cases := []struct {
		name     string
		gpus     []GPU
		requests []Request
	}{
		{"one", rack("lab", "h200"), ask("lab", "worker", 1, "2060")},
		{"slot", rack("lab", "h200", "h200"), join(with(ask("lab", "mine", 1, "2060"), at("1g.18gb@4")), ask("lab", "other", 7, "2060"))},
		{"slot-of-two", rack("lab", "h200"), with(ask("lab", "mine", 2, "2060"), at("1g.18gb@4"))},
		{"slot-of-none", rack("lab", "h200"), with(ask("lab", "mine", 1, "3090"), at("3g.71gb@1"))},
		{"slot-too-small", rack("lab", "h200"), with(ask("lab", "mine", 1, "3090"), at("1g.18gb@1"))},
		{"slot-beside-others", rackWith(besideOthers, "h200"), join(with(ask("lab", "mine", 1, "2060"), at("1g.18gb@4")), with(ask("lab", "free", 1, "2060"), at("1g.18gb@3")))},
		{"slot-of-part", rack("lab", "h200"), join(with(ask("lab", "mine", 1, "1060"), at("1c.2g.35gb@2")), ask("lab", "big", 1, "3090"))},
		{"slots-of-targets", rack("lab", "h200"), join(with(ask("lab", "large", 1, "3090"), at("3g.71gb@4")), with(ask("lab", "small", 1, "1660"), at("1g.18gb@0")))},
		{"slot-on-the-second", rack("lab", "h200", "h200"), join(with(ask("lab", "mine", 1, "2060"), func(q *Request) { q.Want.GPU, q.Want.Slice = "GPU-lab1", "1g.18gb@4" }), ask("lab", "other", 8, "2060"))},
		{"slots-without-a-clock", rack("lab", "h200"), join(with(with(ask("lab", "large", 1, "3090"), at("3g.71gb@4")), atMost(0.2)), with(with(ask("lab", "small", 1, "1660"), at("1g.18gb@0")), atMost(0.1)))},
		{"slots-within", rack("lab", "h200"), with(join(with(ask("lab", "large", 1, "3090"), at("3g.71gb@4")), with(ask("lab", "small", 1, "1660"), at("1g.18gb@0"))), atMost(0.05))},
		{"two", rack("lab", "h200"), ask("lab", "worker", 2, "2060")},
		{"seven", rack("lab", "h200"), ask("lab", "worker", 7, "2060")},
		{"eighth-refused", rack("lab", "h200"), ask("lab", "worker", 8, "2060")},
		{"eighth-on-the-second", rack("lab", "h200", "h200"), ask("lab", "worker", 8, "2060")},
		{"3090", rack("lab", "h200"), ask("lab", "worker", 1, "3090")},
		{"3090-exact", rack("lab", "h200"), with(ask("lab", "worker", 1, "3090"), exact)},
		{"3090-bandwidth", rack("lab", "h200"), with(ask("lab", "worker", 1, "3090"), bandwidth)},
		{"mixed-on-one", rack("lab", "h200"), mixed()},
		{"mixed-on-many", rack("lab", times(4, "h200")...), mixed()},
		{"mixed-strict", rack("lab", "h200"), with(mixed(), atMost(0.2))},
		{"beside-others", rackWith(besideOthers, "h200"), ask("lab", "worker", 5, "2060")},
		{"away-from-others", rackWith(besideOthers, "h200", "h200"), ask("lab", "worker", 5, "2060")},
		{"mig-stays-off", rackWith(func(g *GPU) { g.Fixed[resource.MIGMode] = true }, "h200"), ask("lab", "worker", 2, "2060")},
		{"no-new-slices", rackWith(func(g *GPU) { g.MIG, g.NoSlices, g.Fixed[resource.MIGMode] = true, true, true }, "h200"), ask("lab", "worker", 1, "2060")},
		{"power-stays", rackWith(func(g *GPU) { g.Fixed[resource.PowerLimit], g.PowerMW = true, 320_000 }, "h200"), ask("lab", "worker", 7, "2060")},
		{"power-stays-max-error", rackWith(func(g *GPU) { g.Fixed[resource.PowerLimit], g.PowerMW = true, 320_000 }, "h200"), with(ask("lab", "worker", 7, "2060"), atMost(0.1))},
		{"busy", rackWith(func(g *GPU) { g.Busy = true }, "h200", "h200"), ask("lab", "worker", 2, "3090")},
		{"busy-alone", rackWith(func(g *GPU) { g.Busy, g.Hindered = true, true }, "h200"), ask("lab", "worker", 1, "2060")},
		{"busy-accepted", rackWith(func(g *GPU) { g.Busy, g.Hindered = true, true }, "h200"), with(ask("lab", "worker", 1, "2060"), atMost(20))},
		{"without-mig", rack("lab", "l40s", "4090", "v100"), join(ask("lab", "a", 1, "3090"), ask("lab", "b", 2, "2060"))},
		{"without-mig-full", rack("lab", "l40s", "4090"), ask("lab", "a", 3, "2060")},
		{"shared-with-a-desktop", rackWith(func(g *GPU) { g.Busy = true }, "4090"), ask("lab", "a", 1, "3070")},
		{"too-big", rack("lab", "a30"), ask("lab", "a", 1, "4090")},
		{"too-far", rack("lab", "a30"), with(ask("lab", "a", 1, "3090"), atMost(0.3))},
		{"pinned", rack("lab", "h200", "h200"), with(ask("lab", "a", 8, "2060"), pinned("GPU-lab1"))},
		{"pinned-nowhere", rack("lab", "h200"), with(ask("lab", "a", 1, "2060"), pinned("GPU-lost"))},
		{"no-host", rack("lab", "h200"), ask("den", "a", 1, "2060")},
		{"two-hosts", append(rack("lab", "h200"), rack("den", "a30")...), join(ask("lab", "a", 2, "2060"), ask("den", "b", 5, "1660"))},
		{"models", rack("lab", "a30", "a100-80gb", "h200", "l40s"), join(ask("lab", "a", 3, "1060"), ask("lab", "b", 2, "3080"))},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := Place(c.gpus, c.requests)
			check(t, c.gpus, c.requests, r)
			file := filepath.Join("testdata", c.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(r.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.String(); got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
