package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/prose"
)

// output is an output block.
type output struct {
	Output // without its value
	source attribute
}

// check is a check block.
type check struct {
	name  string
	rules []rule
}

// Output is the value of an output block.
type Output struct {
	Name        string
	Description string
	Sensitive   bool
	Value       cty.Value // unknown until the sessions that it refers to exist
	Redacted    cty.Value // from Eval: the value with null for each sensitive part
	Open        bool      // also unknown because a variable that it depends on has no value
}

// readOutput registers an output block, and checks that its value can be evaluated once sessions exist.
func (l *loader) readOutput(b *hcl.Block) {
	name, named := l.declare(b)
	said := l.read(b, &outputSchema)
	o := output{Output: Output{Name: name}}
	a := said.find("value")
	if said.lacks("value") {
		l.complain(b.DefRange, `"value" is missing`, "An output is a value that is shown after apply. Add a line like: value = session.worker[0].ssh_command")
	}
	o.Description, _ = constant(l, said.find("description"), value.text)
	o.Sensitive, _ = constant(l, said.find("sensitive"), value.flag)
	if a == nil || !named {
		return
	}
	o.source = *a
	v, ok := l.outlook(&o.source)
	if ok && isSensitive(v.Value) && !o.Sensitive {
		v.wrong(fmt.Sprintf("output %q would show a sensitive value", name), "Write sensitive = true into its block, and it is kept hidden; or wrap the value in nonsensitive(...) if it may be shown.")
	}
	l.outputs = append(l.outputs, o)
}

// outlook evaluates an expression as far as possible before sessions exist.
func (l *loader) outlook(a *attribute) (value, bool) {
	if _, ok := l.check(a, reach{live: true}); !ok {
		return value{}, false
	}
	if l.unborn == nil {
		l.unborn = l.newLiveScope(nil)
	}
	return l.evaluate(*a, l.unborn.of(*a))
}

func (l *loader) readCheck(b *hcl.Block) {
	name, named := l.declare(b)
	said := l.read(b, &checkSchema)
	c := check{name: name, rules: rulesOf(said, "assert")}
	condition, message := said.find("condition"), said.find("error_message")
	c.rules = append(c.rules, rule{condition: condition, message: message})
	switch {
	case condition != nil && said.lacks("error_message"):
		l.complainIn(condition.whole, b.DefRange, `"error_message" is missing`, "Say what is wrong when the condition is false. Add a line like: error_message = \"the workers are too slow\"")
	case said.lacks("condition") && (message != nil || len(said.blocks) == 0):
		l.complain(b.DefRange, `"condition" is missing`, "A check is a condition that is true when all is well. Add a line like: condition = session.worker[0].fit.fp32_error < 0.1")
	}
	for _, r := range c.rules {
		l.tryRule(r)
	}
	c.rules = prose.Only(c.rules, rule.isWhole)
	if named {
		l.checks = append(l.checks, c)
	}
}

// tryRule checks that a rule can be evaluated once sessions exist, as far as the rule is complete.
func (l *loader) tryRule(r rule) {
	if r.condition != nil {
		if v, ok := l.outlook(r.condition); ok && v.IsKnown() {
			v.Value, _ = v.Unmark()
			v.flag()
		} else if ok && v.Type() != cty.Bool && v.Type() != cty.DynamicPseudoType {
			v.wrong(v.name()+" must be true or false",
				"This is %s. Write a comparison, like session.worker[0].fit.fp32_error < 0.1.", v.kind())
		}
	}
	if r.message != nil {
		if v, ok := l.outlook(r.message); ok && v.IsKnown() && !v.IsMarked() {
			v.text()
		}
	}
}

// EvalOutputs evaluates the outputs, sorted by name, with the live attributes that are known.
func (i *Intent) EvalOutputs(live Lives) ([]Output, hcl.Diagnostics) {
	if i.l == nil {
		return nil, nil
	}
	l := i.l
	l.again()
	scope := l.newLiveScope(live)
	all := make([]Output, 0, len(l.outputs))
	for _, o := range l.outputs {
		if v, ok := l.evaluate(o.source, scope.of(o.source)); ok {
			bare, marks := v.UnmarkDeep()
			_, open := marks[reported]
			o.Value, o.Open = bare, open && !bare.IsWhollyKnown()
			all = append(all, o.Output)
		}
	}
	slices.SortFunc(all, func(a, b Output) int { return strings.Compare(a.Name, b.Name) })
	return all, l.diags
}

// EvalChecks evaluates the checks with the live attributes that are known. A failed check is a warning; a check that
// cannot be evaluated yet gives none.
func (i *Intent) EvalChecks(live Lives) hcl.Diagnostics {
	if i.l == nil {
		return nil
	}
	l := i.l
	l.again()
	scope := l.newLiveScope(live)
	evaluate := func(a *attribute) (value, bool) { return l.evaluate(*a, scope.of(*a)) }
	for _, c := range l.checks {
		for _, r := range c.rules {
			if message, _ := l.broken(r, evaluate); message != "" {
				l.complain(r.condition.expr.Range(), fmt.Sprintf("check %q failed", c.name), "%s", message)
			}
		}
	}
	warnings := l.diags
	for _, d := range warnings {
		d.Severity = hcl.DiagWarning
	}
	return warnings
}

// forget drops the reported diagnostics, so that the same ones can be reported again.
func (r *reporter) forget() { r.diags, r.reported = nil, map[hcl.Range]hcl.Diagnostics{} }

// again begins another evaluation, with a new budget.
func (l *loader) again() {
	l.forget()
	l.budget.begin(l.Options)
}

// ConsoleName is the file name in messages about expressions that a user typed.
const ConsoleName = "<console>"

// Eval evaluates an expression that a user typed, with the whole configuration and the live attributes of sessions
// that are known. It returns the file so that callers can show diagnostics with their source.
func (i *Intent) Eval(typed string, live Lives) (Output, *hcl.File, hcl.Diagnostics) {
	file := &hcl.File{Bytes: []byte(typed)}
	expr, diags := parseExpression(typed, ConsoleName)
	l := i.l
	l.again()
	for _, d := range diags {
		l.report(d)
	}
	if diags.HasErrors() {
		return Output{}, file, l.diags
	}
	a := attribute{path: "console", expr: expr, whole: expr.Range()}
	if _, ok := l.check(&a, reach{live: true}); !ok {
		return Output{}, file, l.diags
	}
	v, ok := l.evaluate(a, l.newLiveScope(live).of(a))
	if !ok {
		return Output{}, file, l.diags
	}
	bare, paths := v.UnmarkDeepWithPaths()
	_, marks := v.UnmarkDeep()
	if _, open := marks[reported]; open && !bare.IsWhollyKnown() {
		l.reportOpen(a)
	}
	return Output{Sensitive: isSensitive(v.Value), Value: bare, Redacted: redactedValue(bare, paths)}, file, l.diags
}

// Unfinished reports whether an expression goes on in the next line: a bracket or a heredoc is open. Of a very long one
// it reports that it does not, because each line is read again with all before it.
func Unfinished(typed string) bool {
	if strings.Count(typed, "\n") > 1000 || len(typed) > 64<<10 {
		return false
	}
	tokens, _ := hclsyntax.LexExpression([]byte(typed), ConsoleName, hcl.InitialPos)
	open := 0
	for _, t := range tokens {
		switch {
		case t.Type == hclsyntax.TokenOQuote || t.Type == hclsyntax.TokenCQuote: // a text ends on its line
		case slices.Contains(opening, t.Type):
			open++
		case slices.Contains(closing, t.Type):
			open--
		}
	}
	return open > 0
}

// reportOpen reports an expression that cannot be evaluated because variables have no value: the variables that it
// refers to or, if it depends on them indirectly, all variables without a value.
func (l *loader) reportOpen(a attribute) {
	at, names := a.expr.Range(), l.missedNames()
	for _, mention := range a.mentions {
		if name, is := strings.CutPrefix(variableName(mention), "var."); is && slices.Contains(names, name) {
			at, names = mention.SourceRange(), []string{name}
		}
	}
	for i, name := range names {
		names[i] = "var." + name
	}
	l.complain(at, fmt.Sprintf("this needs a value for %s", prose.Or(names)), "Give it one %s.", waysFor("NAME"))
}
