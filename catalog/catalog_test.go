package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"cosplay/internal/resource"
)

func TestCounts(t *testing.T) {
	if got := len(Targets()); got != 123 {
		t.Errorf("%d targets, want 123", got)
	}
	if got := len(Hosts()); got != 26 {
		t.Errorf("%d hosts, want 26", got)
	}
}

// A file of a generation that is not in the list would not be read.
func TestEveryFileHasAGeneration(t *testing.T) {
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		_, generation, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".hcl"), "-")
		if !slices.Contains(generations, generation) {
			t.Errorf("%s: generations lacks %q, so nothing reads the file", e.Name(), generation)
		}
	}
}

// load finds blocks by their first lines; the HCL parser must find the same ones.
func TestTableAgreesWithParser(t *testing.T) {
	for _, e := range targets().entries {
		if v := e.value(); v.Key != e.key || v.Name != e.name || !slices.Equal(v.Aliases, e.aliases) {
			t.Errorf("%s: cut as %q %q, parsed as %q %q %q", e.key, e.name, e.aliases, v.Key, v.Name, v.Aliases)
		}
	}
	for _, e := range hosts().entries {
		if v := e.value(); v.Key != e.key || v.Model.Name != e.name || !slices.Equal(v.Aliases, e.aliases) {
			t.Errorf("%s: cut as %q %q, parsed as %q %q %q", e.key, e.name, e.aliases, v.Key, v.Model.Name, v.Aliases)
		}
	}
}

// An error in a file names the line in that file.
func TestBlocksKnowTheirLine(t *testing.T) {
	lines := load("target", func(_ string, block *hclsyntax.Block) int { return block.TypeRange.Start.Line })
	i := slices.IndexFunc(lines.entries, func(e *entry[int]) bool { return e.key == "titan-rtx" })
	text, err := files.ReadFile("targets-turing.hcl")
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), `target "titan-rtx"`)
	if want := strings.Count(before, "\n") + 1; !found || lines.entries[i].value() != want {
		t.Errorf("titan-rtx is at line %d, want %d", lines.entries[i].value(), want)
	}
}

func TestNothingResolvesTwoWays(t *testing.T) {
	checkForms(t, targets())
	checkForms(t, hosts())
}

func checkForms[T any](t *testing.T, table *table[T]) {
	t.Helper()
	owner := map[string]string{}
	for _, e := range table.entries {
		for _, name := range append([]string{e.key}, e.aliases...) {
			form := plain(name)
			if form == "" {
				t.Errorf("%s %s: nothing is left of %q", table.kind, e.key, name)
			}
			if o, taken := owner[form]; taken && o != e.key {
				t.Errorf("%s: %q means both %s and %s", table.kind, name, o, e.key)
			}
			owner[form] = e.key
		}
		aliases := slices.Clone(e.aliases)
		slices.Sort(aliases)
		if len(slices.Compact(aliases)) != len(e.aliases) || slices.Contains(aliases, e.key) {
			t.Errorf("%s %s: an alias is there twice", table.kind, e.key)
		}
	}
	byName := map[string][]string{}
	for _, e := range table.entries {
		byName[plain(e.name)] = append(byName[plain(e.name)], e.key)
	}
	for form, keys := range byName {
		if len(keys) > 1 && owner[form] == "" {
			t.Errorf("%s: NVML's name %q is that of %q; give one of them that alias", table.kind, form, keys)
		}
	}
}

func TestTargetsAreInOrder(t *testing.T) {
	var keys []string
	for _, target := range Targets() {
		keys = append(keys, target.Key)
	}
	ladder := []string{"gtx-980", "gtx-1050", "p100-pcie", "v100-16gb", "v100-32gb", "gtx-1650", "rtx-2060", "rtx-2080-ti", "rtx-3060-8gb", "rtx-3060", "rtx-3090", "rtx-4090", "h100", "rtx-5090"}
	for i := 1; i < len(ladder); i++ {
		if slices.Index(keys, ladder[i-1]) >= slices.Index(keys, ladder[i]) {
			t.Errorf("%s does not come before %s", ladder[i-1], ladder[i])
		}
	}
}

func TestTargetFigures(t *testing.T) {
	for _, target := range Targets() {
		positive := map[string]float64{
			"SMs": float64(target.SMs), "boost": float64(target.BoostMHz), "memory": float64(target.MemoryMiB),
			"bus": float64(target.BusBits), "bandwidth": target.BandwidthGBs, "L2": target.L2MiB,
			"power": float64(target.PowerW), "PCIe": float64(target.PCIeGeneration), "FP32": target.FP32TFLOPS,
		}
		for what, figure := range positive {
			if figure <= 0 {
				t.Errorf("%s: %s is %g", target.Key, what, figure)
			}
		}
		if target.Name == "" || target.Source == "" || target.ComputeCapability == "" {
			t.Errorf("%s: name, source or compute capability is missing", target.Key)
		}
		if target.Year < 2014 || target.Year > 2030 {
			t.Errorf("%s: year %d", target.Key, target.Year)
		}
		if (target.TensorFP16TFLOPS > 0) && len(target.TensorTypes) == 0 {
			t.Errorf("%s: a tensor rate without tensor types", target.Key)
		}
	}
}

func TestHostFigures(t *testing.T) {
	for _, h := range Hosts() {
		m := h.Model
		pascal := strings.HasPrefix(m.ComputeCapability, "6.") // without tensor cores and clock locks
		if m.SMs <= 0 || m.MemoryMiB <= 0 || m.BandwidthGBs <= 0 || m.L2MiB <= 0 || m.FP32PerSM <= 0 || (m.TensorPerSM <= 0) != pascal {
			t.Errorf("%s: a figure is missing: %+v", h.Key, m)
		}
		if h.Source == "" || m.Name == "" {
			t.Errorf("%s: no source or no name", h.Key)
		}
		if !(0 < m.PowerMinMW && m.PowerMinMW <= m.PowerDefaultMW && m.PowerDefaultMW <= m.PowerMaxMW) {
			t.Errorf("%s: power %d, %d, %d mW", h.Key, m.PowerMinMW, m.PowerDefaultMW, m.PowerMaxMW)
		}
		if len(m.ClocksMHz) < 50 && !pascal || !slices.IsSorted(m.ClocksMHz) {
			t.Errorf("%s: clocks %v", h.Key, m.ClocksMHz)
		}
		fp32, tensor := ratesPerSM(m.Name, m.ComputeCapability)
		if m.FP32PerSM != fp32 || m.TensorPerSM != tensor {
			t.Errorf("%s: rates %g and %g, by compute capability %g and %g", h.Key, m.FP32PerSM, m.TensorPerSM, fp32, tensor)
		}
	}
}

func TestMIGTables(t *testing.T) {
	cut := 0
	for _, h := range Hosts() {
		m := h.Model
		if m.MIG() != (len(m.Profiles) > 0) || m.MIG() != (m.ComputeSlices > 0) {
			t.Errorf("%s: half a MIG table", h.Key)
		}
		if m.MIG() {
			cut++
		}
		for _, p := range m.Profiles {
			checkProfile(t, h.Key, m, p)
		}
	}
	if cut != 12 {
		t.Errorf("%d hosts with MIG, want 12", cut)
	}
}

func checkProfile(t *testing.T, host string, m resource.Model, p resource.Profile) {
	t.Helper()
	if p.SMs <= 0 || p.SMs > m.SMs || p.MemoryMiB <= 0 || p.MemoryMiB > m.MemoryMiB || p.ComputeSlices > m.ComputeSlices {
		t.Errorf("%s %s: more than the GPU has: %+v", host, p.Name, p)
	}
	if p.MaxInstances < 1 || p.MaxInstances > len(p.Starts) || p.MaxInstances*p.MemorySlices > m.MemorySlices {
		t.Errorf("%s %s: %d instances do not fit", host, p.Name, p.MaxInstances)
	}
	for _, start := range p.Starts {
		if start < 0 || start+p.MemorySlices > m.MemorySlices || start%p.MemorySlices != 0 {
			t.Errorf("%s %s: cannot start at %d", host, p.Name, start)
		}
	}
	for _, o := range m.Profiles {
		if o.ID == p.ID && o.Name != p.Name {
			t.Errorf("%s: %s and %s have the id %d", host, o.Name, p.Name, p.ID)
		}
	}
}

func TestTargetSpellings(t *testing.T) {
	for typed, want := range map[string]string{
		"2060": "rtx-2060", "rtx2060": "rtx-2060", "RTX_2060": "rtx-2060", "RTX 2060": "rtx-2060", " rtx-2060 ": "rtx-2060",
		"NVIDIA GeForce RTX 2060": "rtx-2060", "nvidia_geforce_rtx_2060": "rtx-2060", "GeForce 2060": "rtx-2060", "2060-6g": "rtx-2060",
		"2060 super": "rtx-2060-super", "2060Super": "rtx-2060-super", "RTX 2060 SUPER": "rtx-2060-super",
		"2060-12gb": "rtx-2060-12gb", "2060_12g": "rtx-2060-12gb", "RTX 2060 12 GB": "rtx-2060-12gb", "rtx_2060_12GiB": "rtx-2060-12gb",
		"1060": "gtx-1060", "GTX 1060 3GB": "gtx-1060-3gb", "NVIDIA GeForce GTX 1060 6GB": "gtx-1060", "1660 Ti": "gtx-1660-ti", "1080ti": "gtx-1080-ti",
		"3060 8g": "rtx-3060-8gb", "NVIDIA GeForce RTX 3060": "rtx-3060", "3080": "rtx-3080", "3080 12GB": "rtx-3080-12gb",
		"4060 Ti 16 GB": "rtx-4060-ti-16gb", "4060ti": "rtx-4060-ti", "4070 ti super": "rtx-4070-ti-super", "4090D": "rtx-4090-d", "RTX 4090": "rtx-4090",
		"titan v": "titan-v", "NVIDIA TITAN RTX": "titan-rtx", "titanrtx": "titan-rtx", "Quadro RTX 8000": "quadro-rtx-8000", "a6000": "rtx-a6000",
		"6000 Ada": "rtx-6000-ada", "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada", "rtx pro 6000": "rtx-pro-6000", "RTX PRO 6000 Server": "rtx-pro-6000-server",
		"Tesla T4": "t4", "t4": "t4", "Tesla P100-PCIE-16GB": "p100-pcie", "v100": "v100-16gb", "Tesla V100-SXM2-32GB": "v100-32gb",
		"a100": "a100-40gb", "A100 80GB": "a100-80gb", "A100-SXM4-80GB": "a100-80gb", "NVIDIA A100 80GB PCIe": "a100-pcie-80gb", "a100_80g": "a100-80gb",
		"H100": "h100", "h100 sxm": "h100", "NVIDIA H100 80GB HBM3": "h100", "h100_pcie": "h100-pcie", "h100nvl": "h100-nvl", "h200": "h200", "gb200": "gb200", "GH200": "gh200",
		"h100_sxm_80g": "h100", "H100 SXM (80GB)": "h100", "H100 NVL (94GB)": "h100-nvl", "h200_sxm_141g": "h200", "H200 SXM (141GB)": "h200",
		"5090 D": "rtx-5090-d", "L40S": "l40s", "l40": "l40", "a10g": "a10g", "NVIDIA B300 SXM6 AC": "b300",
	} {
		target, err := Target(typed)
		if err != nil || target.Key != want {
			t.Errorf("Target(%q) = %q, %v; want %s", typed, target.Key, err, want)
		}
	}
}

func TestHostSpellings(t *testing.T) {
	for typed, want := range map[string]string{
		"h200": "NVIDIA H200", "NVIDIA H200": "NVIDIA H200", "H200-SXM": "NVIDIA H200", "a100-80gb": "NVIDIA A100-SXM4-80GB", "A100 80GB": "NVIDIA A100-SXM4-80GB",
		"a100": "NVIDIA A100-SXM4-40GB", "4090": "NVIDIA GeForce RTX 4090", "h100": "NVIDIA H100 80GB HBM3", "H100 PCIe": "NVIDIA H100 PCIe",
		"v100": "Tesla V100-SXM2-32GB", "rtx_6000_ada": "NVIDIA RTX 6000 Ada Generation", "rtx pro 6000": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
		"h100_sxm_80g": "NVIDIA H100 80GB HBM3", "H100 SXM (80GB)": "NVIDIA H100 80GB HBM3", "H100 NVL (94GB)": "NVIDIA H100 NVL",
		"h200_sxm_141g": "NVIDIA H200", "H200 SXM (141GB)": "NVIDIA H200", "A30": "NVIDIA A30", "l40s": "NVIDIA L40S", "gh200": "NVIDIA GH200 480GB", "GH200 144GB": "NVIDIA GH200 144G HBM3e",
	} {
		m, err := HostModel(typed)
		if err != nil || m.Name != want {
			t.Errorf("HostModel(%q) = %q, %v; want %s", typed, m.Name, err, want)
		}
	}
}

// Every name that the catalog or NVML has for a GPU finds it.
func TestOwnNamesAreFound(t *testing.T) {
	for _, want := range Targets() {
		for _, name := range append([]string{want.Key, strings.ToUpper(want.Key), strings.ReplaceAll(want.Key, "-", "_")}, want.Aliases...) {
			if got, err := Target(name); err != nil || got.Key != want.Key {
				t.Errorf("Target(%q) = %q, %v; want %s", name, got.Key, err, want.Key)
			}
		}
		if got, err := Target(want.Name); err != nil || got.Name != want.Name {
			t.Errorf("Target(%q) = %q, %v", want.Name, got.Name, err)
		}
	}
	for _, want := range Hosts() {
		if got, err := HostModel(want.Model.Name); err != nil || got.Name != want.Model.Name {
			t.Errorf("HostModel(%q) = %q, %v", want.Model.Name, got.Name, err)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	for typed, want := range map[string]string{
		"2600":             "unknown target \"2600\". The catalog has no such GPU. Did you mean \"2060\"? `cosplay ls` lists all 123.",
		"RTX 3009":         "unknown target \"RTX 3009\". The catalog has no such GPU. Did you mean \"3090\"? `cosplay ls` lists all 123.",
		"4060 supr":        "unknown target \"4060 supr\". The catalog has no such GPU. Did you mean \"2060-super\"? `cosplay ls` lists all 123.",
		"toaster":          "unknown target \"toaster\". The catalog has no such GPU. `cosplay ls` lists all 123.",
		"":                 "unknown target \"\". The catalog has no such GPU. `cosplay ls` lists all 123.",
		"RTX":              "unknown target \"RTX\". The catalog has no such GPU. `cosplay ls` lists all 123.",
		"titan":            "ambiguous target \"titan\". Say which one: gtx-titan-x, titan-v, titan-rtx.",
		"rtx pro 6000 max": "unknown target \"rtx pro 6000 max\". The catalog has no such GPU. Did you mean \"rtx-pro-6000-max-q\"? `cosplay ls` lists all 123.",
	} {
		_, err := Target(typed)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Typed != typed {
			t.Errorf("Target(%q): error %v, want an UnknownError", typed, err)
			continue
		}
		if err.Error() != want {
			t.Errorf("Target(%q):\n got %s\nwant %s", typed, err, want)
		}
	}
	_, err := HostModel("h2000")
	if want := `unknown GPU to run on "h2000". The catalog has no such GPU. Did you mean "h200"? It has p100, p100-sxm2, v100, t4, `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("HostModel(\"h2000\"): %v", err)
	}
	if check := CheckHost("h2000"); check == nil || check.Error() != err.Error() {
		t.Errorf("CheckHost(\"h2000\"): %v", check)
	}
	for _, h := range Hosts() {
		if err := CheckHost(h.Model.Name); err != nil {
			t.Error(err)
		}
	}
}

func TestComplete(t *testing.T) {
	read := resource.Model{Name: "NVIDIA H200", ComputeCapability: "9.0", SMs: 132, MemoryMiB: 143771, BandwidthGBs: 4917}
	m, known := Complete(read)
	if !known || m.BandwidthGBs != 4800 || m.L2MiB != 50 || m.FP32PerSM != 256 || m.TensorPerSM != 4096 || m.SMs != 132 || m.Profiles != nil {
		t.Errorf("H200: %v %+v", known, m)
	}
	for _, c := range []struct {
		name, capability string
		fp32, tensor     float64
	}{
		{"NVIDIA A100 80GB PCIe", "8.0", 128, 2048},
		{"NVIDIA A10G", "8.6", 256, 512},
		{"NVIDIA RTX A5000", "8.6", 256, 1024},
		{"NVIDIA GeForce RTX 3060", "8.6", 256, 512},
		{"NVIDIA GeForce GTX 1650", "7.5", 128, 0},
		{"NVIDIA GeForce RTX 2080 Ti", "7.5", 128, 512},
		{"NVIDIA H20", "9.0", 256, 960},
		{"NVIDIA X900", "14.0", 256, 0},
	} {
		m, known := Complete(resource.Model{Name: c.name, ComputeCapability: c.capability, BandwidthGBs: 123})
		if known || m.FP32PerSM != c.fp32 || m.TensorPerSM != c.tensor || m.BandwidthGBs != 123 {
			t.Errorf("%s: %v %+v", c.name, known, m)
		}
	}
}

func TestProfiles(t *testing.T) {
	h200, _ := Product("NVIDIA H200")
	profiles := h200.Model.Profiles
	i := slices.IndexFunc(profiles, func(p resource.Profile) bool { return p.Name == "1g.35gb" })
	if i < 0 || profiles[i].SMs != 26 || profiles[i].MemoryMiB != 33024 || profiles[i].ID != 15 || !slices.Equal(profiles[i].Starts, []int{0, 2, 4, 6}) {
		t.Errorf("H200: %+v", profiles)
	}
	if l4, known := Product("NVIDIA L4"); !known || l4.Model.Profiles != nil {
		t.Errorf("L4 has no MIG, got %v", l4.Model.Profiles)
	}
	if h, known := Product("NVIDIA X900"); known {
		t.Errorf("unknown product, got %+v", h)
	}
}

func TestClockGrid(t *testing.T) {
	for _, c := range []struct {
		min, max int
		step     float64
		want     []int
	}{
		{1935, 1980, 15, []int{1935, 1950, 1965, 1980}},
		{135, 165, 7.5, []int{135, 142, 150, 157, 165}},
		{2040, 2062, 15, []int{2040, 2055, 2062}},
		{1000, 1000, 15, []int{1000}},
		{500, 1000, 0, []int{1000}},
	} {
		if got := clockGrid(c.min, c.max, c.step); !slices.Equal(got, c.want) {
			t.Errorf("clockGrid(%d, %d, %g) = %v, want %v", c.min, c.max, c.step, got, c.want)
		}
	}
}

// A small command looks up one target, which may take no more than a millisecond.
func BenchmarkFirstTarget(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := load("target", decodeTarget).find("2060"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAllTargets(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		load("target", decodeTarget).all()
	}
}

func BenchmarkAllHosts(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		load("host", decodeHost).all()
	}
}

func BenchmarkTargetAgain(b *testing.B) {
	for b.Loop() {
		if _, err := Target("NVIDIA GeForce RTX 2060"); err != nil {
			b.Fatal(err)
		}
	}
}
