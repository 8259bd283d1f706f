package agent

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/catalog"
	"cosplay/internal/ledger"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// FuzzProtocol: whatever comes in, it is answered or refused, and nothing panics.
// A process has one NVML library, and other tests have theirs: so it runs alone,
// in make check-long.
func FuzzProtocol(f *testing.F) {
	if flag.Lookup("test.fuzz").Value.String() == "" {
		f.Skip("not asked to fuzz")
	}
	dir := f.TempDir()
	model, err := catalog.HostModel("h200")
	if err != nil {
		f.Fatal(err)
	}
	if err := sim.Create(dir, []resource.Model{model}, sim.Options{Seed: "fuzz"}); err != nil {
		f.Fatal(err)
	}
	lib, err := open(sim.LibraryPath(dir))
	if err != nil {
		f.Fatal(err)
	}
	lib.book = ledger.Book{Dir: dir}
	host, err := lib.read()
	if err != nil {
		f.Fatal(err)
	}
	gpu := host.GPUs[0].UUID
	slice := &resource.LiveSlice{Slice: resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 0, Size: 1}}
	for _, r := range []request{
		{Op: opRead},
		{Op: opTake, GPU: gpu, Take: &ledger.Take{}, Holder: resource.Holder{Lineage: "a"}},
		{Op: opSetMIG, GPU: gpu, On: true, Holder: resource.Holder{Lineage: "a"}},
		{Op: opLockClock, GPU: gpu, Value: 1575, Holder: resource.Holder{Lineage: "a"}},
		{Op: opCreateSlice, GPU: gpu, Slice: slice, Need: &resource.Need{SMs: 16}, Holder: resource.Holder{Lineage: "a"}},
		{Op: opDestroySlice, GPU: gpu, Slice: slice, Holder: resource.Holder{Lineage: "a"}},
		{Op: opRelease, GPU: gpu},
		{Op: "rubbish"},
	} {
		line, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.ReplaceAll(line, []byte(`"deadline":0,`), nil))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.Contains(bytes.ToLower(line), []byte("deadline")) {
			return // past a short one the agent ends itself
		}
		if ret := lib.Init(); ret != nvml.SUCCESS { // counted: serve shuts down what it was given
			t.Fatal(ret)
		}
		_ = lib.serve(bytes.NewReader(line), io.Discard)
	})
}
