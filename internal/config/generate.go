package config

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Draft is a session that exists, for Generate.
type Draft struct {
	Session  resource.Session
	Import   string            // the ID of what an import block gives it; "" for no block
	Baseline resource.Settings // that the import block states
	Keys     []string          // that may log in; nil for the user's own
	Notes    []string          // comments before the block
}

// WithoutSecrets leaves out the variables of the environment that look like secrets, with a note for each. They come
// from a container, and users commit what is generated.
func (d Draft) WithoutSecrets() Draft {
	d.Session.Env, d.Notes = maps.Clone(d.Session.Env), slices.Clone(d.Notes)
	for _, name := range slices.Sorted(maps.Keys(d.Session.Env)) {
		if looksSecret(name, d.Session.Env[name]) {
			delete(d.Session.Env, name)
			d.Notes = append(d.Notes, fmt.Sprintf("env.%s is left out, because it looks like a secret. The container has it until it is recreated. To keep it, add it as a sensitive variable.", name))
		}
	}
	return d
}

// looksSecret reports whether a variable has a name as secrets have, or an address with a password.
func looksSecret(name, value string) bool {
	if address, err := url.Parse(value); err == nil && address.User != nil {
		if _, has := address.User.Password(); has {
			return true
		}
	}
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return !unicode.IsLetter(r) }), func(word string) bool {
		return slices.Contains([]string{"KEY", "PASS", "AUTH", "CREDENTIAL", "CREDENTIALS", "SECRETS"}, word) ||
			slices.ContainsFunc([]string{"TOKEN", "APIKEY", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE"}, func(end string) bool { return strings.HasSuffix(word, end) })
	})
}

// Generated is a configuration for what exists.
type Generated struct {
	Comments []string // at the beginning
	Host     *Host    // of which the block has simulate and runtime; nil for no block
	Drafts   []Draft  // by address
	Left     []string // comments at the end: what has no block, and why

	Dir   string // the project's folder, which is the default workspace
	Hosts int    // declared: with several, each session names its own
}

// HasEnv reports whether the configuration has values of environment variables, in clear text.
func (g Generated) HasEnv() bool {
	return slices.ContainsFunc(g.Drafts, func(d Draft) bool { return len(d.Session.Env) > 0 })
}

// Generate writes session blocks after which the sessions are as they are, formatted as cosplay fmt formats them.
func Generate(name string, g Generated) ([]byte, error) {
	file := hclwrite.NewEmptyFile()
	body := file.Body()
	comment(body, g.Comments)
	if g.Host != nil {
		body.AppendNewline()
		host := body.AppendNewBlock("host", []string{g.Host.Name}).Body()
		if g.Host.Simulate != "" {
			host.SetAttributeValue("simulate", cty.StringVal(g.Host.Simulate))
		}
		host.SetAttributeValue("runtime", cty.StringVal(g.Host.Runtime))
	}
	for at := 0; at < len(g.Drafts); {
		end := at + 1
		for end < len(g.Drafts) && g.Drafts[end].Session.Address.Name == g.Drafts[at].Session.Address.Name {
			end++
		}
		g.block(body, g.Drafts[at:end])
		at = end
	}
	if len(g.Left) > 0 {
		body.AppendNewline()
	}
	comment(body, g.Left)
	text, _, diags := Format(name, bytes.TrimLeft(file.Bytes(), "\n"))
	if diags.HasErrors() {
		return nil, diags
	}
	return text, nil
}

// comment writes lines of comments. Names in them are from outside: none ends its line.
func comment(body *hclwrite.Body, lines []string) {
	for _, line := range lines {
		line = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ' {
				return ' '
			}
			return r
		}, line)
		body.AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment, Bytes: []byte(strings.TrimRight("# "+line, " ") + "\n")}})
	}
}

// block writes the block of sessions that have one name, and their import blocks.
func (g Generated) block(body *hclwrite.Body, drafts []Draft) {
	name := drafts[0].Session.Address.Name
	body.AppendNewline()
	var notes []string
	for _, d := range drafts {
		for _, note := range d.Notes {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	group := instancesOf(drafts)
	comment(body, append(notes, group.missing(name)...))
	session := body.AppendNewBlock("session", []string{name}).Body()
	group.multiply(session)
	g.fill(session, drafts, group)
	for _, d := range drafts {
		if d.Import == "" {
			continue
		}
		body.AppendNewline()
		take := body.AppendNewBlock("import", nil).Body()
		take.SetAttributeRaw("to", addressTokens(d.Session.Address))
		take.SetAttributeValue("id", cty.StringVal(d.Import))
		for _, one := range importBaselines {
			value, stated := d.Baseline.Get(one.setting)
			switch {
			case stated && one.setting.Mode():
				take.SetAttributeValue(one.name, cty.BoolVal(value == resource.On))
			case stated:
				take.SetAttributeValue(one.name, cty.NumberIntVal(int64(value/1000)))
			}
		}
	}
}

// fill writes the attributes of sessions. One that differs between them is a list or a map of its values.
func (g Generated) fill(session *hclwrite.Body, drafts []Draft, group grouped) {
	all := make([]map[string]cty.Value, len(drafts))
	for i, d := range drafts {
		all[i] = g.attributes(d.Session)
		if d.Session.Spec.SSH.Enabled && len(d.Keys) > 0 {
			all[i]["ssh.authorized_keys"] = texts(d.Keys)
		}
	}
	inner := map[string]*hclwrite.Body{"": session}
	for _, path := range ordered(all) {
		block, attribute := "", path
		if at := strings.LastIndex(path, "."); at >= 0 {
			block, attribute = path[:at], path[at+1:]
		}
		if inner[block] == nil {
			kind, _, _ := strings.Cut(block, "[")
			if len(inner) == 1 {
				session.AppendNewline()
			}
			inner[block] = session.AppendNewBlock(kind, nil).Body()
		}
		values := prose.Each(all, func(a map[string]cty.Value) cty.Value {
			if value, has := a[path]; has {
				return value
			}
			return cty.NullVal(cty.DynamicPseudoType)
		})
		inner[block].SetAttributeRaw(attribute, group.tokens(values))
	}
	if on := drafts[0].Session.DependsOn; len(on) > 0 {
		session.SetAttributeRaw("depends_on", hclwrite.TokensForTuple(prose.Each(on, func(name string) hclwrite.Tokens {
			return addressTokens(resource.One(name))
		})))
	}
}

// attributes are what a session's block has, by path: what is as without an attribute is left out.
func (g Generated) attributes(s resource.Session) map[string]cty.Value {
	all := map[string]cty.Value{}
	put := func(path string, differs bool, value cty.Value) {
		if differs {
			all[path] = value
		}
	}
	text := func(path, value, usual string) { put(path, value != usual, cty.StringVal(value)) }
	whole := func(path string, value int) { put(path, value != 0, cty.NumberIntVal(int64(value))) }
	request, usual := s.Request, resource.DefaultFit()
	if request.Fraction > 0 {
		all["fraction"] = cty.NumberFloatVal(request.Fraction)
	} else {
		all["target"] = cty.StringVal(s.Target.Key)
	}
	put("host", g.Hosts > 1, cty.StringVal(request.Host))
	text("gpu", request.GPU, "")
	text("slice", request.Slice, "")
	text("sharing", string(request.Sharing), "")
	put("gpus", request.GPUs > 1, cty.NumberIntVal(int64(request.GPUs)))
	put("oversubscribe", request.Oversubscribe, cty.True)
	put("command", len(s.Command) > 0, texts(s.Command))
	put("workspace", s.Workspace != "" && s.Workspace != g.Dir, cty.StringVal(s.Workspace)) // "" is a container without one
	put("env", len(s.Env) > 0, textMap(s.Env))
	put("strict", s.Strict, cty.True)
	text("capability", s.Capability, "")
	put("ttl", s.Lifetime.TTL != 0, cty.StringVal(s.Lifetime.TTL.String()))
	put("idle_timeout", s.Lifetime.IdleTimeout != 0, cty.StringVal(s.Lifetime.IdleTimeout.String()))
	put("stop_at", s.Lifetime.StopAt != 0, cty.StringVal(s.Lifetime.StopAt.String()))
	if request.Fit.Prefer == "" {
		request.Fit = usual
	}
	text("fit.prefer", string(request.Fit.Prefer), string(usual.Prefer))
	put("fit.tolerance", request.Fit.Tolerance != usual.Tolerance, share(request.Fit.Tolerance))
	if most := request.Fit.MaxError; most != nil {
		all["fit.max_error"] = share(*most)
	}
	put("lifecycle.prevent_destroy", s.PreventDestroy, cty.True)
	if !s.Spec.IsZero() {
		specAttributes(s.Spec, put, text, whole)
	}
	return all
}

// specAttributes are those of a container.
func specAttributes(spec resource.ContainerSpec, put func(string, bool, cty.Value), text func(path, value, usual string), whole func(string, int)) {
	usual := defaultSpec
	text("image", spec.Image, usual.Image)
	text("pull", spec.Pull, usual.Pull)
	text("name", spec.Name, "")
	if spec.RunsImage() {
		text("entrypoint", resource.ImageEntrypoint, "")
	} else {
		put("entrypoint", spec.Entrypoint != nil, texts(spec.Entrypoint))
	}
	put("ports", len(spec.Ports) > 0, texts(prose.Each(spec.Ports, portText)))
	text("network", spec.Network, "")
	text("restart", spec.Restart, usual.Restart)
	put("sudo", spec.Sudo == spec.SSH.Exposed(), cty.BoolVal(spec.Sudo))
	for i, v := range spec.Volumes {
		at := fmt.Sprintf("volume[%d].", i)
		text(at+"source", v.Source, "")
		text(at+"target", v.Target, "")
		put(at+"read_only", v.ReadOnly, cty.True)
	}
	if spec.SSH.Enabled {
		whole("ssh.port", spec.SSH.Port)
		text("ssh.bind", spec.SSH.Bind, usual.SSH.Bind)
	} else {
		put("ssh.enabled", true, cty.False)
	}
	put("limits.cpus", spec.Limits.CPUs != 0, cty.NumberFloatVal(spec.Limits.CPUs))
	put("limits.memory", spec.Limits.MemoryMiB != 0, sizeValue(spec.Limits.MemoryMiB))
	put("limits.shm_size", spec.Limits.ShmMiB != 0, sizeValue(spec.Limits.ShmMiB))
	whole("limits.pids", spec.Limits.PIDs)
}

// portText is a port as a configuration has it.
func portText(p resource.Port) string {
	text := fmt.Sprintf("%d:%d", p.Host, p.Container)
	switch {
	case p.Bind == defaultBind:
	case strings.Contains(p.Bind, ":"): // IPv6
		text = "[" + p.Bind + "]:" + text
	default:
		text = p.Bind + ":" + text
	}
	if p.UDP {
		text += "/udp"
	}
	return text
}

func share(part float64) cty.Value {
	return cty.StringVal(strconv.FormatFloat(part*100, 'g', 10, 64) + "%")
}

func sizeValue(mib int) cty.Value {
	if mib%1024 == 0 {
		return cty.StringVal(fmt.Sprintf("%dGiB", mib/1024))
	}
	return cty.StringVal(fmt.Sprintf("%dMiB", mib))
}

func texts(all []string) cty.Value {
	if len(all) == 0 {
		return cty.EmptyTupleVal
	}
	return cty.TupleVal(prose.Each(all, cty.StringVal))
}

func textMap(all map[string]string) cty.Value {
	values := map[string]cty.Value{}
	for name, value := range all {
		values[name] = cty.StringVal(value)
	}
	return cty.ObjectVal(values)
}

// ordered are the paths that any session has, in the order of the language.
func ordered(all []map[string]cty.Value) []string {
	seen := map[string]bool{}
	for _, one := range all {
		for path := range one {
			seen[path] = true
		}
	}
	place := map[string]int{}
	for i, a := range sessionSchema.Attributes {
		place[a.Name] = i
	}
	for i, b := range sessionSchema.Blocks {
		for j, a := range b.Attributes {
			place[b.Name+"."+a.Name] = 1000*(i+1) + j
		}
	}
	rank := func(path string) int {
		block, rest, nested := strings.Cut(path, "[")
		if !nested {
			return place[path]
		}
		number, attribute, _ := strings.Cut(rest, "].")
		n, _ := strconv.Atoi(number)
		return place[block+"."+attribute] + 10*n
	}
	paths := slices.Collect(maps.Keys(seen))
	slices.SortFunc(paths, func(a, b string) int { return rank(a) - rank(b) })
	return paths
}

func addressTokens(a resource.Address) hclwrite.Tokens {
	to := hcl.Traversal{hcl.TraverseRoot{Name: "session"}, hcl.TraverseAttr{Name: a.Name}}
	switch a.Key.Kind {
	case resource.Single:
	case resource.ByCount:
		to = append(to, hcl.TraverseIndex{Key: cty.NumberIntVal(int64(a.Key.Index))})
	case resource.ByEach:
		to = append(to, hcl.TraverseIndex{Key: cty.StringVal(a.Key.Each)})
	}
	return hclwrite.TokensForTraversal(to)
}
