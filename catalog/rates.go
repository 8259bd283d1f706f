package catalog

import "strings"

// clockGrid lists the SM clocks from min to max in steps (MHz), ascending. NVML reports integers, so 142.5 MHz
// becomes 142; max is in the list even if it is not on the grid.
func clockGrid(minMHz, maxMHz int, stepMHz float64) []int {
	if stepMHz <= 0 {
		return []int{maxMHz}
	}
	var grid []int
	for i := 0; ; i++ {
		clock := int(float64(minMHz) + float64(i)*stepMHz)
		if clock >= maxMHz {
			return append(grid, maxMHz)
		}
		grid = append(grid, clock)
	}
}

// ratesPerSM returns an SM's FP32 and tensor rate in FLOP per clock, counting an FMA as two, from the compute
// capability. The tensor rate is dense FP16 accumulating in FP32, for which most gaming cards have half the rate.
func ratesPerSM(name, computeCapability string) (fp32, tensor float64) {
	switch computeCapability {
	case "6.0":
		return 128, 0
	case "5.0", "5.2", "6.1":
		return 256, 0
	case "7.0":
		return 128, 1024
	case "7.5":
		return 128, turingTensor(name)
	case "8.0":
		return 128, 2048
	case "9.0":
		if name == "NVIDIA H20" { // throttled for export
			return 256, 960
		}
		return 256, 4096
	case "10.0", "10.3":
		return 256, 8192
	case "8.6", "8.9", "12.0":
		if halfRate(name) {
			return 256, 512
		}
		return 256, 1024
	}
	return 256, 0 // 128 lanes are usual since 2020; the tensor rate is unknown
}

// int8PerSM returns the INT8 operations of an SM's tensor cores per clock, from their FP16 rate. Gaming cards halve the
// rate of FP16 with FP32 accumulation, and not that of INT8.
func int8PerSM(name, computeCapability string, tensor float64) float64 {
	switch {
	case computeCapability == "10.3":
		return 498 // from the printed 150 TOPS of a B300
	case strings.Contains(name, "GeForce"):
		return 4 * tensor
	}
	return 2 * tensor
}

func turingTensor(name string) float64 {
	switch {
	case strings.Contains(name, "GTX"):
		return 0
	case strings.Contains(name, "GeForce"):
		return 512
	}
	return 1024
}

func halfRate(name string) bool {
	switch name {
	case "NVIDIA A10G", "NVIDIA L20", "NVIDIA L40":
		return true
	}
	return strings.Contains(name, "GeForce")
}
