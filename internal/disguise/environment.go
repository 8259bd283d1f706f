// Package disguise says what goes inside a session to make its GPU pass for the
// target.
package disguise

import (
	"maps"
	"slices"
	"strconv"

	"cosplay/internal/resource"
)

// Environment is what every program of a session finds in its environment: the
// target's figures under the names that gpu-cosplay gave them, the slice, and
// what the user asked for, which wins. Sensitive values are not in it: they come on
// top where a program starts. sliceID is the UUID of the MIG slice or of the whole
// GPU.
func Environment(s resource.Session, sliceID string) map[string]string {
	t := s.Target
	env := map[string]string{
		"GPU_COSPLAY_SESSION":        s.Address.Short(),
		"GPU_COSPLAY_CARD":           t.Key,
		"GPU_COSPLAY_PRETTY":         t.Name,
		"GPU_COSPLAY_VRAM_GB":        number(float64(t.MemoryMiB) / 1024),
		"GPU_COSPLAY_FP32_TFLOPS":    number(t.FP32TFLOPS),
		"GPU_COSPLAY_BF16_TC_TFLOPS": number(t.TensorBF16TFLOPS),
		"GPU_COSPLAY_BW_GBS":         number(t.BandwidthGBs),
		"GPU_COSPLAY_TDP_W":          strconv.Itoa(t.PowerW),
		"GPU_COSPLAY_PHYS_VRAM_MIB":  strconv.Itoa(s.Fit.Got.MemoryMiB),
		"CUDA_VISIBLE_DEVICES":       sliceID,
		"NVIDIA_VISIBLE_DEVICES":     sliceID,
		"PIP_BREAK_SYSTEM_PACKAGES":  "1", // a session is an environment of its own
	}
	if slices.Contains(t.Lacks(), "tf32") {
		maps.Copy(env, withoutTF32)
	}
	maps.Copy(env, s.Env)
	return env
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
