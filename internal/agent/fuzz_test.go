package agent

import (
	"bytes"
	"flag"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/catalog"
	"cosplay/internal/ledger"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// seedsAlone marks a process that tries the fuzzer's seeds and nothing else.
const seedsAlone = "COSPLAY_SEEDS_ALONE"

// TestProtocol tries the seeds of FuzzProtocol. A process has one NVML library,
// and other tests use others: so the seeds run in a separate process.
func TestProtocol(t *testing.T) {
	seeds := exec.Command(os.Args[0], "-test.run=^FuzzProtocol$", "-test.v")
	seeds.Env = append(os.Environ(), seedsAlone+"=1")
	out, err := seeds.CombinedOutput()
	if passed := bytes.Count(out, []byte("--- PASS: FuzzProtocol/seed#")); err != nil || passed != len(seedRequests("")) {
		t.Errorf("%d seeds passed, %v\n%s", passed, err, out)
	}
}

// FuzzProtocol: whatever comes in, it is answered or refused, and nothing panics.
func FuzzProtocol(f *testing.F) {
	if flag.Lookup("test.fuzz").Value.String() == "" && os.Getenv(seedsAlone) == "" {
		f.Skip("TestProtocol runs it")
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
	for _, r := range seedRequests(host.GPUs[0].UUID) {
		r.Version = Protocol
		line := written(f, r)
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

// seedRequests are one of each kind.
func seedRequests(gpu string) []request {
	us, mig, clock := resource.Holder{Lineage: "a"}, resource.MIGMode, resource.SMClock
	slice := &resource.LiveSlice{Slice: resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 0, Size: 1}}
	return []request{
		{Op: opHello},
		{Op: opRead},
		{Op: opTake, GPU: gpu, Take: &ledger.Take{}, Holder: us},
		{Op: opSet, GPU: gpu, Setting: &mig, Value: resource.On, Holder: us},
		{Op: opSet, GPU: gpu, Setting: &clock, Value: 1575, Holder: us},
		{Op: opCreateSlices, GPU: gpu, Creates: []creation{{slice.Slice, resource.Need{SMs: 16}}}, Holder: us},
		{Op: opDestroySlice, GPU: gpu, Slice: slice, Holder: us},
		{Op: opRelease, GPU: gpu},
		{Op: "rubbish"},
	}
}
