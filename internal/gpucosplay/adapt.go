package gpucosplay

import (
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// CardVariable is the environment variable with the key of the GPU that a container presents.
const CardVariable = "GPU_COSPLAY_CARD"

// keyVariable is the one with the public key that may log in.
const keyVariable = "GPU_COSPLAY_PUBKEY"

// inContainer is where it mounts its own files in images that were not built by it.
const inContainer = "/opt/gpu-cosplay/"

// Adapt removes from the description of a container what gpu-cosplay put in: its variables, its mounts, and its
// entrypoint, which starts an ssh server or sleeps. The rest is the user's. It returns the public key that may log in, ""
// if there is none.
func Adapt(s *resource.Session) (key string) {
	key = strings.TrimSpace(s.Env[keyVariable])
	for name := range s.Env {
		if strings.HasPrefix(name, "GPU_COSPLAY_") || slices.Contains([]string{"HOST_USER", "HOST_UID", "HOST_GID"}, name) {
			delete(s.Env, name)
		}
	}
	s.Spec.Volumes = slices.DeleteFunc(s.Spec.Volumes, func(v resource.Volume) bool { return strings.HasPrefix(v.Target, inContainer) })
	s.Spec.Entrypoint, s.Command = nil, nil
	return key
}
