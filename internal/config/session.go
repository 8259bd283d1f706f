package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// sessionAttributes has a reader for each attribute of a session block, except those that apply to the block: count,
// for_each.
var sessionAttributes = map[string]func(*Session, value){
	"target":        into(value.target, func(s *Session) *resource.Target { return &s.Target }),
	"host":          sessionHost,
	"hosts":         sessionHosts,
	"gpu":           into(pointed(value.selector), func(s *Session) **GPUSelector { return &s.GPU }),
	"fraction":      into(value.fraction, func(s *Session) *float64 { return &s.Fraction }),
	"gpus":          into(wholeUpTo(maxGPUs, "a number of GPUs"), func(s *Session) *int { return &s.GPUs }),
	"oversubscribe": into(value.flag, func(s *Session) *bool { return &s.Oversubscribe }),
	"sharing":       into(value.sharing, func(s *Session) *resource.Sharing { return &s.Sharing }),
	"slice":         into(value.profile, func(s *Session) *string { return &s.Slice }),
	"command":       sessionCommand,
	"workspace":     into(value.path, func(s *Session) *string { return &s.Workspace }),
	"env":           sessionEnv,
	"strict":        into(value.flag, func(s *Session) *bool { return &s.Strict }),
	"capability":    into(oneOf, func(s *Session) *string { return &s.Capability }),
	"ttl":           into(value.duration, func(s *Session) *resource.Seconds { return &s.Lifetime.TTL }),
	"idle_timeout":  into(value.duration, func(s *Session) *resource.Seconds { return &s.Lifetime.IdleTimeout }),
	"stop_at":       into(value.moment, func(s *Session) *resource.Moment { return &s.Lifetime.StopAt }),
	"fit.prefer":    into(oneOf, func(s *Session) *resource.Preference { return &s.Fit.Prefer }),
	"fit.tolerance": into(value.share, func(s *Session) *float64 { return &s.Fit.Tolerance }),
	"fit.max_error": into(pointed(value.share), func(s *Session) **float64 { return &s.Fit.MaxError }),

	"image":            sessionImage,
	"name":             into(containerName, func(s *Session) *string { return &s.Spec.Name }),
	"entrypoint":       sessionEntrypoint,
	"pull":             into(oneOf, func(s *Session) *string { return &s.Spec.Pull }),
	"ports":            sessionPorts,
	"network":          sessionNetwork,
	"sudo":             into(value.flag, func(s *Session) *bool { return &s.Spec.Sudo }),
	"restart":          into(oneOf, func(s *Session) *string { return &s.Spec.Restart }),
	"volume.source":    volumeSource,
	"volume.target":    volumeTarget,
	"volume.read_only": volumeReadOnly,
	"ssh.enabled":      sshEnabled,
	"ssh.port":         sshPort,
	"ssh.bind":         sshBind,
	"ssh.authorized_keys": into(listOf(`["~/.ssh/id_ed25519.pub"]`, `"ssh.authorized_keys" names no key`,
		"No key could log in. Name a key, leave authorized_keys out to use your own, or switch ssh off: enabled = false",
		value.publicKey), func(s *Session) *[]string { return &s.Keys }),
	"limits.cpus":     limitsCPUs,
	"limits.memory":   into(sizeFrom(6), func(s *Session) *int { return &s.Spec.Limits.MemoryMiB }), // Docker's minimum
	"limits.shm_size": into(sizeFrom(1), func(s *Session) *int { return &s.Spec.Limits.ShmMiB }),
	"limits.pids":     into(wholeUpTo(maxPIDs, "a number of processes"), func(s *Session) *int { return &s.Spec.Limits.PIDs }),

	"lifecycle.prevent_destroy": into(value.flag, func(s *Session) *bool { return &s.Lifecycle.PreventDestroy }),
}

const maxGPUs = 16 // in one machine

const maxPIDs = 1 << 22 // the maximum in Linux

// into stores what read returns in a field. If the value is wrong or unknown, the field keeps its default.
func into[B, T any](read func(value) (T, bool), field func(*B) *T) func(*B, value) {
	return func(b *B, v value) {
		if result, ok := read(v); ok {
			*field(b) = result
		}
	}
}

// pointed adapts a reader to an optional field.
func pointed[T any](read func(value) (T, bool)) func(value) (*T, bool) {
	return func(v value) (*T, bool) {
		result, ok := read(v)
		return &result, ok
	}
}

// listOf adapts a reader to a list, for which there is a sample. A list without elements is wrong if there is a summary of
// that.
func listOf[T any](sample, summary, detail string, read func(value) (T, bool)) func(value) ([]T, bool) {
	return func(v value) ([]T, bool) {
		elements, ok := v.elements(sample)
		if ok && len(elements) == 0 && summary != "" {
			v.wrong(summary, "%s", detail)
		}
		all := make([]T, 0, len(elements))
		for _, e := range elements {
			if one, ok := read(e); ok {
				all = append(all, one)
			}
		}
		return all, ok
	}
}

// named returns a reader of names of a form; what has such a name.
func named(form func() *regexp.Regexp, what, advice string) func(value) (string, bool) {
	return func(v value) (string, bool) {
		typed, ok := v.text()
		if ok && !form().MatchString(typed) {
			v.wrong(fmt.Sprintf("%q cannot be the name of %s", typed, what), "%s", advice)
			return "", false
		}
		return typed, ok
	}
}

func sizeFrom(lowMiB int) func(value) (int, bool) {
	return func(v value) (int, bool) { return v.size(lowMiB) }
}

func wholeUpTo(high int, what string) func(value) (int, bool) {
	return func(v value) (int, bool) { return v.whole(1, high, what) }
}

// readSession reads a session block and returns its sessions. Attributes that are equal for all instances are
// evaluated once.
func (l *loader) readSession(b *hcl.Block) {
	name, named := l.declare(b)
	said := l.read(b, &sessionSchema)
	shared := &l.shared
	*shared = Session{
		Address: resource.One(name),
		Program: resource.Program{Workspace: l.Dir},
		Fit:     resource.DefaultFit(),
		Spec:    defaultSpec,
		Ranges:  said.ranges(b.DefRange),
	}
	all := l.instances(name, said)
	all.mentioned = map[string]bool{}
	l.blocks[name] = all
	if all.guessed {
		shared.Open = []string{"count"} // for_each is reported as count, too
	}
	differ := l.differ(&said, all.reach)
	plain := *shared // before anything of the block is in it
	if !differ {
		l.open(shared, b, &said, instance{})
	}
	fixed, varying := l.split(said.attributes, all.reach)
	for _, a := range fixed {
		l.fill(shared, a, l.scopeOf(a.mentions))
	}
	if said.lacks("target") && said.lacks("fraction") {
		l.complain(b.DefRange, `"target" is missing`,
			"Every session needs a target. `cosplay ls` lists all. Add a line like: target = \"rtx-2060\"")
	}

	first, scope := len(l.sessions), l.scopeOfAll(varying)
	l.sessions = slices.Grow(l.sessions, len(all.list))
	for _, one := range all.list {
		l.sessions = append(l.sessions, *shared)
		s := &l.sessions[len(l.sessions)-1]
		switch {
		case differ:
			*s = plain
			own := said
			l.open(s, b, &own, one)
			both, more := l.split(own.attributes, all.reach)
			for _, a := range append(both, more...) {
				l.fill(s, a, one.scope(l.scopeOf(a.mentions)))
			}
		case len(varying) > 0 && all.reach != nowhere:
			s.Spec.Volumes = slices.Clone(s.Spec.Volumes) // one attribute of a volume can vary alone
			inside := scope.NewChild()
			inside.Variables = one.variables()
			for _, a := range varying {
				l.fill(s, a, inside)
			}
		}
		s.Address = one.address
		l.checkSession(s)
	}
	if !named {
		l.sessions = l.sessions[:first]
	}
}

// checkSession checks what the attributes of a session are together.
func (l *loader) checkSession(s *Session) {
	l.checkFraction(s)
	l.checkGPUs(s)
	l.checkOversubscribe(s)
	l.checkSlice(s)
	l.checkHost(s)
	l.checkContainer(s)
}

// open expands the dynamic blocks of a session.
func (l *loader) open(s *Session, b *hcl.Block, said *content, of instance) {
	if len(said.dynamics) == 0 {
		return
	}
	full, unknown := l.expand(*said, of)
	*said, s.Ranges, s.Open = full, full.ranges(b.DefRange), append(slices.Clip(s.Open), unknown...)
}

// split separates the attributes that are equal in all instances from those that vary. It reports and drops
// attributes that refer to names that do not exist.
func (l *loader) split(attributes []attribute, r reach) (fixed, varying []attribute) {
	for _, a := range attributes {
		if sessionAttributes[a.path] == nil && sessionReferences[a.path] == nil {
			continue // it applies to the block
		}
		check := l.check
		if sessionReferences[a.path] != nil {
			check = l.checkReferences
		}
		varies, ok := check(&a, r)
		switch {
		case !ok:
		case varies:
			varying = append(varying, a)
		default:
			fixed = append(fixed, a)
		}
	}
	return fixed, varying
}

func (l *loader) fill(s *Session, a attribute, scope *hcl.EvalContext) {
	if refer := sessionReferences[a.path]; refer != nil {
		refer(l, s, a, scope)
	} else if v, ok := l.evaluate(a, scope); ok {
		if v.leftOut() {
			s.Ranges = s.Ranges.without(a.key())
			return
		}
		sessionAttributes[a.path](s, v)
		if l.MayMiss && !v.IsWhollyKnown() {
			s.Open = append(slices.Clip(s.Open), a.path)
		}
	}
}

// checkSlice refuses a profile of a MIG slice for a session that gets no such slice.
func (r *reporter) checkSlice(s *Session) {
	at := s.Ranges.At("slice")
	profile, slot := resource.CutSlot(s.Slice)
	switch divides := (resource.Slice{Profile: profile}).Divides(); {
	case s.Slice == "":
	case s.Fraction > 0 && slot < 0:
		r.complain(at, `"fraction" and "slice" exclude each other`, "A fraction decides the size of the slice. Keep one of the two, or name its slot too, like %s@0.", profile)
	case s.GPUs > 1:
		r.complain(at, `"gpus" and "slice" exclude each other`, "A CUDA program finds only one MIG device. Leave out one of the two.")
	case slot >= 0 && !s.Ranges.has("gpu"):
		r.complain(at, fmt.Sprintf("slice = %q names a slot, and \"gpu\" is missing", s.Slice), "Write the GPU of the slot, like gpu = 0, or slice = %q, and cosplay chooses GPU and slot.", profile)
	case slot >= 0 && s.Sharing == resource.SharingMPS:
		r.complain(at, "a session with sharing = \"mps\" cannot name a slot", "Write slice = %q, or another sharing.", profile)
	case s.Sharing == resource.SharingExclusive:
		r.complain(at, fmt.Sprintf("a session with sharing = %q has no slice", s.Sharing), "Leave out slice, or sharing.")
	case (s.Sharing == resource.SharingTime || s.Sharing == resource.SharingMPS) && divides:
		r.complain(at, "a compute instance smaller than its GPU instance is not shared by time slices or MPS", "Write slice = %q, or sharing = \"compute-instance\".", resource.Slice{Profile: profile}.Instance().Profile)
	case s.Sharing == resource.SharingCompute && !divides:
		r.complain(at, fmt.Sprintf("a %s leaves no part of its GPU instance to others", profile), "Write a compute instance, like slice = %q, or leave out sharing.", resource.DividedProfile(1, profile))
	}
}

func (r *reporter) checkFraction(s *Session) {
	if s.Fraction == 0 {
		return
	}
	at := s.Ranges.At("fraction")
	if s.Ranges.has("target") {
		r.complain(at, `"fraction" and "target" exclude each other`, "A fraction is of the host's own GPU. Keep one of the two.")
	}
	if s.Sharing == resource.SharingExclusive || s.Sharing == resource.SharingCompute {
		r.complain(at, "a fraction is for sessions that share a GPU", "Write sharing = \"mig\", \"time-slice\" or \"mps\", or leave sharing out.")
	}
}

// checkOversubscribe refuses oversubscription of what is not shared.
func (r *reporter) checkOversubscribe(s *Session) {
	if s.Oversubscribe && s.Sharing != resource.SharingTime && s.Sharing != resource.SharingMPS {
		at := s.Ranges.At("oversubscribe")
		r.complain(at, "only sessions that share a whole GPU can oversubscribe its memory", "Write sharing = \"time-slice\" or \"mps\", or leave oversubscribe out.")
	}
}

// checkGPUs refuses what a session with several GPUs cannot have.
func (r *reporter) checkGPUs(s *Session) {
	if s.GPUs < 2 {
		s.GPUs = 0
		return
	}
	at := s.Ranges.At("gpus")
	switch {
	case s.Ranges.has("gpu"):
		r.complain(at, `"gpus" and "gpu" exclude each other`, "A session with several GPUs has one device on each. Leave gpu out; the host's gpus list says which may be used.")
	case s.Sharing == resource.SharingMIG, s.Sharing == resource.SharingCompute:
		r.complain(at, "a session cannot have several MIG slices", "A CUDA program finds one MIG device, whatever it is given. Write sharing = \"exclusive\" or \"time-slice\" for devices on whole GPUs, or a session for each slice.")
	}
}

// checkHost is the host of a session whose block does not say it: the only one, or that which cosplay chooses.
func (l *loader) checkHost(s *Session) {
	switch {
	case s.Ranges.has("host") && s.Ranges.has("hosts"):
		l.complain(s.Ranges.At("hosts"), `"host" and "hosts" exclude each other`, "host is the session's host; of hosts cosplay chooses one. Keep one of the two.")
		return
	case s.Ranges.has("host"), l.partial:
		return
	case len(l.hosts) == 0:
		s.Host = LocalHost
		return
	case len(l.hosts) == 1 && !s.Ranges.has("hosts"):
		s.Host = l.hosts[0].Name
		return
	}
	names := l.hostNames()
	needs := ""
	for _, attribute := range []string{"gpu", "gpus", "fraction"} {
		if s.Ranges.has(attribute) {
			needs = fmt.Sprintf("%q is about the GPUs of one host.", attribute)
		}
	}
	if !s.Ranges.has("hosts") {
		s.Hosts = names
	}
	if slices.ContainsFunc(l.hosts, func(h Host) bool { return h.Ranges.has("kubernetes") && slices.Contains(s.Hosts, h.Name) }) {
		needs = "cosplay does not choose between machines and clusters."
	}
	if needs != "" {
		l.complain(s.Ranges.Decl, `"host" is missing`,
			"%s There are the hosts %s. Say which one this session is for, like: host = %q", needs, prose.And(prose.Few(names, maxListed)), names[0])
	}
}

func (l *loader) hostNames() []string {
	return sortedTexts(l.hosts, func(h Host) string { return h.Name })
}

func sessionHost(s *Session, v value) { s.Host, _ = v.host() }

// sessionHosts reads the hosts of which cosplay chooses one, and brings them into an order.
func sessionHosts(s *Session, v value) {
	names, ok := listOf(`["gpu1", "gpu2"]`, `"hosts" names no host`, "The session could be nowhere. Name hosts, or leave hosts out for all of them.", value.host)(v)
	if ok {
		slices.Sort(names)
		s.Hosts = slices.Compact(names)
	}
}

// host reads the name of a host.
func (v value) host() (name string, ok bool) {
	if name, ok = v.text(); !ok {
		return "", false
	}
	switch {
	case v.l.partial || slices.ContainsFunc(v.l.hosts, func(h Host) bool { return h.Name == name }):
	case len(v.l.hosts) > 0:
		v.wrong(fmt.Sprintf("unknown host %q", name), "Declared: %s.%s Name a declared one, or add: host %q {}", prose.And(prose.Few(prose.Quoted(v.l.hostNames()), maxListed)), v.l.suggest(name, v.l.hostNames), name)
	case name != LocalHost:
		v.wrong(fmt.Sprintf("unknown host %q", name), "No host is declared, so there is only %q, this machine. Leave host out, or add: host %q {}", LocalHost, name)
	}
	return name, true
}

func sessionCommand(s *Session, v value) {
	words, ok := v.program(`["python", "train.py"]`)
	if ok && len(words) == 0 {
		v.wrong(`"command" names no program`, "The first word is the program, like [\"python\", \"train.py\"]. Leave command out, and the session just stays up.")
	}
	s.Command = words
}

// program reads a program with its arguments. An error inside the list was reported, and ok is false.
func (v value) program(sample string) (words []string, ok bool) {
	elements, ok := v.elements(sample)
	if !ok {
		return nil, false
	}
	words = []string{}
	for _, e := range elements {
		word, is := e.word()
		ok = ok && is
		words = append(words, word)
	}
	if ok && len(words) > 0 && words[0] == "" {
		v.wrong(v.name()+" names no program", "The first word is the program, like %s.", sample)
		return nil, false
	}
	return words, ok
}

func sessionEnv(s *Session, v value) {
	all := v.HasMark(sensitive) && !v.HasMark(reported)
	if all {
		v.Value, _ = v.Unmark()
		if v.hasSecretName() {
			return
		}
	}
	pairs, ok := v.pairs(`{ SEED = 11 }`)
	if !ok {
		return
	}
	s.Env, s.Secret = nil, nil
	for _, p := range pairs {
		switch name := p.key.AsString(); {
		case all && v.l.isHidden(name):
			p.key.wrong(secretName, secretNameAdvice)
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r == '=' || unicode.IsSpace(r) || unicode.IsControl(r) }):
			p.key.wrong(fmt.Sprintf("%q cannot be the name of an environment variable", name),
				"A name has at least one character, and no =, no space and no control character, like SEED.")
		case all || p.value.HasMark(sensitive) && !p.value.HasMark(reported):
			p.value.Value, _ = p.value.UnmarkDeep()
			p.storeText(&s.Secret)
		default:
			p.storeText(&s.Env)
		}
	}
}

// storeText reads the value of an entry as a text and stores it in a map, which may be nil.
func (p pair) storeText(in *map[string]string) {
	text, ok := p.value.word()
	if ok && *in == nil {
		*in = map[string]string{}
	}
	if ok {
		(*in)[p.key.AsString()] = text
	}
}
