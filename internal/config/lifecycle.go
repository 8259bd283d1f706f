package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

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
		{Name: "prevent_destroy", Type: Flag, Default: "false", PerInstance: true, Change: Update, Example: "true",
			Description: "Refuses plans that would destroy or replace the session. The state records it, so it stays in effect after the block is removed; cosplay reset then requires --force."},
		{Name: "ignore_changes", Type: Attributes, Default: "[]", Example: "[env, fit.tolerance]",
			Description: "Attributes and blocks whose changes cosplay ignores until it replaces the session for another reason; the word all means all of them."},
		{Name: "replace_triggered_by", Type: References, Default: "[]", PerInstance: true, Change: Update, Example: "[session.server, session.data.image]",
			Description: "Other sessions, their attributes, or values. When one of them changes, cosplay replaces the session."},
	},
}

// Lifecycle is what a session's block says of how it may change.
type Lifecycle struct {
	PreventDestroy bool     `json:"prevent_destroy,omitempty"`
	Ignore         []string `json:"ignore_changes,omitempty"` // attributes and blocks: "env", "fit.tolerance", "env.SEED"; or IgnoreAll alone

	Triggers []Trigger `json:"replace_triggered_by,omitempty"`
	Digest   string    `json:"-"` // of the values among replace_triggered_by; "" without any
}

// IgnoreAll is the word of ignore_changes for all attributes.
const IgnoreAll = "all"

// Trigger is a session, or an attribute of one, whose change replaces another.
type Trigger struct {
	Of        resource.Reference `json:"of"`
	Attribute string             `json:"attribute,omitempty"` // "image", "fit.tolerance"; "" is any
	Range     hcl.Range          `json:"-"`
}

// Move says that a session, or all of a block, used to have another address.
type Move struct {
	From  resource.Reference `json:"from"`
	To    resource.Reference `json:"to"`
	Range hcl.Range          `json:"-"` // of "from"
}

// Import is something that exists and is to become a session's.
type Import struct {
	To      resource.Address `json:"to"`
	ID      string           `json:"id"` // of a slice or a container, or the name of a session on its host
	Range   hcl.Range        `json:"-"`  // of "to"
	IDRange hcl.Range        `json:"-"`
}

// Removal says what becomes of sessions whose block is gone.
type Removal struct {
	From    resource.Reference `json:"from"`
	Destroy bool               `json:"destroy"` // else they are forgotten, and left as they are
	Range   hcl.Range          `json:"-"`       // of "from"
}

// sessionReferences reads those attributes of a session whose words are not
// values.
var sessionReferences = map[string]func(*loader, *Session, attribute, *hcl.EvalContext){
	"depends_on":                     (*loader).dependsOn,
	"lifecycle.ignore_changes":       (*loader).ignoreChanges,
	"lifecycle.replace_triggered_by": (*loader).replaceTriggeredBy,
}

// checkReferences is check for these attributes: sessions that they mention are
// no values. Elements that mention what does not exist are told and left out.
func (l *loader) checkReferences(a *attribute, r reach) (varies, ok bool) {
	elements, diags := hcl.ExprList(a.expr)
	if a.path == "lifecycle.ignore_changes" || diags.HasErrors() {
		return false, true // which its reader tells
	}
	sound := listed{a.expr, []hcl.Expression{}} // nil would be no list
	for _, e := range elements {
		one := *a
		one.expr = valuesOf{e}
		differs, ok := l.check(&one, r)
		varies = varies || differs
		a.mentions = append(a.mentions, one.mentions...)
		if ok {
			sound.elements = append(sound.elements, e)
		}
	}
	a.expr = sound
	return varies, true
}

// listed is a list of which some elements are left out.
type listed struct {
	hcl.Expression
	elements []hcl.Expression
}

// ExprList implements what hcl.ExprList asks for.
func (e listed) ExprList() []hcl.Expression { return e.elements }

// valuesOf is an expression without the sessions that it mentions.
type valuesOf struct{ hcl.Expression }

// UnwrapExpression lets those through who look at how the expression is written.
func (e valuesOf) UnwrapExpression() hcl.Expression { return e.Expression }

// Variables are what it mentions, but for sessions.
func (e valuesOf) Variables() []hcl.Traversal {
	return slices.DeleteFunc(e.Expression.Variables(), func(t hcl.Traversal) bool { return t.RootName() == "session" })
}

func (l *loader) preventDestroy(s *Session, v value) {
	s.Lifecycle.PreventDestroy, _ = l.flag(v)
}

func (l *loader) ignoreChanges(s *Session, a attribute, _ *hcl.EvalContext) {
	if hcl.ExprAsKeyword(a.expr) == IgnoreAll {
		s.Lifecycle.Ignore = []string{IgnoreAll}
		return
	}
	elements, diags := hcl.ExprList(a.expr)
	if diags.HasErrors() {
		l.complain(a.expr.Range(), a.whole, fmt.Sprintf("%q must be a list", a.path), "Write the names of attributes, without quotes: [env, fit.tolerance]; or the word all, without quotes.")
		return
	}
	s.Lifecycle.Ignore = nil
	for _, e := range elements {
		if path, ok := l.ignorable(a, e); ok && !slices.Contains(s.Lifecycle.Ignore, path) {
			s.Lifecycle.Ignore = append(s.Lifecycle.Ignore, path)
		}
	}
}

// ignorable reads the name of an attribute or block of a session, or of one
// variable of its environment.
func (l *loader) ignorable(a attribute, e hcl.Expression) (string, bool) {
	traversal, diags := hcl.AbsTraversalForExpr(e)
	if diags.HasErrors() {
		l.complain(e.Range(), a.whole, "this is no name of an attribute", "Write names without quotes: [env, fit.tolerance].")
		return "", false
	}
	var names []string
	for _, s := range traversed(nil, traversal) {
		if s.name == "" && s.index != cty.NilVal && s.index.Type() == cty.String {
			s.name = s.index.AsString()
		}
		names = append(names, s.name)
	}
	path, known := strings.Join(names, "."), ignorablePaths()
	if path == IgnoreAll {
		l.complain(e.Range(), a.whole, "all cannot be an element of a list", "It means all attributes. Write: ignore_changes = all")
		return "", false
	}
	if slices.Contains(known, path) || names[0] == "env" && len(names) == 2 && names[1] != "" {
		return path, true
	}
	l.complain(e.Range(), a.whole, fmt.Sprintf("a session has no attribute %q that could be ignored", path), "Write one of %s.%s", prose.And(known), didYouMean(path, known))
	return "", false
}

// ignorablePaths are the attributes and blocks of a session that are about the
// session itself.
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
	elements, diags := hcl.ExprList(a.expr)
	if diags.HasErrors() {
		l.complain(a.expr.Range(), a.whole, fmt.Sprintf("%q must be a list", a.path), "Write what replaces the session when it changes, like [session.server].")
		return
	}
	s.Lifecycle.Triggers = nil
	digest, values := sha256.New(), 0
	for _, e := range elements {
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

// namesSession reports whether a session is meant, and not a value. In quotes it is
// meant, too: in JSON it is always written so, and else it is a mistake.
func namesSession(e hcl.Expression) bool {
	if mentions := e.Variables(); len(mentions) > 0 {
		return mentions[0].RootName() == "session"
	}
	v, diags := e.Value(nil)
	return !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() && strings.HasPrefix(v.AsString(), "session.")
}

// valueText is a value as a text that is another where the value is.
func (l *loader) valueText(a attribute, e hcl.Expression, scope *hcl.EvalContext) ([]byte, bool) {
	a.expr = e
	v, ok := l.evaluate(a, scope)
	if !ok {
		return nil, false
	}
	plain, marks := v.Value.UnmarkDeep()
	if _, open := marks[told]; open || l.MayMiss && !plain.IsWhollyKnown() {
		return nil, false
	}
	if isSensitive(v.Value) {
		l.complain(e.Range(), a.whole, "a sensitive value cannot replace a session", "An attacker could guess the value from the hash in the state. Name the session's own attribute: a sensitive value in env replaces its container when it changes.")
		return nil, false
	}
	if !plain.IsWhollyKnown() {
		l.complain(e.Range(), a.whole, "this is not known yet", "Name a session as session.worker, or a value that is known beforehand.")
		return nil, false
	}
	text, err := json.Marshal(plain, cty.DynamicPseudoType)
	if err != nil {
		l.complain(e.Range(), a.whole, "this value cannot replace a session", "%s Name a session, or a value of texts, numbers, lists and maps.", prose.Sentence(err.Error()))
	}
	return text, err == nil
}

// checkTriggers tells of mentions of sessions that are not there.
func (l *loader) checkTriggers() {
	names := map[string]bool{}
	instances := map[resource.Address]bool{}
	for _, s := range l.sessions {
		names[s.Address.Name], instances[s.Address] = true, true
	}
	for name := range l.declared {
		if label, ok := strings.CutPrefix(name, "session "); ok {
			names[strings.Trim(label, `"`)] = true
		}
	}
	known := ignorablePaths()
	for _, session := range l.sessions {
		for _, t := range session.Lifecycle.Triggers {
			switch {
			case !names[t.Of.Address.Name]:
				l.complain(t.Range, t.Range, fmt.Sprintf("there is no session %q", t.Of.Address.Name), "Name one of the sessions of this configuration.%s", didYouMean(t.Of.Address.Name, sortedKeys(names)))
			case !t.Of.Block && !instances[t.Of.Address] && !l.guessed[t.Of.Address.Name]:
				l.complain(t.Range, t.Range, fmt.Sprintf("there is no %s", t.Of), "session.%s alone means all instances of the block.", t.Of.Address.Name)
			case t.Of.Covers(session.Address):
				l.complain(t.Range, t.Range, fmt.Sprintf("%s would be replaced by itself", session.Address), "Name another session, or leave this one out.")
			case t.Attribute != "" && !slices.Contains(known, t.Attribute) && !strings.HasPrefix(t.Attribute, "env."):
				l.complain(t.Range, t.Range, fmt.Sprintf("a session has no attribute %q", t.Attribute), "It has %s.%s", prose.And(known), didYouMean(t.Attribute, known))
			}
		}
	}
}
