package resolve

import (
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"golang.org/x/crypto/ssh"

	"cosplay/internal/resource"
)

// spelled gives what means the same to the engine the order and the spelling with which the session was created, so
// that it is no change.
func (r *resolver) spelled(spec, was resource.ContainerSpec) resource.ContainerSpec {
	if sameElements(spec.Ports, was.Ports, func(p resource.Port) resource.Port { return p }) {
		spec.Ports = was.Ports
	}
	spec.Volumes = slices.Clone(spec.Volumes)
	for i, v := range spec.Volumes {
		at := slices.IndexFunc(was.Volumes, func(o resource.Volume) bool { return o.Target == v.Target })
		if at >= 0 && !v.Named() {
			spec.Volumes[i].Source = r.path(v.Source, was.Volumes[at].Source)
		}
	}
	if sameElements(spec.Volumes, was.Volumes, func(v resource.Volume) resource.Volume { return v }) {
		spec.Volumes = was.Volumes
	}
	if len(spec.SSH.AuthorizedKeys) > 0 && sameElements(spec.SSH.AuthorizedKeys, was.SSH.AuthorizedKeys, withoutComment) {
		spec.SSH.AuthorizedKeys = was.SSH.AuthorizedKeys
	}
	if spec.Image != was.Image && fullName(spec.Image) == fullName(was.Image) {
		spec.Image = was.Image
	}
	return spec
}

// path is a path as it was written before, if both lead to the same file.
func (r *resolver) path(now, was string) string {
	if now != was && was != "" && r.scope.SameFile != nil && r.scope.SameFile(now, was) {
		return was
	}
	return now
}

// there is a path on the machine of a host.
func (r *resolver) there(host, path string) string {
	if r.scope.There == nil {
		return path
	}
	return r.scope.There(host, path)
}

// unsealed keeps the variables sealed that are no longer sensitive and have the value that they had: the session's
// programs find the same environment.
func unsealed(session *resource.Session, was resource.Session, key string) {
	if len(was.Sealed) == 0 {
		return
	}
	env, secret, sealed := copied(session.Env), copied(session.Secret), copied(session.Sealed)
	for name, value := range session.Env {
		if _, had := was.Sealed[name]; had && was.IsSecret(key, name, value) {
			delete(env, name)
			secret[name], sealed[name] = value, was.Sealed[name]
		}
	}
	if len(env) < len(session.Env) {
		session.Env, session.Secret, session.Sealed = orNil(env), secret, sealed
	}
}

// sameElements reports whether two lists have the same elements, by what counts of each, in any order.
func sameElements[E any, K comparable](a, b []E, counts func(E) K) bool {
	seen := func(all []E) map[K]bool {
		keys := make(map[K]bool, len(all))
		for _, e := range all {
			keys[counts(e)] = true
		}
		return keys
	}
	return maps.Equal(seen(a), seen(b))
}

// withoutComment is a line of authorized_keys without the comment of its key.
func withoutComment(line string) string {
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil || len(rest) > 0 {
		return line
	}
	return strings.Join(options, ",") + " " + string(ssh.MarshalAuthorizedKey(key))
}

// fullName is the name of an image with the registry and the tag that it has by default.
func fullName(image string) string {
	named, err := reference.ParseDockerRef(image)
	if err != nil {
		return image
	}
	return named.String()
}
