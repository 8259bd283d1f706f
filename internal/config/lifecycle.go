package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

var lifecycleSchema = Block{
	Name: "lifecycle", what: "a lifecycle block",
	Description: "Restricts how the session may change.",
	Attributes: []Attribute{
		{Name: "prevent_destroy", Type: Flag, Default: "false", Change: Update, Example: "true",
			Description: "Refuses plans that would destroy or replace the session. The state records it, so it stays in effect after the block is removed; cosplay reset then requires --force."},
		{Name: "ignore_changes", Type: Attributes, Default: "[]", Common: true, Example: "[env, fit.tolerance]",
			Description: "Attributes and blocks whose changes cosplay ignores until it replaces the session for another reason; the word all means all of them."},
		{Name: "replace_triggered_by", Type: References, Default: "[]", Change: Update, Example: "[session.server, session.data.image]",
			Description: "Other sessions, their attributes, or values. When one of them changes, cosplay replaces the session."},
	},
}

// Lifecycle is the content of a session's lifecycle block.
type Lifecycle struct {
	PreventDestroy bool     `json:"prevent_destroy,omitempty"`
	Ignore         []string `json:"ignore_changes,omitempty"` // attributes and blocks: "env", "fit.tolerance", "env.SEED"; or IgnoreAll alone

	Triggers []Trigger `json:"replace_triggered_by,omitempty"`
	Digest   string    `json:"-"` // digest of the values in replace_triggered_by; "" without any
}

// IgnoreAll is the word in ignore_changes that means all attributes.
const IgnoreAll = "all"

// Trigger is a session, or one of its attributes, whose change replaces another session.
type Trigger struct {
	Of        resource.Reference `json:"of"`
	Attribute string             `json:"attribute,omitempty"` // "image", "fit.tolerance"; "" for any
	Range     hcl.Range          `json:"-"`
}

// Move records the previous address of a session or of a whole block.
type Move struct {
	From  resource.Reference `json:"from"`
	To    resource.Reference `json:"to"`
	Range hcl.Range          `json:"-"` // of "from"
}

// Import is an existing object that a session takes over.
type Import struct {
	To      resource.Address `json:"to"`
	ID      string           `json:"id"` // of a slice or a container, or the name of a session on its host
	Range   hcl.Range        `json:"-"`  // of "to"
	IDRange hcl.Range        `json:"-"`

	// Baseline are the settings that the GPU had before another tool changed it, as far as the block states them.
	Baseline resource.Settings `json:"baseline,omitzero"`
}

// Removal states what happens to sessions whose block was removed.
type Removal struct {
	From    resource.Reference `json:"from"`
	Destroy bool               `json:"destroy"` // if false, the sessions are left unchanged and removed from the state
	Range   hcl.Range          `json:"-"`       // of "from"
}

// sessionReferences reads the attributes of a session whose elements are references, not values.
var sessionReferences = map[string]func(*loader, *Session, attribute, *hcl.EvalContext){
	"depends_on":                     (*loader).dependsOn,
	"lifecycle.ignore_changes":       (*loader).ignoreChanges,
	"lifecycle.replace_triggered_by": (*loader).replaceTriggeredBy,
}

// checkReferences is the equivalent of check for these attributes, because a reference to a session is not a value.
// It reports elements that do not exist and drops them.
func (l *loader) checkReferences(a *attribute, r reach) (varies, ok bool) {
	elements, diags := hcl.ExprList(a.expr)
	if a.path == "lifecycle.ignore_changes" || diags.HasErrors() {
		return false, true // its reader reports it
	}
	r.refers, a.elements = true, []hcl.Expression{} // nil is no list
	for _, e := range elements {
		one := *a
		one.expr = e
		differs, ok := l.check(&one, r)
		varies = varies || differs
		a.mentions = append(a.mentions, one.mentions...)
		if ok {
			a.elements = append(a.elements, e)
		}
	}
	return varies, true
}

func (l *loader) ignoreChanges(s *Session, a attribute, _ *hcl.EvalContext) {
	if hcl.ExprAsKeyword(a.expr) == IgnoreAll {
		s.Lifecycle.Ignore = []string{IgnoreAll}
		return
	}
	elements, diags := hcl.ExprList(a.expr)
	if diags.HasErrors() {
		l.complain(a.expr.Range(), fmt.Sprintf("%q must be a list", a.path), "Write the names of attributes, without quotes: [env, fit.tolerance]; or the word all, without quotes.")
		return
	}
	s.Lifecycle.Ignore = nil
	for _, e := range elements {
		if path, ok := l.ignorable(e); ok && !slices.Contains(s.Lifecycle.Ignore, path) {
			s.Lifecycle.Ignore = append(s.Lifecycle.Ignore, path)
		}
	}
}

// ignorable reads the name of an attribute or block of a session, or of one environment variable.
func (r *reporter) ignorable(e hcl.Expression) (string, bool) {
	traversal, diags := hcl.AbsTraversalForExpr(e)
	if diags.HasErrors() {
		r.complain(e.Range(), "this is no name of an attribute", "Write names without quotes, like: [env, fit.tolerance]")
		return "", false
	}
	var names []string
	for _, step := range traversal {
		name := nameIn(step)
		if index, is := step.(hcl.TraverseIndex); is && index.Key.Type() == cty.String {
			name = index.Key.AsString()
		}
		names = append(names, name)
	}
	path, known := strings.Join(names, "."), ignorablePaths()
	if path == IgnoreAll {
		r.complain(e.Range(), "all cannot be an element of a list", "It means all attributes. Write: ignore_changes = all")
		return "", false
	}
	if slices.Contains(known, path) || names[0] == "env" && len(names) == 2 && names[1] != "" {
		return path, true
	}
	r.complain(e.Range(), fmt.Sprintf("a session has no attribute %q that could be ignored", path), "Write one of %s.%s", prose.And(known), didYouMean(path, known))
	return "", false
}

// ignorablePaths are the attributes and blocks that configure the session itself.
func ignorablePaths() []string {
	var all []string
	for _, attribute := range sessionSchema.Attributes {
		if attribute.Change != Nothing {
			all = append(all, attribute.Name)
		}
	}
	for _, block := range sessionSchema.Blocks {
		if block.Name == lifecycleSchema.Name {
			continue
		}
		all = append(all, block.Name)
		for _, attribute := range block.Attributes {
			if !block.Repeatable {
				all = append(all, block.Name+"."+attribute.Name)
			}
		}
	}
	return slices.Sorted(slices.Values(all))
}

func (l *loader) replaceTriggeredBy(s *Session, a attribute, scope *hcl.EvalContext) {
	if a.elements == nil {
		l.complain(a.expr.Range(), fmt.Sprintf("%q must be a list", a.path), "Write what replaces the session when it changes, like [session.server].")
		return
	}
	s.Lifecycle.Triggers = nil
	digest, values := sha256.New(), 0
	for _, e := range a.elements {
		if namesSession(e) {
			if ref, of, ok := l.reference(a, e, scope); ok {
				s.Lifecycle.Triggers = append(s.Lifecycle.Triggers, Trigger{Of: ref, Attribute: of, Range: e.Range()})
			}
			continue
		}
		if text, ok := l.valueText(a, e, scope); ok {
			values++
			fmt.Fprintf(digest, "%d %s\n", len(text), text)
		}
	}
	if values > 0 {
		s.Lifecycle.Digest = hex.EncodeToString(digest.Sum(nil)[:16])
	}
}

// namesSession reports whether an expression refers to a session and is not a value. A quoted address counts as a
// reference, too: JSON always quotes it, and in HCL it is a mistake to report.
func namesSession(e hcl.Expression) bool {
	if mentions := e.Variables(); len(mentions) > 0 {
		return mentionsSession(mentions[:1])
	}
	v, diags := e.Value(nil)
	return !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() && strings.HasPrefix(v.AsString(), "session.")
}

func mentionsSession(mentions []hcl.Traversal) bool {
	return slices.ContainsFunc(mentions, func(m hcl.Traversal) bool { return m.RootName() == "session" })
}

// valueText returns a text that differs if the value differs.
func (l *loader) valueText(a attribute, e hcl.Expression, scope *hcl.EvalContext) ([]byte, bool) {
	a.expr = e
	v, ok := l.evaluate(a, scope)
	if !ok {
		return nil, false
	}
	plain, marks := v.Value.UnmarkDeep()
	if _, open := marks[reported]; open || l.MayMiss && !plain.IsWhollyKnown() {
		return nil, false
	}
	if isSensitive(v.Value) {
		l.complain(e.Range(), "a sensitive value cannot replace a session", "An attacker could guess the value from the hash in the state. Name the session's own attribute: a sensitive value in env replaces its container when it changes.")
		return nil, false
	}
	if !plain.IsWhollyKnown() {
		l.complain(e.Range(), "this is not known yet", "Name a session as session.worker, or a value that is known beforehand.")
		return nil, false
	}
	text, err := json.Marshal(plain, cty.DynamicPseudoType)
	if err != nil {
		l.complain(e.Range(), "this value cannot replace a session", "%s Name a session, or a value of texts, numbers, lists and maps.", prose.Sentence(err.Error()))
	}
	return text, err == nil
}

func (l *loader) checkTriggers() {
	instances := sync.OnceValue(l.addresses)
	known := ignorablePaths()
	for _, session := range l.sessions {
		for _, t := range session.Lifecycle.Triggers {
			_, declared := l.blocks[t.Of.Address.Name]
			switch {
			case !declared:
				l.complain(t.Range, fmt.Sprintf("there is no session %q", t.Of.Address.Name),
					"Name one of the sessions of this configuration.%s", l.suggest(t.Of.Address.Name, l.sessionNames))
			case !t.Of.Block && !instances()[t.Of.Address] && !l.blocks[t.Of.Address.Name].guessed:
				l.complain(t.Range, fmt.Sprintf("there is no %s", t.Of), "session.%s alone means all instances of the block.", t.Of.Address.Name)
			case t.Of.Covers(session.Address):
				l.complain(t.Range, fmt.Sprintf("%s would be replaced by itself", session.Address), "Name another session, or leave this one out.")
			case t.Attribute != "" && !slices.Contains(known, t.Attribute) && !strings.HasPrefix(t.Attribute, "env."):
				l.complain(t.Range, fmt.Sprintf("a session has no attribute %q", t.Attribute), "It has %s.%s", prose.And(known), didYouMean(t.Attribute, known))
			}
		}
	}
}
