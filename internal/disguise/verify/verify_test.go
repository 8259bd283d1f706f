package verify

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

const uuid = "GPU-5c764732-1624-50ab-8228-0f5f39704563"

// world is a session with a working disguise, for each test to break.
type world struct {
	w        Wanted
	who      map[string]string // records, by key
	env      map[string]string
	probe    map[string]string
	python   map[string]string
	smi      map[string]string
	codes    map[string]int
	barred   string
	observed Observed
}

func sound() *world {
	const clock, power = 1575, 700_000
	return &world{
		w: Wanted{
			Name: "NVIDIA GeForce RTX 2060", UUID: uuid, Slice: "MIG" + uuid[3:], MemoryMiB: 6144, Host: "NVIDIA H200", LacksTF32: true,
			Power: Power{160_000, 160_000, 80_000, 160_000}, User: &resource.User{Name: "alice", UID: 1000, GID: 1000},
			Env:       map[string]string{"GPU_COSPLAY_CARD": "rtx-2060", "PIP_BREAK_SYSTEM_PACKAGES": "1", "TOKEN": "secret", "CUDA_VISIBLE_DEVICES": "MIG" + uuid[3:]},
			Private:   map[string]bool{"TOKEN": true},
			Secret:    map[string]func(string) bool{"PASSWORD": func(value string) bool { return value == "hidden" }},
			Container: true, CUDA: true, Place: "1g.18gb, slot 0",
			Applied:  resource.Settings{}.With(resource.MIGMode, resource.On).With(resource.PersistenceMode, resource.On).With(resource.SMClock, clock).With(resource.PowerLimit, power).With(resource.ComputeMode, resource.ExclusiveProcess).With(resource.TimeSlice, 1),
			PythonIn: "/run/cosplay/python",
		},
		who: map[string]string{"uid": "1000", "gid": "1000", "name": "alice", "home": "/home/alice", "folder": "/workspace"},
		env: map[string]string{"GPU_COSPLAY_CARD": "rtx-2060", "PIP_BREAK_SYSTEM_PACKAGES": "1", "TOKEN": "secret", "CUDA_VISIBLE_DEVICES": "MIG" + uuid[3:], "HOME": "/home/alice", "PASSWORD": "hidden"},
		smi: map[string]string{
			"smi.table": "| NVIDIA-SMI 535 |\n| GPU  Name   MIG M. |\n|   0  NVIDIA GeForce RTX 2060   Off |\n|  20W / 160W |      0MiB /  6144MiB |\n",
			"smi.list":  "GPU 0: NVIDIA GeForce RTX 2060 (UUID: " + uuid + ")\n",
			"smi.full":  "    Product Name                          : NVIDIA GeForce RTX 2060\n    MIG Mode\n        Current : N/A\n    GPU UUID     : " + uuid + "\n    FB Memory Usage\n        Total   : 6144 MiB\n        Max Power Limit                   : 160.00 W\n",
			"smi.xml":   `<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "x.dtd"><nvidia_smi_log><gpu id="0"><product_name>NVIDIA GeForce RTX 2060</product_name><mig_mode><current_mig>N/A</current_mig></mig_mode><mig_devices>None</mig_devices><uuid>` + uuid + `</uuid><fb_memory_usage><total>6144 MiB</total></fb_memory_usage></gpu></nvidia_smi_log>`,
			"smi.query": "NVIDIA GeForce RTX 2060, 6144 MiB, 160.00 W\n",
		},
		probe: map[string]string{
			"nvml.load": "ok", "nvml.init": "ok", "nvml.count": "1", "nvml.second": "error 2", "nvml.name": "NVIDIA GeForce RTX 2060", "nvml.uuid": uuid,
			"nvml.memory": "6442450944 6442450944 0", "nvml.memory2": "6442450944 6442450944 0 0", "nvml.limit": "160000", "nvml.enforced": "160000",
			"nvml.default": "160000", "nvml.range": "80000 160000", "nvml.mig": "error 3", "nvml.migdevice": "error 6", "nvml.migdevices": "0",
			"cuda.load": "ok", "cuda.init": "ok", "cuda.count": "1", "cuda.name": "NVIDIA GeForce RTX 2060", "cuda.total": "6442450944", "cuda.uuid": uuid,
			"cuda.info": "6442450944 6127878144", "busy": "0", "before.books": "314572800 6127878144 6127878144 314572801 0",
			"one.above": "6129975296 2", "one.below": "6094323712 0", "one.books": "6408896512 33554432 33554432 6408896513 0",
			"two.first": "3063939072 0", "two.load": "ok", "two.init": "ok", "two.above": "2751463424 2", "two.below": "2715811840 0",
			"two.books": "6408896512 33554432 33554432 3378511873 3030384641", "after.books": "314572800 6127878144 6127878144 314572801 0",
		},
		python: map[string]string{
			"python.version": "3.11.7", "python.part": "/run/cosplay/python", "torch.name": "NVIDIA GeForce RTX 2060", "torch.memory": "6442450944",
			"torch.properties": "NVIDIA GeForce RTX 2060, 6442450944", "torch.below": "granted", "torch.above": "out of memory", "torch.tf32": "off",
			"torch.fork": "a child has the GPU", "pynvml.name": "NVIDIA GeForce RTX 2060", "pynvml.memory": "6442450944",
		},
		codes: map[string]int{},
		observed: Observed{SliceUUID: "MIG" + uuid[3:], Altered: map[string]string{}, Load: load(busySamples, 1575),
			Live: &resource.GPU{MIG: true, Persistence: true, SMClockMHz: 1575, PowerMW: 700_000, ComputeMode: resource.ExclusiveProcess, TimeSlice: new(1)}},
	}
}

func written(all map[string]string) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text.WriteString("\x00" + key + " " + all[key] + "\x00")
	}
	return text.String()
}

func (s *world) judge() []Result {
	who := "what the shell says\n" + written(s.who)
	for name, value := range s.env {
		who += "\x00env " + name + "=" + value + "\x00"
	}
	answers := map[string]Output{askWho: {Text: who}, askProbe: {Text: written(s.probe)}, askPython: {Text: written(s.python)}}
	for key, text := range s.smi {
		answers[key] = Output{Text: text}
	}
	for key, code := range s.codes {
		answers[key] = Output{Code: code, Error: "a last word"}
	}
	return Judge(s.w, []Inside{{Way: Exec, Barred: s.barred, Answers: answers}}, s.observed)
}

// checkNames lists all checks in their order.
func checkNames() []string {
	names := []string{entryName}
	for _, c := range insideChecks {
		names = append(names, c.name)
	}
	for _, c := range outsideChecks {
		names = append(names, c.name)
	}
	return names
}

func TestSound(t *testing.T) {
	all := sound().judge()
	for _, r := range all {
		if r.Outcome != Passed {
			t.Errorf("%s %s: expected %q, found %q %s", r.Check, r.Outcome, r.Expected, r.Got.What, r.Why)
		}
	}
	if len(all) != len(checkNames()) {
		t.Errorf("%d checks ran of %d", len(all), len(checkNames()))
	}
}

// put returns a sabotage that changes a value in a map.
func put(in func(*world) map[string]string, key, value string) func(*world) {
	return func(s *world) { in(s)[key] = value }
}

func probes(s *world) map[string]string  { return s.probe }
func pythons(s *world) map[string]string { return s.python }
func env(s *world) map[string]string     { return s.env }
func who(s *world) map[string]string     { return s.who }
func smi(key, from, to string) func(*world) {
	return func(s *world) { s.smi[key] = strings.Replace(s.smi[key], from, to, 1) }
}
func altered(check, how string) func(*world) {
	return func(s *world) { s.observed.Altered[check] = how }
}
func gpu(change func(*resource.GPU)) func(*world) {
	return func(s *world) { change(s.observed.Live) }
}

// sabotages each break one thing, with the check that must fail, and its text.
var sabotages = []struct {
	check, words string
	break_       func(*world)
}{
	{"environment", `GPU_COSPLAY_CARD is "rtx-9", not "rtx-2060"`, put(env, "GPU_COSPLAY_CARD", "rtx-9")},
	{"environment", "PIP_BREAK_SYSTEM_PACKAGES is not set", func(s *world) { delete(s.env, "PIP_BREAK_SYSTEM_PACKAGES") }},
	{"environment", "TOKEN is another", put(env, "TOKEN", "x")},
	{"environment", "PASSWORD is another", put(env, "PASSWORD", "x")},
	{"environment", "PASSWORD is not set", func(s *world) { delete(s.env, "PASSWORD") }},
	{"identity", "alice, uid 1001", put(who, "uid", "1001")},
	{"identity", "gid 0", put(who, "gid", "0")},
	{"identity", "bob, uid 1000", put(who, "name", "bob")},
	{"identity", "HOME /tmp and /home/alice in the account", put(env, "HOME", "/tmp")},
	{"smi.table", `it shows "H200"`, smi("smi.table", "Off", "NVIDIA H200")},
	{"smi.table", `no "6144MiB" in it`, smi("smi.table", "6144", "143771")},
	{"smi.table", `it shows "MIG devices"`, smi("smi.table", "| NVIDIA-SMI", "| MIG devices: |")},
	{"smi.list", "MIG 1g.18gb", smi("smi.list", ")\n", ")\n  MIG 1g.18gb Device 0: (UUID: MIG-1)\n")},
	{"smi.full", `no "Max Power Limit : 160.00 W" in it`, smi("smi.full", "160.00", "700.00")},
	{"smi.full", `it shows "MIG Device"`, smi("smi.full", "MIG Mode", "MIG Device")},
	{"smi.xml", "1 MIG devices", smi("smi.xml", "None", "<mig_device></mig_device>")},
	{"smi.xml", "MIG Enabled", smi("smi.xml", "N/A", "Enabled")},
	{"smi.xml", "no XML", smi("smi.xml", "</gpu>", "")},
	{"smi.name", "NVIDIA H200", smi("smi.query", "NVIDIA GeForce RTX 2060", "NVIDIA H200")},
	{"smi.memory", "143771 MiB", smi("smi.query", "6144", "143771")},
	{"smi.power", "700.00 W", smi("smi.query", "160.00", "700.00")},
	{"nvml.name", "NVIDIA H200", put(probes, "nvml.name", "NVIDIA H200")},
	{"nvml.uuid", "GPU-other", put(probes, "nvml.uuid", "GPU-other")},
	{"nvml.count", "2 GPU", put(probes, "nvml.count", "2")},
	{"nvml.count", "a handle of a second", put(probes, "nvml.second", "1")},
	{"nvml.memory", "6143 MiB by both layouts", func(s *world) {
		s.probe["nvml.memory"], s.probe["nvml.memory2"] = "6441402368 6441402368 0", "6441402368 6441402368 0 0"
	}},
	{"nvml.memory", "6144 MiB by the first, 6143 MiB by the second", put(probes, "nvml.memory2", "6441402368 6441402368 0 0")},
	{"nvml.sum", "by the first 6143 MiB free and 0 MiB used of 6144 MiB", put(probes, "nvml.memory", "6442450944 6441402368 0")},
	{"nvml.sum", "1 MiB reserved", put(probes, "nvml.memory2", "6442450944 6442450944 0 1048576")},
	{"nvml.limits", "700 W, enforced 160 W", put(probes, "nvml.limit", "700000")},
	{"nvml.limits", "from 80 W to 700 W", put(probes, "nvml.range", "80000 700000")},
	{"nvml.limits", "nvml.enforced: error 3", put(probes, "nvml.enforced", "error 3")},
	{"nvml.mig", "NVML reports a MIG mode: 1 1", put(probes, "nvml.mig", "1 1")},
	{"nvml.mig", "a MIG device can be asked for", put(probes, "nvml.migdevice", "1")},
	{"nvml.mig", "as many MIG devices as 7", put(probes, "nvml.migdevices", "7")},
	{"cuda.name", "NVIDIA H200 MIG 1g.18gb", put(probes, "cuda.name", "NVIDIA H200 MIG 1g.18gb")},
	{"cuda.uuid", "GPU-other", put(probes, "cuda.uuid", "GPU-other")},
	{"cuda.count", "8 device", put(probes, "cuda.count", "8")},
	{"cuda.total", "16384 MiB by device, 6144 MiB by context", put(probes, "cuda.total", "17179869184")},
	{"cuda.below", "5812 MiB refused with error 2", func(s *world) { s.probe["one.below"], s.probe["one.books"] = "6094323712 2", s.probe["before.books"] }},
	{"cuda.above", "5846 MiB granted", put(probes, "one.above", "6129975296 0")},
	{"cuda.above", "error 999", put(probes, "one.above", "6129975296 999")},
	{"cuda.above", "out of memory no sooner than at 32726 MiB", put(probes, "one.above", "34315698176 2")},
	{"cuda.above-two", "out of memory no sooner than at 32726 MiB", put(probes, "two.above", "34315698176 2")},
	{"cuda.below", "far above the cap: 32692 MiB granted", func(s *world) {
		s.probe["one.below"], s.probe["one.books"] = "34280046592 0", "6408896512 33554432 33554432 34594619393 0"
	}},
	{"cuda.below-two", "2590 MiB refused with error 2", func(s *world) {
		s.probe["two.below"], s.probe["two.books"] = "2715811840 2", "3693084672 2749366272 2749366272 3378511873 314572801"
	}},
	{"cuda.above-two", "2624 MiB granted", put(probes, "two.above", "2751463424 0")},
	{"cuda.sum", "NVML has 300 MiB used and 5844 MiB free, CUDA 32 MiB free", put(probes, "one.books", "314572800 6127878144 33554432 6408896513 0")},
	{"cuda.processes", "a second process is not listed", put(probes, "two.books", "6408896512 33554432 33554432 3378511873 0")},
	{"cuda.processes", "the probe is listed with 300 MiB and holds 6112 MiB", put(probes, "one.books", "6408896512 33554432 33554432 314572801 0")},
	{"cuda.returned", "a process that has ended is still listed", put(probes, "after.books", "314572800 6127878144 6127878144 314572801 1")},
	{"cuda.returned", "1000 MiB are still held", put(probes, "after.books", "314572800 6127878144 6127878144 1363148801 0")},
	{"cuda.returned", "5844 MiB free before, 32 MiB after", put(probes, "after.books", "314572800 6127878144 33554432 314572801 0")},
	{"python.part", "sitecustomize of /usr/lib/python3", put(pythons, "python.part", "/usr/lib/python3")},
	{"torch.name", "NVIDIA H200", put(pythons, "torch.name", "NVIDIA H200")},
	{"torch.memory", "143771 MiB", put(pythons, "torch.memory", "150754820096")},
	{"torch.properties", "NVIDIA GeForce RTX 2060, 143771 MiB", put(pythons, "torch.properties", "NVIDIA GeForce RTX 2060, 150754820096")},
	{"torch.below", "out of memory", put(pythons, "torch.below", "out of memory")},
	{"torch.above", "granted", put(pythons, "torch.above", "granted")},
	{"torch.tf32", "on", put(pythons, "torch.tf32", "on")},
	{"torch.fork", "a child has no GPU", put(pythons, "torch.fork", "a child has no GPU: it ended with status 256")},
	{"pynvml.name", "NVIDIA H200", put(pythons, "pynvml.name", "NVIDIA H200")},
	{"pynvml.memory", "143771 MiB", put(pythons, "pynvml.memory", "150754820096")},
	{"slice.inside", "MIG-other", func(s *world) {
		s.w.Env["CUDA_VISIBLE_DEVICES"], s.env["CUDA_VISIBLE_DEVICES"] = "MIG-other", "MIG-other"
	}},
	{"slice.outside", "nothing where 1g.18gb, slot 0 should be", func(s *world) { s.observed.SliceUUID = "" }},
	{"slice.outside", "MIG-other", func(s *world) { s.observed.SliceUUID = "MIG-other" }},
	{"settings.mig", "off", gpu(func(g *resource.GPU) { g.MIG = false })},
	{"settings.persistence", "off", gpu(func(g *resource.GPU) { g.Persistence = false })},
	{"settings.power", "350 W", gpu(func(g *resource.GPU) { g.PowerMW = 350_000 })},
	{"settings.time-slice-length", "long", gpu(func(g *resource.GPU) { g.TimeSlice = new(3) })},
	{"settings.compute-mode", "default", gpu(func(g *resource.GPU) { g.ComputeMode = resource.DefaultMode })},
	{"settings.clock", "not in effect; 1980 MHz now", func(s *world) {
		s.observed.LockLost, s.observed.Live.SMClockMHz, s.observed.Load = true, 1980, Load{}
	}},
	{"settings.clock", "1980 MHz under load", func(s *world) { s.observed.Load = load(1, 1575, 1980) }},
	{"settings.clock", "900 MHz under load", func(s *world) { s.observed.Load = load(busySamples, 1575, 900) }},
	{"files.facades", "lib/libcuda.so.1 was changed", altered(FacadesCheck, "lib/libcuda.so.1 was changed")},
	{"files.figures", "figures was changed", altered(FiguresCheck, "figures was changed")},
	{"files.usage", "usage is missing", altered(UsageCheck, "usage is missing")},
	{"memory.accounted", "5000 MiB of memory used outside the accounting", func(s *world) { s.observed.Bypassed = 5000 << 20 }},
	{"files.driver", "libcuda.so.1 was changed", altered(DriverCheck, "libcuda.so.1 was changed")},
	{"files.mounts", "/run/cosplay can be written to", altered(MountsCheck, "/run/cosplay can be written to")},
}

// TestSabotage checks that each sabotage makes exactly one check fail, with a text and a fix.
func TestSabotage(t *testing.T) {
	tried := map[string]bool{entryName: true} // see TestEntry
	for _, s := range sabotages {
		tried[s.check] = true
		broken := sound()
		s.break_(broken)
		var failed []string
		for _, r := range broken.judge() {
			if r.Outcome == Passed {
				continue
			}
			failed = append(failed, r.Check)
			if r.Check == s.check && (r.Outcome != Failed || !strings.Contains(r.Got.What, s.words) || r.Got.Fix == "") {
				t.Errorf("%s says %q (%s), want %q; fix %q", r.Check, r.Got.What, r.Outcome, s.words, r.Got.Fix)
			}
		}
		if !slices.Equal(failed, []string{s.check}) {
			t.Errorf("with %q in %s, what fails is %v", s.words, s.check, failed)
		}
	}
	for _, name := range checkNames() {
		if !tried[name] {
			t.Errorf("nothing is sabotaged for %s", name)
		}
	}
}

// TestVisible: which values of CUDA_VISIBLE_DEVICES give programs their slice.
func TestVisible(t *testing.T) {
	slice := sound().w.Slice
	for _, c := range []struct {
		value           string
		container, cuda bool
		want            Outcome
	}{
		{slice, true, true, Passed}, {"0", true, true, Passed}, {"0", true, false, Passed}, {"1", true, true, Failed},
		{slice, false, true, Passed}, {"0", false, true, Passed}, {"0", false, false, Failed}, {"", false, true, Failed},
	} {
		s := sound()
		s.w.Container, s.w.CUDA, s.env["CUDA_VISIBLE_DEVICES"] = c.container, c.cuda, c.value
		for _, r := range s.judge() {
			if r.Check == "slice.inside" && r.Outcome != c.want || r.Check == "environment" && r.Outcome != Passed {
				t.Errorf("%+v: %s has %s: %s", c, r.Check, r.Outcome, r.Got.What)
			}
		}
	}
}

// A session of several devices must show as many, and name all of them.
func TestSeveralDevices(t *testing.T) {
	slice := sound().w.Slice
	for _, c := range []struct {
		value, nvml, cuda string
		container         bool
		fails             string
	}{
		{slice + ",GPU-2", "2", "2", false, ""}, {"0,1", "2", "2", true, ""},
		{slice, "2", "2", false, "slice.inside"}, {"0", "2", "2", true, "slice.inside"}, {"0,2", "2", "2", true, "slice.inside"},
		{"0,1", "1", "2", true, "nvml.count"}, {"0,1", "2", "1", true, "cuda.count"},
	} {
		s := sound()
		s.w.More, s.w.Container, s.env["CUDA_VISIBLE_DEVICES"] = []string{"GPU-2"}, c.container, c.value
		put(probes, "nvml.count", c.nvml)(s)
		put(probes, "nvml.second", "1")(s)
		put(probes, "cuda.count", c.cuda)(s)
		var failed []string
		for _, r := range s.judge() {
			if slices.Contains([]string{"slice.inside", "nvml.count", "cuda.count"}, r.Check) && r.Outcome == Failed && !slices.Contains(failed, r.Check) {
				failed = append(failed, r.Check)
			}
		}
		if got := strings.Join(failed, " "); got != c.fails {
			t.Errorf("%+v: %q fails", c, got)
		}
	}
}

// TestNotApplicable: on a simulated host PyTorch's checks of the GPU count only if PyTorch found one.
func TestNotApplicable(t *testing.T) {
	missing := func(s *world) { s.python = map[string]string{"torch.missing": "no torch"} }
	none := func(s *world) { s.python["torch.gpu"] = "False"; s.python["torch.name"] = "RuntimeError" }
	broken := func(s *world) { s.python = map[string]string{"torch.broken": "an error"} }
	for _, c := range []struct {
		break_        func(*world)
		simulated     bool
		name, outcome string
	}{
		{missing, true, "torch.name", "skipped"}, {missing, true, "torch.tf32", "skipped"}, {missing, false, "torch.name", "skipped"},
		{none, true, "torch.name", "not_applicable"}, {none, true, "torch.tf32", "passed"}, {none, false, "torch.name", "failed"},
		{broken, true, "torch.name", "failed"},
	} {
		s := sound()
		c.break_(s)
		s.w.Simulated = c.simulated
		for _, r := range s.judge() {
			if r.Check == c.name && (string(r.Outcome) != c.outcome || (r.Outcome == NotApplicable) != (r.Why == noRuntime)) {
				t.Errorf("simulated %t: %s is %s (%s), want %s", c.simulated, c.name, r.Outcome, r.Why, c.outcome)
			}
		}
	}
}

// TestByCPU marks the checks that PyTorch computed without a GPU, and no others.
func TestByCPU(t *testing.T) {
	s := sound()
	s.w.Simulated, s.python["torch.gpu"], s.python["torch.by"] = true, "True", "CPU"
	for _, r := range s.judge() {
		byTorch := strings.HasPrefix(r.Check, "torch.") && r.Check != "torch.tf32"
		if (r.By == "CPU") != byTorch || r.Outcome == Failed {
			t.Errorf("%s is %s by %q", r.Check, r.Outcome, r.By)
		}
	}
}

// TestUnaccounted: what a process may use besides its allocations counts as its context.
func TestUnaccounted(t *testing.T) {
	for _, c := range []struct {
		used, accounted uint64
		processes       int
		want            uint64
	}{{0, 0, 0, 0}, {900 << 20, 0, 1, 0}, {3 << 30, 0, 1, 3 << 30}, {3 << 30, 5 << 30, 1, 0}, {6 << 30, 4 << 30, 2, 0}, {6<<30 + 1, 4 << 30, 2, 2<<30 + 1}} {
		if got := Unaccounted(c.used, c.accounted, c.processes); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// load is so many readings of each clock, of a GPU that is busy.
func load(each int, clocks ...int) Load {
	var l Load
	for _, mhz := range clocks {
		l.Samples = append(l.Samples, slices.Repeat([]resource.ClockSample{{MHz: mhz}}, each)...)
	}
	return l
}

// TestLoad: what readings of the SM clock prove of a lock at 1575 MHz.
func TestLoad(t *testing.T) {
	idle := Load{Samples: slices.Repeat([]resource.ClockSample{{MHz: 345, LowClockReason: true}}, 50)}
	join := func(all ...Load) (l Load) {
		for _, one := range all {
			l.Samples = append(l.Samples, one.Samples...)
		}
		return l
	}
	for name, c := range map[string]struct {
		load           Load
		mhz            int
		known, settled bool
	}{
		"nothing":                     {},
		"idle":                        {load: idle},
		"held down by power":          {load: Load{Samples: slices.Repeat([]resource.ClockSample{{MHz: 1200, LowClockReason: true}}, 50)}},
		"at the lock":                 {load(busySamples, 1575), 1575, true, true},
		"idle, then at the lock":      {join(idle, load(1, 600, 1200), load(busySamples, 1575)), 1575, true, true},
		"too few at the lock":         {load(busySamples-1, 1575), 1575, false, false},
		"above once":                  {load(1, 345, 1575, 1980), 1980, true, true},
		"above, and on its way up":    {load(1, 1590, 1980, 1950), 1980, true, true},
		"below it stays":              {load(busySamples, 900), 900, true, false},
		"below, and then at the lock": {join(load(busySamples, 900), load(busySamples, 1575)), 1575, true, true},
	} {
		mhz, known := c.load.MHz(1575)
		if known != c.known || known && mhz != c.mhz || c.load.Settled(1575) != c.settled {
			t.Errorf("%s: %d MHz, known %t, settled %t; want %+v", name, mhz, known, c.load.Settled(1575), c)
		}
	}
}

// TestEntry checks that, if no program can run, only that is reported.
func TestEntry(t *testing.T) {
	for words, break_ := range map[string]func(*world){
		"Permission denied":                            func(s *world) { s.barred = "Permission denied (publickey)" },
		"nothing: it ended with code 127: a last word": func(s *world) { s.codes[askWho] = notFound },
	} {
		s := sound()
		break_(s)
		all := s.judge()
		if len(all) != 1+len(outsideChecks) || all[0].Outcome != Failed || !strings.Contains(all[0].Got.What, words) || all[0].Got.Fix == "" {
			t.Errorf("%q: %+v", words, all[0])
		}
	}
}

// TestSkips checks that a check is skipped with the reason if an image, a driver or Python lacks something, and fails
// if something merely breaks.
func TestSkips(t *testing.T) {
	for _, c := range []struct {
		why    string
		class  Class
		count  int
		change func(*world)
	}{
		{"there is no nvidia-smi in the session", SMI, 7, func(s *world) {
			for _, v := range views {
				s.codes[v.key] = notFound
			}
		}},
		{"the image has no glibc", NVML, 18, func(s *world) { s.codes[askProbe] = notFound }},
		{"the host's driver has no libcuda.so.1", CUDA, 11, func(s *world) { s.w.CUDA = false }},
		{"there is no python3 in the session", Python, 10, func(s *world) { s.codes[askPython] = notFound }},
		{"no Python module torch", Python, 7, put(pythons, "torch.missing", "no Python module torch")},
		{"not provable: no program could be run", Settings, 1, func(s *world) { s.observed.Load = Load{} }},
		{"not provable: CUDA: error 999", Settings, 1, func(s *world) { s.observed.Load = Load{Failed: "CUDA: error 999"} }},
		{"not provable: under load the GPU stayed idle", Settings, 1, func(s *world) {
			s.observed.Load = Load{Samples: []resource.ClockSample{{MHz: 345, LowClockReason: true}, {MHz: 1980, LowClockReason: true}}}
		}},
		{"cosplay does not manage the SM clock: nvmlDeviceSetGpuLockedClocks", Settings, 1, func(s *world) {
			s.observed.Live.Degraded = []resource.Degradation{{Feature: resource.FeatureClock, Call: "nvmlDeviceSetGpuLockedClocks", Set: true}}
			s.observed.Load = load(1, 1575, 1980)
		}},
		{"did not settle within 2 readings", Settings, 1, func(s *world) { s.observed.Load = load(1, 345, 1575) }},
	} {
		s := sound()
		c.change(s)
		skipped := 0
		for _, r := range s.judge() {
			switch {
			case r.Outcome == Skipped && strings.Contains(r.Why, c.why):
				skipped++
			case r.Outcome != Passed:
				t.Errorf("%s: %s is %s: %s %s", c.why, r.Check, r.Outcome, r.Got.What, r.Why)
			}
		}
		if skipped != c.count {
			t.Errorf("%s: %d are skipped, want %d", c.why, skipped, c.count)
		}
	}
	for words, change := range map[string]func(*world){
		"NVML: libnvidia-ml.so.1: cannot open": func(s *world) { s.probe = map[string]string{"nvml.load": "libnvidia-ml.so.1: cannot open"} },
		"CUDA: error 999":                      func(s *world) { delete(s.probe, "one.above"); s.probe["cuda.init"] = "error 999" },
		"it ended with code 139: a last word":  func(s *world) { s.codes[askProbe] = 139 },
		"ImportError: libcudart":               put(pythons, "torch.broken", "ImportError: libcudart"),
		"it ended with code 1: a last word":    func(s *world) { s.codes["smi.table"], s.codes[askPython] = 1, 1 },
		"it ended with code 126: a last word":  func(s *world) { s.codes["smi.list"], s.codes[askPython], s.codes[askProbe] = 126, 126, 126 },
	} {
		s := sound()
		change(s)
		failed := 0
		for _, r := range s.judge() {
			if r.Outcome == Skipped {
				t.Errorf("%s: %s is skipped: %s", words, r.Check, r.Why)
			}
			if r.Outcome == Failed && strings.Contains(r.Got.What, words) {
				failed++
			}
		}
		if failed == 0 {
			t.Errorf("nothing says %q", words)
		}
	}
}

// TestGently: where the session's own programs use the GPU, Python takes little.
func TestGently(t *testing.T) {
	for busy, argv := range map[string]string{"0": "python3 -", "1": "python3 - gently"} {
		q := Follow(map[string]Output{askProbe: {Text: "\x00busy " + busy + "\x00"}})
		if got := strings.Join(q.Argv, " "); got != argv || q.Stdin != script {
			t.Errorf("with busy %s Python is asked by %q", busy, got)
		}
	}
}
