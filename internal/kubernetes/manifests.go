package kubernetes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cosplay/internal/config"
	"cosplay/internal/place"
	"cosplay/internal/resource"
)

// Names are those of the objects of sessions: their short addresses as DNS labels. One that is too long, or has other
// characters, gets a hash of the address, so that no two are equal.
func Names(sessions []config.Session) map[resource.Address]string {
	const longest = 40 // pods and claims add to it, and a label has 63 characters
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
	Sessions  []config.Session // of all clusters, by address
	Placed    map[resource.Address]resource.Slice
	Worlds    map[string]World // by host
	Names     map[resource.Address]string
	Namespace string
	Pin       bool // each session has a claim for its placement
}

// Manifests are the documents of a fleet as YAML: a Deployment for each session, with Pin after its ResourceClaim.
func (f Fleet) Manifests() ([]byte, error) {
	var out bytes.Buffer
	for i, s := range f.Sessions {
		of := meta{Name: f.Names[s.Address], Namespace: f.Namespace, Annotations: map[string]text{sessionNote: text(s.Address.String())}}
		of.Labels = map[string]text{managedBy: plainClass, appName: text(of.Name)}
		claim := ""
		if i > 0 {
			out.WriteString("---\n")
		}
		if f.Pin {
			m, raw := f.claim(s, of)
			doc, err := document(m)
			if err != nil {
				return nil, err
			}
			out.Write(withParameters(doc, raw))
			out.WriteString("---\n")
			claim = m.Metadata.Name
		}
		doc, err := document(f.deployment(s, of, claim))
		if err != nil {
			return nil, err
		}
		out.Write(doc)
	}
	return out.Bytes(), nil
}

func document(of any) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(of); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return out.Bytes(), e.Close()
}

// withParameters ends the document of a claim with its parameters, without spaces as the API server keeps them.
func withParameters(doc, raw []byte) []byte {
	return slices.Concat(bytes.TrimSuffix(doc, []byte("{}\n")), raw, []byte("\n"))
}

// claim is the ResourceClaim of a session, and its parameters. The API does not let claims change: another one has another
// name.
func (f Fleet) claim(s config.Session, of meta) (m claimManifest, raw []byte) {
	at := f.at(s)
	slice := f.Placed[s.Address]
	profile := slice.Profile
	if slice.Whole() {
		profile = place.WholeGPU
	}
	of.Labels = map[string]text{managedBy: plainClass}
	m.APIVersion, m.Kind, m.Metadata = "resource.k8s.io/v1", "ResourceClaim", of
	request := claimRequest{Name: claimOfDevice}
	request.Exactly.Class = plainClass
	request.Exactly.Selectors = []selector{{}}
	request.Exactly.Selectors[0].CEL.Expression = text(fmt.Sprintf("device.driver == %q && device.attributes[%[1]q].parentUUID == %[2]q && device.attributes[%[1]q].profile == %[3]q && device.attributes[%[1]q].placement == %[4]d",
		driver, at.UUID, profile, slice.Start))
	m.Spec.Devices.Requests = []claimRequest{request}
	var opaque opaqueConfig
	opaque.Opaque.Driver = driver
	raw, err := json.Marshal(parametersOf(s))
	if err != nil {
		panic(err) // texts only
	}
	m.Spec.Devices.Config = []opaqueConfig{opaque}
	m.Metadata.Name += "-" + digest(string(request.Exactly.Selectors[0].CEL.Expression)+string(raw))
	return m, raw
}

// at is the GPU of a session as its node calls it.
func (f Fleet) at(s config.Session) GPU { return f.Worlds[s.Host].GPU(f.Placed[s.Address].GPU) }

func (f Fleet) deployment(s config.Session, of meta, claim string) deployment {
	d := deployment{APIVersion: "apps/v1", Kind: "Deployment", Metadata: of}
	d.Spec.Replicas, d.Spec.Strategy.Type = 1, "Recreate"
	d.Spec.Selector.MatchLabels = of.Labels
	d.Spec.Template.Metadata = meta{Labels: of.Labels, Annotations: of.Annotations}
	pod := &d.Spec.Template.Spec
	c := containerOf(s)
	if claim == "" {
		c.Resources.Limits[extended+s.Target.Key] = "1"
	} else {
		c.Resources.Claims = []named{{claimOfDevice}}
		pod.Claims = []podClaim{{claimOfDevice, claim}}
		pod.Affinity = onNode(f.at(s).Node)
	}
	pod.Containers = []container{c}
	return d
}

// containerOf is the container of a session. Kubernetes runs the image's own program where a manifest names none.
func containerOf(s config.Session) container {
	c := container{Name: "session", Image: text(s.Spec.Image), Resources: resources{Limits: map[string]text{}}}
	if _, stated := states(&s, "pull"); stated {
		c.Pull = map[string]text{resource.PullMissing: "IfNotPresent", resource.PullNever: "Never", resource.PullAlways: "Always"}[s.Spec.Pull]
	}
	switch {
	case s.Spec.RunsImage():
		c.Args = expanded(s.Command)
	case len(s.Spec.Entrypoint) > 0:
		c.Command, c.Args = expanded(s.Spec.Entrypoint), expanded(s.Command)
	default:
		c.Command = expanded(s.Command)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		c.Env = append(c.Env, variable{text(name), literal(s.Env[name])})
	}
	if s.Spec.Limits.CPUs > 0 {
		c.Resources.Limits["cpu"] = text(strconv.FormatFloat(float64(s.Spec.Bounds().MilliCPUs)/1000, 'f', -1, 64))
	}
	if s.Spec.Limits.MemoryMiB > 0 {
		c.Resources.Limits["memory"] = text(fmt.Sprintf("%dMi", s.Spec.Limits.MemoryMiB))
	}
	return c
}

// literal keeps Kubernetes from expanding $(NAME) in a text, which it does as it reads $$ as $.
func literal(s string) text {
	if strings.Contains(s, "$(") || strings.Contains(s, "$$") {
		s = strings.ReplaceAll(s, "$", "$$")
	}
	return text(s)
}

func expanded(all []string) (texts []text) {
	for _, s := range all {
		texts = append(texts, literal(s))
	}
	return texts
}
