package kubernetes

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/config"
	"cosplay/internal/place"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Names are those of the objects of sessions: their short addresses as DNS labels. One that is too long, or has other
// characters, gets a hash of the address, so that no two are equal.
func Names(sessions []config.Session) map[resource.Address]string {
	const longest = 36 // with the hash, 45: Kubernetes shortens the names of pods of Deployments whose names have more than 46
	names := make(map[resource.Address]string, len(sessions))
	for _, s := range sessions {
		short := s.Address.Short()
		name := strings.Trim(strings.Map(labelRune, short), "-")
		if name != short || len(name) > longest {
			name = strings.Trim(name[:min(len(name), longest)], "-") + "-" + digest(s.Address.String())
			name = strings.TrimPrefix(name, "-")
		}
		names[s.Address] = name
	}
	return names
}

func labelRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		return r
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	}
	return '-'
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// Fleet is what manifests are written of.
type Fleet struct {
	Sessions []config.Session // of all clusters, by address
	Placed   map[resource.Address]resource.Slice
	Worlds   map[string]World // by host
	Names    map[resource.Address]string
}

// Manifests are the documents of a fleet as YAML: a Deployment for each session, with pin after a ResourceClaim for its
// placement.
func (f Fleet) Manifests(pin bool) ([]byte, error) {
	var docs [][]byte
	for _, s := range f.Sessions {
		claim := ""
		if pin {
			name, object := f.claim(s)
			doc, err := document(object)
			if err != nil {
				return nil, err
			}
			claim, docs = name, append(docs, doc)
		}
		doc, err := document(f.deployment(s, claim))
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return bytes.Join(docs, []byte("---\n")), nil
}

// annotations say whose an object is.
func annotations(s config.Session) fields { return fields{{sessionNote, text(s.Address.String())}} }

// claim is the ResourceClaim of a session, with its name. The API does not let claims change: another one
// has another name.
func (f Fleet) claim(s config.Session) (name string, object fields) {
	slice := f.Placed[s.Address]
	expression := fmt.Sprintf("device.driver == %q && device.attributes[%[1]q].parentUUID == %[2]q && device.attributes[%[1]q].profile == %[3]q && device.attributes[%[1]q].placement == %[4]d",
		driver, f.at(s).UUID, cmp.Or(slice.Profile, place.WholeGPU), slice.Start)
	said := parametersOf(s)
	raw, err := json.Marshal(said)
	if err != nil {
		panic(err) // texts only
	}
	name = f.Names[s.Address] + "-" + digest(expression+string(raw))
	return name, fields{{"apiVersion", "resource.k8s.io/v1"}, {"kind", "ResourceClaim"},
		{"metadata", fields{{"name", name}, {"namespace", f.namespace(s)}, {"labels", fields{{managedBy, text(plainClass)}}}, {"annotations", annotations(s)}}},
		{"spec", fields{{"devices", fields{
			{"requests", []fields{{{"name", claimOfDevice}, {"exactly", fields{
				{"deviceClassName", plainClass}, {"selectors", []fields{{{"cel", fields{{"expression", text(expression)}}}}}},
			}}}}},
			{"config", []fields{{{"opaque", fields{{"driver", driver}, {"parameters", said}}}}}},
		}}}}}
}

func (f Fleet) namespace(s config.Session) string { return f.Worlds[s.Host].own.namespace }

// at is the GPU of a session as its node calls it.
func (f Fleet) at(s config.Session) GPU { return f.Worlds[s.Host].GPU(f.Placed[s.Address].GPU) }

// deployment is the Deployment of a session. Without a claim it names the class of its target.
func (f Fleet) deployment(s config.Session, claim string) fields {
	name := f.Names[s.Address]
	labels := fields{{managedBy, text(plainClass)}, {appName, text(name)}}
	var pod fields
	if claim != "" {
		pod = fields{{"affinity", onNode(f.at(s).Node)}, {"resourceClaims", []fields{{{"name", claimOfDevice}, {"resourceClaimName", claim}}}}}
	}
	pod = append(pod, field{"containers", []fields{containerOf(s, claim != "")}})
	return fields{{"apiVersion", "apps/v1"}, {"kind", "Deployment"},
		{"metadata", fields{{"name", name}, {"namespace", f.namespace(s)}, {"labels", labels}, {"annotations", annotations(s)}}},
		{"spec", fields{{"replicas", 1}, {"strategy", fields{{"type", "Recreate"}}}, {"selector", fields{{"matchLabels", labels}}},
			{"template", fields{{"metadata", fields{{"labels", labels}, {"annotations", annotations(s)}}}, {"spec", pod}}}}}}
}

// onNode keeps a pod on a node.
func onNode(name string) fields {
	here := []fields{{{"key", "metadata.name"}, {"operator", "In"}, {"values", []text{text(name)}}}}
	return fields{{"nodeAffinity", fields{{"requiredDuringSchedulingIgnoredDuringExecution", fields{{"nodeSelectorTerms", []fields{{{"matchFields", here}}}}}}}}}
}

// containerOf is the container of a session. Kubernetes runs the image's own program where a manifest names none.
func containerOf(s config.Session, pinned bool) fields {
	c := fields{{"name", "session"}, {"image", text(s.Spec.Image)}}
	if _, stated := states(&s, "pull"); stated {
		c = append(c, field{"imagePullPolicy", text(map[string]string{resource.PullMissing: "IfNotPresent", resource.PullNever: "Never", resource.PullAlways: "Always"}[s.Spec.Pull])})
	}
	command, args := s.Spec.Entrypoint, s.Command
	switch {
	case s.Spec.RunsImage():
		command = nil
	case len(command) == 0:
		command, args = s.Command, nil
	}
	c = append(c, field{"command", literals(command)}, field{"args", literals(args)})
	var env []fields
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, fields{{"name", text(name)}, {"value", literal(s.Env[name])}})
	}
	if len(env) > 0 {
		c = append(c, field{"env", env})
	}
	return append(c, field{"resources", resourcesOf(s, pinned)})
}

func resourcesOf(s config.Session, pinned bool) (r fields) {
	var limits fields
	if !pinned {
		limits = append(limits, field{extended + s.Target.Key, text("1")})
	}
	if s.Spec.Limits.CPUs > 0 {
		limits = append(limits, field{"cpu", text(strconv.FormatFloat(float64(s.Spec.Bounds().MilliCPUs)/1000, 'f', -1, 64))})
	}
	if s.Spec.Limits.MemoryMiB > 0 {
		limits = append(limits, field{"memory", text(fmt.Sprintf("%dMi", s.Spec.Limits.MemoryMiB))})
	}
	if limits != nil {
		r = append(r, field{"limits", limits})
	}
	if pinned {
		r = append(r, field{"claims", []fields{{{"name", claimOfDevice}}}})
	}
	return r
}

// literal keeps Kubernetes from expanding $(NAME) in a text, which it does as it reads $$ as $.
func literal(s string) text {
	if strings.Contains(s, "$(") || strings.Contains(s, "$$") {
		s = strings.ReplaceAll(s, "$", "$$")
	}
	return text(s)
}

// literals is nil for no words, which leaves the field out.
func literals(words []string) any {
	if len(words) == 0 {
		return nil
	}
	return prose.Each(words, literal)
}
