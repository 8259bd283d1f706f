package agent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"cosplay/internal/ledger"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// rivals are two agents of one host with one ledger, each for another project.
func rivals(t *testing.T, first, second string) (do func(key, value string), gpu string, a, b *Client) {
	t.Helper()
	dir := t.TempDir()
	host, reader := newHost(t, Options{Ledger: dir}, "h200")
	gpu = read(t, reader).GPUs[0].UUID
	client := func(lineage string) *Client {
		c := New(reader.reads.options)
		t.Cleanup(func() { c.Close() })
		return c.For(resource.Holder{Lineage: lineage, State: "/" + lineage, User: lineage})
	}
	do = func(key, value string) {
		t.Helper()
		if err := host.Set(0, key, value); err != nil {
			t.Fatal(err)
		}
	}
	return do, gpu, client(first), client(second)
}

// must wants no error of any of the calls.
func must(t *testing.T, all ...error) {
	t.Helper()
	for _, err := range all {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPermissionEndsWhileInUse: a change that waits for a process is refused if its project
// has released the GPU meanwhile.
func TestPermissionEndsWhileInUse(t *testing.T) {
	ctx := context.Background()
	set, gpu, a, b := rivals(t, "one", "one")
	must(t, a.Take(ctx, gpu, ledger.Take{}))
	set("process", fmt.Sprintf("%d:100", os.Getpid()))
	waiting := make(chan error)
	go func() { waiting <- change(a, gpu, resource.MIGMode, resource.On) }()
	time.Sleep(2 * inUseNap)
	must(t, b.Release(ctx, gpu, false, false))
	set("process", "none")
	if err := <-waiting; err == nil || !strings.Contains(err.Error(), "does not hold the GPU") {
		t.Errorf("got %v", err)
	}
	if host := read(t, a); host.GPUs[0].MIG || host.GPUs[0].MIGPending || len(host.Ledger) != 0 {
		t.Errorf("MIG %v, pending %v, held by %+v", host.GPUs[0].MIG, host.GPUs[0].MIGPending, host.Ledger)
	}
}

// TestSliceIsReplacedWhileInUse: a slice that was in use is left alone if another slice has
// its place and ids when the wait ends.
func TestSliceIsReplacedWhileInUse(t *testing.T) {
	for range 5 { // until the test replaces the slice before the next try of the agent
		if replacedInTime(t) {
			return
		}
	}
	t.Error("the agent was faster each time")
}

func replacedInTime(t *testing.T) bool {
	ctx := context.Background()
	host, client := newHost(t, Options{}, "h200")
	gpu := read(t, client).GPUs[0].UUID
	must(t, change(client, gpu, resource.MIGMode, resource.On))
	mine, err := client.CreateSlice(ctx, resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 0, Size: 1}, resource.Need{SMs: 16})
	must(t, err, host.SetFault(sim.Fault{Function: "nvmlComputeInstanceDestroy", Nth: 1, Action: sim.Answer, Code: 19}))
	ended := make(chan error)
	go func() { ended <- client.DestroySlice(ctx, mine) }()
	for {
		shown, err := host.Show()
		must(t, err)
		if len(shown.Faults) == 0 {
			break
		}
	}
	if host.DestroySlice(0, mine.GPUInstance) != nil {
		<-ended
		return false
	}
	again, err := host.CreateSlice(0, "1g.18gb", 0)
	must(t, err)
	said := <-ended
	if said == nil {
		return false // it looked between the two
	}
	left := read(t, client).GPUs[0].Slices
	if !strings.Contains(said.Error(), "is another one now") || again != mine.GPUInstance || len(left) != 1 || left[0].UUID == mine.UUID {
		t.Errorf("%v; there are %+v", said, left)
	}
	return true
}

// TestHungChange: a change that the driver never answers is in the history.
func TestHungChange(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	host, client := newHost(t, Options{Ledger: dir, Deadline: 300 * time.Millisecond}, "h200")
	gpu := read(t, client).GPUs[0].UUID
	mine := client.For(resource.Holder{Lineage: "one", State: "/one", User: "ann"})
	must(t, mine.Take(ctx, gpu, ledger.Take{}), host.SetFault(sim.Fault{Function: "nvmlDeviceSetPowerManagementLimit", Nth: 1, Action: sim.Hang}))
	if err := change(mine, gpu, resource.PowerLimit, 300_000); err == nil {
		t.Fatal("no error")
	}
	all, err := ledger.Book{Dir: dir}.History()
	must(t, err)
	if last := all[len(all)-1]; last.Op != "set-power" || last.GPU != gpu || !strings.Contains(last.Refused, "no answer") {
		t.Errorf("the last line is %+v", last)
	}
}
