package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cosplay/internal/ledger"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// together has a client create seven slices of a GPU at the same time, in one request, and returns the error of each.
func together(t *testing.T, c *Client, gpu string) (errs [7]error) {
	t.Helper()
	c.changes.mu.Lock()
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			made, err := c.CreateSlice(context.Background(), resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: i, Size: 1}, resource.Need{SMs: 16})
			if errs[i] = err; err == nil && (made.UUID == "" || made.Start != i) {
				t.Errorf("slot %d has %+v", i, made)
			}
		})
	}
	for waiting := 0; waiting < len(errs); time.Sleep(time.Millisecond) {
		c.creates.mu.Lock()
		waiting = len(c.creates.waiting[gpu])
		c.creates.mu.Unlock()
	}
	c.changes.mu.Unlock()
	all.Wait()
	return errs
}

// holding is a client of a project that holds a GPU in MIG mode.
func holding(t *testing.T, o Options) (*sim.Host, *Client, string) {
	t.Helper()
	host, client := newHost(t, o, "h200")
	c := client.For(resource.Holder{Lineage: "one", State: "/one", User: "ann"})
	gpu := read(t, c).GPUs[0].UUID
	if err := c.Take(t.Context(), gpu, ledger.Take{}); err != nil {
		t.Fatal(err)
	}
	if err := change(c, gpu, resource.MIGMode, resource.On); err != nil {
		t.Fatal(err)
	}
	return host, c, gpu
}

// TestSlicesTogether: one of several slices fails, and the others are created. The ledger and its history have each.
func TestSlicesTogether(t *testing.T) {
	dir := t.TempDir()
	host, c, gpu := holding(t, Options{Ledger: dir})
	if _, err := host.CreateSlice(0, "1g.18gb", 3); err != nil {
		t.Fatal(err)
	}
	for i, err := range together(t, c, gpu) {
		if (err != nil) != (i == 3) {
			t.Errorf("slot %d: %v", i, err)
		}
	}
	page, err := ledger.Entry{Book: ledger.Book{Dir: dir}, GPU: gpu}.Page()
	if err != nil || len(page.Holders) != 1 || len(page.Holders[0].Slices) != 6 {
		t.Fatalf("the ledger has %+v, %v", page, err)
	}
	for _, s := range page.Holders[0].Slices {
		if s.UUID == "" || s.Start == 3 {
			t.Errorf("the ledger has %+v", s)
		}
	}
	for file, want := range map[string]int{"0.jsonl": 6, "0.refused.jsonl": 1} {
		data, err := os.ReadFile(filepath.Join(dir, "history", file))
		if got := strings.Count(string(data), `"op":"create-slice"`); err != nil || got != want {
			t.Errorf("%s has %d slices, want %d: %v\n%s", file, got, want, err, data)
		}
	}
}

// TestMoreSlicesThanARequestHas: a slice behind those that fill a request gets its answer from the next one.
func TestMoreSlicesThanARequestHas(t *testing.T) {
	_, c, gpu := holding(t, Options{})
	before := make([]*asked, maxCreates)
	for i := range before { // at places that the GPU does not have
		before[i] = &asked{creation: creation{resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 10 + i, Size: 1}, resource.Need{SMs: 16}}}
		c.creates.add(before[i])
	}
	made, err := c.CreateSlice(t.Context(), resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 3, Size: 1}, resource.Need{SMs: 16})
	if err != nil || made.UUID == "" {
		t.Errorf("made %+v, %v", made, err)
	}
	for i, other := range before {
		if !other.answered || other.err == nil {
			t.Errorf("slot %d: answered %v, %v", 10+i, other.answered, other.err)
		}
	}
}

// TestSliceHangs: the slices before the call that hangs are known, and those after it were not begun.
func TestSliceHangs(t *testing.T) {
	for _, nth := range []int{1, 3} {
		host, c, gpu := holding(t, Options{Deadline: time.Second})
		if err := host.SetFault(sim.Fault{Function: "nvmlDeviceCreateGpuInstanceWithPlacement", Nth: nth, Action: sim.Hang}); err != nil {
			t.Fatal(err)
		}
		made, hung, unbegun := 0, 0, 0
		for i, err := range together(t, c, gpu) {
			var at *Error
			switch {
			case err == nil:
				made++
			case !errors.As(err, &at) || !strings.Contains(err.Error(), "no answer within 1s") || at.GPUInstance != nil:
				t.Errorf("slot %d: %v", i, err)
			case at.Sure:
				unbegun++
			default:
				hung++
			}
		}
		if made != nth-1 || hung != 1 || unbegun != 7-nth {
			t.Errorf("call %d hangs: %d slices were made, %d hung, %d were not begun", nth, made, hung, unbegun)
		}
		if now := read(t, c).GPUs[0].Slices; len(now) != made {
			t.Errorf("call %d hangs: the GPU has %+v", nth, now)
		}
	}
}
