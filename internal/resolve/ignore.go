package resolve

import (
	"maps"
	"slices"
	"strings"

	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// ignoring sets the attributes that lifecycle.ignore_changes names to the values with which the session was created.
func ignoring(s config.Session, was resource.PriorSession) config.Session {
	if len(s.Lifecycle.Ignore) == 0 {
		return s
	}
	kept := s // s itself stays off the heap: most sessions ignore nothing
	all := slices.Contains(s.Lifecycle.Ignore, config.IgnoreAll)
	for path, keep := range keepers {
		block, _, _ := strings.Cut(path, ".")
		if all || slices.Contains(s.Lifecycle.Ignore, path) || slices.Contains(s.Lifecycle.Ignore, block) {
			keep(&kept, was)
		}
	}
	for _, path := range s.Lifecycle.Ignore {
		if name, inside := strings.CutPrefix(path, "env."); inside {
			keepVariable(&kept, was, name)
		}
	}
	return kept
}

// keepVariable sets one environment variable to its old value, or removes it if the session was created without it.
func keepVariable(s *config.Session, was resource.PriorSession, name string) {
	env, secret, sealed := copied(s.Env), copied(s.Secret), copied(s.Sealed)
	delete(env, name)
	if old, had := was.Env[name]; had {
		env[name] = old
	}
	seal, had := was.Sealed[name]
	if _, has := secret[name]; had && has {
		sealed[name] = seal // only the hash: the state does not have the old value
	} else {
		delete(secret, name)
	}
	s.Env, s.Secret, s.Sealed = orNil(env), orNil(secret), orNil(sealed)
}

// keepEnv sets the whole environment to its old values.
func keepEnv(s *config.Session, was resource.PriorSession) {
	names := copied(s.Env)
	for _, more := range []map[string]string{s.Secret, was.Env, was.Sealed} {
		maps.Copy(names, more)
	}
	for name := range names {
		keepVariable(s, was, name)
	}
}

// copied returns a map that is never nil.
func copied(m map[string]string) map[string]string { return maps.Collect(maps.All(m)) }

func orNil(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// keepers replace the value of an attribute in the block by the one with which the session was created.
var keepers = map[string]func(*config.Session, resource.PriorSession){
	"target": func(s *config.Session, was resource.PriorSession) { s.Target = was.Target },
	"host":   func(s *config.Session, was resource.PriorSession) { s.Host = was.Request.Host },
	"hosts":  func(s *config.Session, was resource.PriorSession) { s.Host = was.Request.Host },
	"gpu": func(s *config.Session, was resource.PriorSession) {
		s.GPU = nil
		if was.Request.GPU != "" {
			s.GPU = &config.GPUSelector{UUID: was.Request.GPU}
		}
	},
	"fraction": func(s *config.Session, was resource.PriorSession) {
		if s.Fraction = was.Request.Fraction; s.Fraction > 0 {
			s.Target = was.Target
		}
	},
	"gpus":          func(s *config.Session, was resource.PriorSession) { s.GPUs = was.Request.GPUs },
	"oversubscribe": func(s *config.Session, was resource.PriorSession) { s.Oversubscribe = was.Request.Oversubscribe },
	"sharing":       func(s *config.Session, was resource.PriorSession) { s.Sharing = was.Request.Sharing },
	"slice":         func(s *config.Session, was resource.PriorSession) { s.Slice = was.Request.Slice },
	"fit.prefer":    func(s *config.Session, was resource.PriorSession) { s.Fit.Prefer = was.Request.Fit.Prefer },
	"fit.tolerance": func(s *config.Session, was resource.PriorSession) { s.Fit.Tolerance = was.Request.Fit.Tolerance },
	"fit.max_error": func(s *config.Session, was resource.PriorSession) { s.Fit.MaxError = was.Request.Fit.MaxError },
	"command":       func(s *config.Session, was resource.PriorSession) { s.Command = was.Command },
	"workspace":     func(s *config.Session, was resource.PriorSession) { s.Workspace = was.Workspace },
	"env":           keepEnv,
	"depends_on":    func(s *config.Session, was resource.PriorSession) { s.DependsOn = was.DependsOn },
	"strict":        func(s *config.Session, was resource.PriorSession) { s.Strict = was.Strict },
	"capability":    func(s *config.Session, was resource.PriorSession) { s.Capability = was.Capability },

	"ttl":          func(s *config.Session, was resource.PriorSession) { s.Lifetime.TTL = was.Lifetime.TTL },
	"idle_timeout": func(s *config.Session, was resource.PriorSession) { s.Lifetime.IdleTimeout = was.Lifetime.IdleTimeout },
	"stop_at":      func(s *config.Session, was resource.PriorSession) { s.Lifetime.StopAt = was.Lifetime.StopAt },

	"name":            ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Name = was.Name }),
	"entrypoint":      ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Entrypoint = was.Entrypoint }),
	"image":           ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Image = was.Image }),
	"pull":            ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Pull = was.Pull }),
	"volume":          ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Volumes = was.Volumes }),
	"ports":           ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Ports = was.Ports }),
	"network":         ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Network = was.Network }),
	"ssh.enabled":     ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.SSH.Enabled = was.SSH.Enabled }),
	"ssh.port":        ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.SSH.Port = was.SSH.Port }),
	"ssh.bind":        ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.SSH.Bind = was.SSH.Bind }),
	"limits.cpus":     ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Limits.CPUs = was.Limits.CPUs }),
	"limits.memory":   ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Limits.MemoryMiB = was.Limits.MemoryMiB }),
	"limits.shm_size": ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Limits.ShmMiB = was.Limits.ShmMiB }),
	"limits.pids":     ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Limits.PIDs = was.Limits.PIDs }),
	"sudo":            ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Sudo = was.Sudo }),
	"restart":         ofContainer(func(s *config.Session, was resource.ContainerSpec) { s.Spec.Restart = was.Restart }),
	"ssh.authorized_keys": ofContainer(func(s *config.Session, was resource.ContainerSpec) {
		if was.SSH.Enabled {
			s.Keys = was.SSH.AuthorizedKeys
		}
	}),
}

// ofContainer is a keeper of an attribute that only a session in a container has.
func ofContainer(keep func(*config.Session, resource.ContainerSpec)) func(*config.Session, resource.PriorSession) {
	return func(s *config.Session, was resource.PriorSession) {
		if !was.Spec.IsZero() {
			keep(s, was.Spec)
		}
	}
}
