package place

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// packed are the profiles of an H200 that the packing table gives to its sessions, and mixes how many sessions get each.
var packed = []string{"1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"}

var mixes = []struct {
	name    string
	weights []int
}{
	{"uniform", []int{1, 1, 1, 1, 1, 1}},
	{"small", []int{60, 10, 20, 6, 3, 1}},
	{"mid", []int{10, 15, 30, 25, 15, 5}},
	{"threes", []int{0, 0, 30, 70, 0, 0}},
}

// alike returns sessions of many targets, each of which is close to one of the profiles at the highest clock.
func alike(r *rand.Rand, weights []int, kinds, n int) (all []Request) {
	m := model("h200")
	var targets []resource.Target
	var at [][]int
	sum := 0
	for range packed {
		at = append(at, nil)
	}
	for k := range kinds {
		p, _ := m.Profile(packed[k%len(packed)])
		made := target("rtx-2060")
		made.Key, made.Name = fmt.Sprintf("k%d", k), fmt.Sprintf("Kind %d", k)
		made.FP32TFLOPS = fit.At(m, made, p.Name, m.MaxClockMHz()).Got.FP32TFLOPS * (0.985 + 0.015*float64(k)/float64(kinds))
		made.MemoryMiB = p.MemoryMiB - 50*(k/len(packed))
		targets, at[k%len(packed)] = append(targets, made), append(at[k%len(packed)], k)
	}
	for _, w := range weights {
		sum += w
	}
	for i := range n {
		left, row := r.IntN(sum), 0
		for left >= weights[row] {
			left -= weights[row]
			row++
		}
		chosen := targets[at[row][r.IntN(len(at[row]))]]
		all = append(all, Request{Address: resource.Nth(chosen.Key, i), Target: chosen,
			Want: resource.Request{Host: "lab", Target: chosen.Key, Fit: resource.FitOptions{Prefer: resource.PreferFP32, Tolerance: 0.03}}})
	}
	return all
}

// packingOf places sessions, requires that this is legal, and returns the packing and the time.
func packingOf(t *testing.T, gpus []GPU, requests []Request) (got Result, p *packer, took time.Duration) {
	t.Helper()
	start := time.Now()
	got = Place(gpus, requests)
	took = time.Since(start)
	if problems := illegal(gpus, requests, got); len(problems) > 0 {
		t.Fatalf("illegal: %s", problems[0])
	}
	f := newFleet(gpus, requests, roomy, nil)
	f.settle()
	f.measure()
	p, _ = f.pack()
	return got, p, took
}

// TestPackingTable requires that sessions of many targets that are alike are packed as densely as those of few.
// COSPLAY_LONG=1 prints the whole table.
func TestPackingTable(t *testing.T) {
	sizes := []int{100}
	if os.Getenv("COSPLAY_LONG") != "" {
		sizes = []int{100, 1000, 4000, 5000}
	}
	for _, n := range sizes {
		for _, mix := range mixes {
			for _, kinds := range []int{6, 30, 90} {
				requests := alike(rand.New(rand.NewPCG(uint64(n), uint64(kinds))), mix.weights, kinds, n)
				got, p, took := packingOf(t, rack("lab", times(n/2, "h200")...), requests)
				used := int64(len(got.GPUs))
				t.Logf("%-8s %5d sessions, %2d kinds: %5d GPUs, bound %5d, gap %d, %4d ms", mix.name, n, kinds, used, p.needed, used-p.needed, took.Milliseconds())
				if used != p.needed || len(got.Refused) > 0 || len(got.Warnings) > 0 {
					t.Errorf("%s, %d sessions, %d kinds: %d GPUs of %d, %d refusals, warnings %v", mix.name, n, kinds, used, p.needed, len(got.Refused), got.Warnings)
				}
			}
		}
	}
}

// scattered returns sessions of many targets that differ more, so that they prefer different profiles and clocks.
func scattered(r *rand.Rand, kinds, n int) []Request {
	all := alike(r, mixes[r.IntN(len(mixes))].weights, kinds, n)
	part, tolerance := map[string]float64{}, []float64{0.03, 0.1}[r.IntN(2)]
	for i := range all {
		key := all[i].Target.Key
		if part[key] == 0 {
			part[key] = 0.5 + 0.5*r.Float64()
		}
		all[i].Target.FP32TFLOPS *= part[key]
		all[i].Want.Fit.Tolerance = tolerance
	}
	return all
}

// TestScattered packs random fleets with several models of GPU, then removes, adds and changes sessions. It requires that
// the placements are legal, that no session moves that stays, that the order of the input does not matter, and that a
// plan which may have too many GPUs says so.
func TestScattered(t *testing.T) {
	fleets, gaps := uint64(8), int64(0)
	if os.Getenv("COSPLAY_LONG") != "" {
		fleets = 3000
	}
	for seed := range fleets {
		r := rand.New(rand.NewPCG(seed, 21))
		n := 41 + r.IntN(40)
		large := n
		if seed%8 == 0 { // some sessions have no room, or exceed their tolerances
			large = n / 2
		}
		gpus := rack("lab", append(times(large, "h200"), times(n/4, "a100-80gb")...)...)
		requests := scattered(r, 7+r.IntN(40), n)
		got, p, _ := packingOf(t, gpus, requests)
		if len(got.Refused) == 0 {
			gaps += p.used - p.needed
			if warned := fmt.Sprint(got.Warnings); !p.proven && !strings.Contains(warned, "at least") {
				t.Errorf("seed %d: %d GPUs of at least %d without a warning: %s", seed, p.used, p.needed, warned)
			}
		}
		if again := Place(shuffled(r, gpus), shuffled(r, requests)); again.String() != got.String() {
			t.Errorf("seed %d: the order of the input matters", seed)
		}
		gpus, requests = keep(gpus, requests, got)
		check(t, gpus, requests[n/10:], Place(gpus, requests[n/10:]))
		changed := alike(r, mixes[0].weights, 30, n/10)
		for i := range changed {
			changed[i].Address = resource.Nth("new", i)
		}
		more := append(slices.Clone(requests), changed...)
		check(t, gpus, more, Place(gpus, more))
		for i, key := 0, requests[0].Target.Key; i < n; i++ {
			if requests[i].Target.Key == key {
				requests[i].Target, requests[i].Kept = changed[0].Target, nil
			}
		}
		check(t, gpus, requests, Place(gpus, requests))
	}
	t.Logf("%d fleets use %d GPUs more than their bounds together", fleets, gaps)
}
