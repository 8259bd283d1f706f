package sim_test

import "cosplay/internal/resource"

func clocks(low, high, step int) []int {
	var all []int
	for mhz := low; mhz <= high; mhz += step {
		all = append(all, mhz)
	}
	return all
}

var (
	singles = []int{0, 1, 2, 3, 4, 5, 6}
	doubles = []int{0, 2, 4, 6}
	pairs   = []int{0, 2, 4}
	halves  = []int{0, 4}
	first   = []int{0}
)

var h200 = resource.Model{
	Name: "NVIDIA H200", ComputeCapability: "9.0", SMs: 132, MemoryMiB: 143771, BandwidthGBs: 4800, L2MiB: 50,
	ClocksMHz:  clocks(345, 1980, 15),
	PowerMinMW: 200_000, PowerDefaultMW: 700_000, PowerMaxMW: 700_000,
	FP32PerSM: 256, TensorPerSM: 4096, MemorySlices: 8, ComputeSlices: 7,
	Profiles: []resource.Profile{
		{Name: "1g.18gb", ID: 19, SMs: 16, MemoryMiB: 16384, MemorySlices: 1, ComputeSlices: 1, MaxInstances: 7, Starts: singles},
		{Name: "1g.18gb+me", ID: 20, SMs: 16, MemoryMiB: 16384, MemorySlices: 1, ComputeSlices: 1, MaxInstances: 1, Starts: singles},
		{Name: "1g.35gb", ID: 15, SMs: 26, MemoryMiB: 33024, MemorySlices: 2, ComputeSlices: 1, MaxInstances: 4, Starts: doubles},
		{Name: "2g.35gb", ID: 14, SMs: 32, MemoryMiB: 33024, MemorySlices: 2, ComputeSlices: 2, MaxInstances: 3, Starts: pairs},
		{Name: "3g.71gb", ID: 9, SMs: 60, MemoryMiB: 71168, MemorySlices: 4, ComputeSlices: 3, MaxInstances: 2, Starts: halves},
		{Name: "4g.71gb", ID: 5, SMs: 64, MemoryMiB: 71168, MemorySlices: 4, ComputeSlices: 4, MaxInstances: 1, Starts: first},
		{Name: "7g.141gb", ID: 0, SMs: 132, MemoryMiB: 143104, MemorySlices: 8, ComputeSlices: 7, MaxInstances: 1, Starts: first},
	},
}

var a100 = resource.Model{
	Name: "NVIDIA A100-SXM4-80GB", ComputeCapability: "8.0", SMs: 108, MemoryMiB: 81920, BandwidthGBs: 2039, L2MiB: 40,
	ClocksMHz:  clocks(210, 1410, 15),
	PowerMinMW: 100_000, PowerDefaultMW: 400_000, PowerMaxMW: 400_000,
	FP32PerSM: 128, TensorPerSM: 2048, MemorySlices: 8, ComputeSlices: 7,
	Profiles: []resource.Profile{
		{Name: "1g.10gb", ID: 19, SMs: 14, MemoryMiB: 9728, MemorySlices: 1, ComputeSlices: 1, MaxInstances: 7, Starts: singles},
		{Name: "1g.10gb+me", ID: 20, SMs: 14, MemoryMiB: 9728, MemorySlices: 1, ComputeSlices: 1, MaxInstances: 1, Starts: singles},
		{Name: "1g.20gb", ID: 15, SMs: 14, MemoryMiB: 19968, MemorySlices: 2, ComputeSlices: 1, MaxInstances: 4, Starts: doubles},
		{Name: "2g.20gb", ID: 14, SMs: 28, MemoryMiB: 19968, MemorySlices: 2, ComputeSlices: 2, MaxInstances: 3, Starts: pairs},
		{Name: "3g.40gb", ID: 9, SMs: 42, MemoryMiB: 40192, MemorySlices: 4, ComputeSlices: 3, MaxInstances: 2, Starts: halves},
		{Name: "4g.40gb", ID: 5, SMs: 56, MemoryMiB: 40192, MemorySlices: 4, ComputeSlices: 4, MaxInstances: 1, Starts: first},
		{Name: "7g.80gb", ID: 0, SMs: 98, MemoryMiB: 80384, MemorySlices: 8, ComputeSlices: 7, MaxInstances: 1, Starts: first},
	},
}

var a30 = resource.Model{
	Name: "NVIDIA A30", ComputeCapability: "8.0", SMs: 56, MemoryMiB: 24576, BandwidthGBs: 933, L2MiB: 24,
	ClocksMHz:  clocks(210, 1440, 15),
	PowerMinMW: 100_000, PowerDefaultMW: 165_000, PowerMaxMW: 165_000,
	FP32PerSM: 128, TensorPerSM: 2048, MemorySlices: 4, ComputeSlices: 4,
	Profiles: []resource.Profile{
		{Name: "1g.6gb", ID: 14, SMs: 14, MemoryMiB: 5952, MemorySlices: 1, ComputeSlices: 1, MaxInstances: 4, Starts: []int{0, 1, 2, 3}},
		{Name: "1g.6gb+me", ID: 21, SMs: 14, MemoryMiB: 5952, MemorySlices: 1, ComputeSlices: 1, MaxInstances: 1, Starts: []int{0, 1, 2, 3}},
		{Name: "2g.12gb", ID: 5, SMs: 28, MemoryMiB: 11968, MemorySlices: 2, ComputeSlices: 2, MaxInstances: 2, Starts: []int{0, 2}},
		{Name: "2g.12gb+me", ID: 6, SMs: 28, MemoryMiB: 11968, MemorySlices: 2, ComputeSlices: 2, MaxInstances: 1, Starts: []int{0, 2}},
		{Name: "4g.24gb", ID: 0, SMs: 56, MemoryMiB: 24000, MemorySlices: 4, ComputeSlices: 4, MaxInstances: 1, Starts: first},
	},
}

var l40s = resource.Model{
	Name: "NVIDIA L40S", ComputeCapability: "8.9", SMs: 142, MemoryMiB: 46068, BandwidthGBs: 864, L2MiB: 96,
	ClocksMHz:  clocks(210, 2520, 15),
	PowerMinMW: 100_000, PowerDefaultMW: 350_000, PowerMaxMW: 350_000,
	FP32PerSM: 256, TensorPerSM: 1024,
}
