package config

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/pattern"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// runtimeWords are the attributes and blocks of a session that only some runtimes use.
var runtimeWords = []string{"image", "pull", "volume", "ssh", "limits", "sudo", "restart", "ports", "network", "name", "entrypoint"}

var defaultSpec = resource.ContainerSpec{Image: resource.DefaultImage, Pull: resource.PullMissing, Restart: "unless-stopped",
	SSH: resource.SSH{Enabled: true, Bind: "127.0.0.1"}}

// Unused warns of everything in a session's block that the runtime of its host does not use. The result is the same
// for all instances of a block on one host.
func (s Session) Unused(by resource.Runtime) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, word := range slices.Concat(runtimeWords, by.Ignores) {
		if !s.Ranges.has(word) || by.Uses(word) {
			continue
		}
		at := s.Ranges.At(word)
		diags = append(diags, warning(at, fmt.Sprintf("%q has no effect on host %q", word, s.Host),
			"The host's runtime is %q, which does not use it. Remove it, or give the host: runtime = %s",
			by.Name, prose.Or(prose.Quoted(resource.RuntimeNames(word)))))
	}
	return diags
}

// checkContainer checks rules that involve several attributes of a session, and warns of attributes that its host does not
// use.
func (l *loader) checkContainer(s *Session) {
	exposed := s.Spec.SSH.Exposed()
	switch {
	case !s.Ranges.has("sudo"):
		s.Spec.Sudo = !exposed
	case s.Spec.Sudo && exposed:
		at := s.Ranges.At("sudo")
		l.complain(at, fmt.Sprintf("no sudo with ssh on %s", s.Spec.SSH.Bind),
			"A user who logs in from another machine could become root in the container without a password. Write sudo = false, or keep ssh on 127.0.0.1, which `ssh -L` and `ssh -J` reach from other machines.")
	}
	l.checkNetwork(s)
	if runtime, chosen := runtimeOf(l.hosts, s.Host); chosen {
		for _, d := range s.Unused(runtime) {
			l.report(d)
		}
	}
}

// sessionEntrypoint reads a program, or the word that stands for that of the image.
func sessionEntrypoint(s *Session, v value) {
	const sample = `["/start.sh"]`
	if v.IsKnown() && !v.IsNull() && v.Type() == cty.String {
		if word, ok := v.text(); ok && word != resource.ImageEntrypoint {
			v.wrong(fmt.Sprintf("%q is no entrypoint", word), `Write a list, like %s, or "image" for the ENTRYPOINT and CMD of the image.`, sample)
			return
		}
		s.Spec.Entrypoint = []string{resource.ImageEntrypoint}
		return
	}
	if words, ok := v.program(sample); ok {
		s.Spec.Entrypoint = words
	}
}

var containerForm = pattern.Of(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$`)

// containerName reads the name of a container, as engines accept it.
var containerName = named(containerForm, "a container",
	"Write 2 to 128 letters, digits, dots, underscores and hyphens; the first is a letter or a digit.")

// checkContainerNames reports sessions of one host that request the same name of their containers.
func (r *reporter) checkContainerNames(sessions []Session) {
	seen := map[[2]string]*Session{}
	for i := range sessions {
		s := &sessions[i]
		if s.Spec.Name == "" {
			continue
		}
		var other *Session
		host := ""
		for _, h := range s.mayHave() {
			at := [2]string{h, s.Spec.Name}
			if seen[at] != nil && other == nil {
				other, host = seen[at], h
			}
			seen[at] = cmp.Or(seen[at], s)
		}
		if other == nil {
			continue
		}
		here, first := s.Ranges.At("name"), other.Ranges.At("name")
		summary := fmt.Sprintf("two containers cannot be called %q on host %q", s.Spec.Name, host)
		if other.Ranges.Decl == s.Ranges.Decl {
			r.complain(here, summary, "Each instance of this block needs a name. Write an expression, like \"${each.key}\" with for_each, or with count: name = \"%s-${count.index}\"", s.Spec.Name)
			continue
		}
		r.complain(here, summary, "%s has the name, at %s. Give %s another.", other.Address, place(first), s.Address)
	}
}

// runtimeOf returns the runtime that a host block chooses, if it chooses one.
func runtimeOf(hosts []Host, host string) (resource.Runtime, bool) {
	h := first(hosts, func(h *Host) bool { return h.Name == host && h.Runtime != RuntimeAuto })
	if h == nil {
		return resource.Runtime{}, false
	}
	return resource.RuntimeNamed(h.Runtime), true
}

// sessionImage reads the name of an image and stores it in the form that engines list, with its tag: "debian" becomes
// debian:latest.
func sessionImage(s *Session, v value) {
	typed, ok := v.text()
	if !ok {
		return
	}
	if id, ok := imageID(typed); ok {
		s.Spec.Image = id
		return
	}
	if name, err := reference.ParseNormalizedNamed(typed); err == nil {
		s.Spec.Image = familiar(name)
		return
	}
	suggestion := ""
	if small := strings.ToLower(typed); small != typed {
		if _, err := reference.ParseNormalizedNamed(small); err == nil {
			suggestion = meant(small)
		}
	}
	v.wrong(fmt.Sprintf("%q is not the name of an image", typed),
		"A name has small letters, no spaces, and a tag behind a colon, like %q.%s", resource.DefaultImage, suggestion)
}

var bareID = pattern.Of(`^(?:[0-9a-f]{12}|(?:sha256:)?[0-9a-f]{64})$`)

// imageID reads the ID of an image, either short as docker image ls prints it, or complete.
func imageID(typed string) (id string, ok bool) {
	if len(typed) == 64 {
		return "sha256:" + typed, bareID().MatchString(typed)
	}
	return typed, bareID().MatchString(typed)
}

// familiar returns a name as engines list it: with its tag or, if it has a digest, with the digest only.
func familiar(name reference.Named) string {
	if d, ok := name.(reference.Digested); ok {
		if pinned, err := reference.WithDigest(reference.TrimNamed(name), d.Digest()); err == nil {
			name = pinned
		}
	}
	return reference.FamiliarString(reference.TagNameOnly(name))
}

func (s *Session) volume(a attribute) *resource.Volume {
	for len(s.Spec.Volumes) < a.nth {
		s.Spec.Volumes = append(s.Spec.Volumes, resource.Volume{})
	}
	return &s.Spec.Volumes[a.nth-1]
}

var volumeName = pattern.Of(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)

func volumeSource(s *Session, v value) {
	typed, ok := v.text()
	switch {
	case !ok:
	case typed != "" && strings.Contains("/.~", typed[:1]):
		s.volume(v.attribute).Source, _ = v.path()
	case volumeName().MatchString(typed):
		s.volume(v.attribute).Source = typed
	case strings.Contains(typed, "/"):
		v.wrong(fmt.Sprintf("%q is neither a path nor a name", typed),
			"A path starts with /, ./ or ~/, and the name of a volume has no slash.%s", meant("./"+typed))
	default:
		v.wrong(fmt.Sprintf("%q cannot be the name of a volume", typed),
			"A name has at least two letters, digits, _, . or -, like \"data\". For a folder write a path that starts with /, ./ or ~/.")
	}
}

// ownInside is the path of cosplay's own files in the container.
const ownInside = "/run/cosplay"

func volumeTarget(s *Session, v value) {
	typed, ok := v.text()
	if !ok {
		return
	}
	if !path.IsAbs(typed) {
		v.wrong(`"volume.target" must be an absolute path`, "%q does not start with /. It is a place in the container, like \"/data\".", typed)
		return
	}
	target := path.Clean(typed)
	taken := slices.IndexFunc(s.Spec.Volumes, func(o resource.Volume) bool { return o.Target == target })
	switch {
	case target == "/":
		v.wrong("a volume cannot be at /", "It would hide the whole image. Choose a folder, like \"/data\".")
	case target == resource.WorkspaceInside:
		v.wrong("/workspace is taken", "The session's own folder is there. Say which one with: workspace = \"./exp\"; or choose another target, like \"/data\".")
	case target == ownInside || strings.HasPrefix(target, ownInside+"/"):
		v.wrong("/run/cosplay is taken", "It holds what cosplay itself brings into the container. Choose another target, like \"/data\".")
	case taken >= 0:
		first := s.Ranges.At(fmt.Sprintf("volume[%d].target", taken))
		v.wrong(fmt.Sprintf("two volumes at %s", target), "The other is at line %d, and one would hide the other. Choose another target for one of them.", first.Start.Line)
	default:
		s.volume(v.attribute).Target = target
	}
}

func volumeReadOnly(s *Session, v value) {
	s.volume(v.attribute).ReadOnly, _ = v.flag()
}

func limitsCPUs(s *Session, v value) {
	const low, high = 0.01, 10_000 // Docker's minimum; more than any machine has
	s.Spec.Limits.CPUs, _ = v.between(low, high, fmt.Sprintf("Write a number of CPUs from %s to %d, like 4 or 0.5.", plain(low), high))
}
