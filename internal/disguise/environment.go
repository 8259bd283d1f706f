// Package disguise creates the files and the environment that make a session's GPU look like the target.
package disguise

import (
	"maps"
	"slices"
	"strconv"

	"cosplay/internal/resource"
)

// Environment returns the environment of every program in a session: the target's figures under the names of
// gpu-cosplay, the slice, and the user's variables, which take precedence. It leaves out sensitive values, which are
// added when a program starts. sliceID is the UUID of the MIG slice or of the whole GPU.
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
		"PIP_BREAK_SYSTEM_PACKAGES":  "1", // the session itself isolates packages
	}
	if slices.Contains(t.Lacks(), "tf32") {
		maps.Copy(env, withoutTF32)
	}
	maps.Copy(env, s.Env)
	return env
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
