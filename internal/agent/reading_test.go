package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cosplay/internal/resource"
)

// TestReading: a host comes out of the line as it went in, each of its models written once, and what is the same for
// the slices of a GPU written once.
func TestReading(t *testing.T) {
	of := func(uuid, name string) resource.GPU {
		return resource.GPU{UUID: uuid, Model: resource.Model{Name: name, ClocksMHz: []int{345, 1980}, Profiles: []resource.Profile{{Name: "1g.18gb", Starts: []int{0, 1}}}}}
	}
	host := resource.Host{Driver: "550", Unusable: []resource.Unusable{{Index: 2, Call: "nvmlDeviceGetUUID", Code: 15, Message: "GPU is lost"}}, GPUs: []resource.GPU{of("GPU-0", "one"), of("GPU-1", "other"), of("GPU-2", "one")}}
	on := func(host, gpu, boot string) resource.LiveSlice {
		return resource.LiveSlice{Slice: resource.Slice{Host: host, GPU: gpu, Profile: "1g.18gb", Size: 1}, Handle: resource.Handle{GPUInstance: 7, UUID: "MIG-0", Boot: boot}}
	}
	host.GPUs[0].Slices = []resource.LiveSlice{on("", "GPU-0", ""), on("", "GPU-0", "")}
	host.Ledger = []resource.Page{
		{UUID: "GPU-0", BootID: "boot-2", Holders: []resource.Holder{{Lineage: "a", Slices: []resource.LiveSlice{on("lab", "GPU-0", "boot-2"), on("rack", "GPU-0", "boot-1"), on("", "GPU-0", ""), on("lab", "GPU-1", "boot-2")}}}},
		{UUID: "GPU-1", Holders: []resource.Holder{{Lineage: "a", Slices: []resource.LiveSlice{on("lab", "GPU-1", ""), on("lab", "GPU-1", "boot-1")}}}},
	}
	line := written(t, response{Host: hostToWire(host)})
	if one, other := strings.Count(string(line), `"one"`), strings.Count(string(line), `"other"`); one != 1 || other != 1 {
		t.Errorf("the models are written %d and %d times: %s", one, other, line)
	}
	if first, boot := strings.Count(string(line), "GPU-0"), strings.Count(string(line), "boot-2"); first != 2 || boot != 1 {
		t.Errorf("the first GPU is written %d times, its boot %d times: %s", first, boot, line)
	}
	answer, err := parseAnswer(line)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(host, answer.Host.host(), cmpopts.IgnoreUnexported(host)); d != "" {
		t.Error(d)
	}
}

// ledgerAt is a ledger with a serial number.
type ledgerAt struct{ serial *int }

func (l ledgerAt) Read() ([]resource.Page, error) {
	return []resource.Page{{UUID: "GPU-0", Holders: []resource.Holder{{Lineage: "a", Serial: *l.serial}}}}, nil
}

func (l ledgerAt) Stamp() (string, error) { return fmt.Sprint(*l.serial), nil }

// TestReadingOfOneMoment: the GPUs are read again after a project has changed the ledger, and not for ever.
func TestReadingOfOneMoment(t *testing.T) {
	for _, c := range []struct{ changes, reads int }{{0, 1}, {1, 2}, {3, 4}, {100, maxReads}} {
		serial, reads := 0, 0
		host, err := ofOneMoment(ledgerAt{&serial}, func([]resource.Page) (*resource.Host, error) {
			if reads++; reads <= c.changes {
				serial++
			}
			return &resource.Host{Driver: fmt.Sprint(serial)}, nil
		})
		if err != nil || reads != c.reads || host.Driver != fmt.Sprint(host.Ledger[0].Holders[0].Serial) {
			t.Errorf("%d changes: %d readings, %+v, %v; want %d", c.changes, reads, host, err, c.reads)
		}
	}
}

// TestFullGPU: the profiles that no longer fit on a GPU are not asked for their instances.
func TestFullGPU(t *testing.T) {
	for used, one := range map[int]bool{7: true, 6: false} {
		host, client := newHost(t, Options{}, "h200")
		changes := [][2]string{{"mig", "on"}}
		for start := range used {
			changes = append(changes, [2]string{"slice", fmt.Sprintf("1g.18gb %d", start)})
		}
		for _, c := range append(changes, [2]string{"fault", "nvmlDeviceGetGpuInstances@0:100=NOT_SUPPORTED"}) { // which counts the calls
			if err := changeHost(host, "0", c[0], c[1]); err != nil {
				t.Fatal(err)
			}
		}
		gpu := read(t, client).GPUs[0]
		shown, err := host.Show()
		if err != nil {
			t.Fatal(err)
		}
		if calls := 100 - shown.Faults[0].Nth; (calls == 1) != one || len(gpu.Slices) != used {
			t.Errorf("%d slices: %d were read with %d calls", used, len(gpu.Slices), calls)
		}
	}
}

// TestReadingWhileOthersChange: what another process changes in the middle of a reading is nothing that the driver lacks.
func TestReadingWhileOthersChange(t *testing.T) {
	host, client := newHost(t, Options{}, "h200")
	must(t, host.Set(0, "mig", "on"))
	all := len(read(t, client).GPUs[0].Model.Profiles)
	begun := time.Now()
	read(t, client)
	whole := time.Since(begun)
	for i := range 500 {
		must(t, host.Set(0, "mig", "on"))
		id, err := host.CreateSlice(0, []string{"1g.18gb", "2g.35gb"}[i%2], i%3*2)
		must(t, err)
		changed := make(chan error)
		go func() {
			time.Sleep(rand.N(whole))
			err := host.DestroySlice(0, id)
			if i%4 < 2 {
				err = errors.Join(err, host.Set(0, "mig", "off"))
			}
			changed <- err
		}()
		gpu := read(t, client).GPUs
		must(t, <-changed)
		if len(gpu) != 1 || len(gpu[0].Degraded) > 0 || len(gpu[0].Model.Profiles) != all && gpu[0].MIG {
			t.Fatalf("reading %d of %d profiles: %+v", i, all, gpu)
		}
	}
}

// TestChangeWhileOthersChange: a slice is created and destroyed while another process destroys one beside it.
func TestChangeWhileOthersChange(t *testing.T) {
	ctx := context.Background()
	host, client := newHost(t, Options{}, "h200")
	must(t, host.Set(0, "mig", "on"))
	slice := resource.Slice{GPU: read(t, client).GPUs[0].UUID, Profile: "1g.18gb", Start: 0, Size: 1}
	begun := time.Now()
	made, err := client.CreateSlice(ctx, slice, resource.Need{SMs: 16})
	must(t, err)
	whole := time.Since(begun)
	must(t, client.DestroySlice(ctx, made))
	for range 300 {
		besides, err := host.CreateSlice(0, "1g.18gb", 1)
		must(t, err)
		changed := make(chan error)
		go func() {
			time.Sleep(rand.N(2 * whole))
			changed <- host.DestroySlice(0, besides)
		}()
		made, err := client.CreateSlice(ctx, slice, resource.Need{SMs: 16})
		if err == nil {
			err = client.DestroySlice(ctx, made)
		}
		must(t, err, <-changed)
	}
}
