package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cosplay/internal/prose"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// node is a value that expressions refer to by name, var.image or local.seeds, and that may depend on other nodes. It
// is evaluated when it is first needed, so that the order in the files does not matter.
type node struct {
	name  string                   // "local.seeds"
	at    hcl.Range                // where it is declared
	work  func() (cty.Value, bool) // reports the reason if it fails
	value cty.Value
	ok    bool // if false, the reason has been reported

	underWay, settled bool
}

// maxChain limits how many nodes wait for each other, since each needs space on the stack.
const maxChain = 50_000

// settle evaluates a node and everything that it depends on.
func (l *loader) settle(n *node) bool {
	switch {
	case n.settled:
		return n.ok
	case n.underWay:
		l.reportCycle(n)
		return false
	}
	if len(l.chain) == maxChain {
		l.complain(n.at, exceeds, "%d values wait for each other here, the limit of cosplay. Make the chain of locals shorter.", maxChain)
		n.settled = true
		return false
	}
	n.underWay = true
	l.chain = append(l.chain, n)
	n.value, n.ok = n.work()
	l.chain = l.chain[:len(l.chain)-1]
	n.settled = true
	return n.ok
}

// reportCycle draws the path from a node back to itself.
func (l *loader) reportCycle(n *node) {
	ring := l.chain[slices.Index(l.chain, n):]
	if n.name == catalogName { // the catalog has no place in the files
		ring = append(slices.Clone(ring[1:]), n)
		n = ring[0]
	}
	var drawn, places []string
	for _, one := range ring {
		drawn = append(drawn, one.name)
		if one.name != catalogName {
			places = append(places, fmt.Sprintf("%s at %s", one.name, place(one.at)))
		}
	}
	drawn = append(drawn, n.name)
	if len(ring) > maxListed {
		places = places[:maxListed]
	}
	if len(ring) == 1 {
		l.complain(n.at, fmt.Sprintf("%s depends on itself", n.name), "To know it, it would have to be known. Write a value that does not mention %s.", n.name)
		return
	}
	l.complain(n.at, fmt.Sprintf("%s depends on itself", n.name),
		"%s: each waits for the next. Break the ring at one of %s.", ringOf(drawn), prose.And(places))
}

// reach states which names an expression may use besides those that are valid everywhere.
type reach struct {
	count, each bool // the instance of a block with count or for_each
	live        bool // live attributes of sessions
	refers      bool // sessions, which are no values
}

// nowhere is the reach of an expression that is the same for all instances.
var nowhere = reach{}

// check checks the references of an expression before it is evaluated. It evaluates what they refer to, determines
// whether they vary between the instances of a block, and reports references to names that do not exist.
func (l *loader) check(a *attribute, r reach) (varies, ok bool) {
	ok = true
	a.mentions = a.expr.Variables()
	for _, mention := range a.mentions {
		switch name := variableName(mention); {
		case name == "path.module", name == "path.root", name == "path.cwd":
		case r.count && name == "count.index", r.each && (name == "each.key" || name == "each.value"):
			varies = true
		case a.iterator != "" && (name == a.iterator+".key" || name == a.iterator+".value"):
		case r.refers && mention.RootName() == "session":
		case r.live && mention.RootName() == "session":
			ok = l.checkLive(mention) && ok
		case l.nodes[name] != nil:
			ok = l.settle(l.nodes[name]) && ok
			if name == catalogName {
				l.askable(a.expr)
			}
		default:
			ok = false
			l.unknownVariable(*a, mention, r)
		}
	}
	return varies, ok
}

// variableName returns the part of a reference that names a variable: "count.index".
func variableName(mention hcl.Traversal) string {
	if len(mention) > 1 {
		if step, ok := mention[1].(hcl.TraverseAttr); ok {
			return mention.RootName() + "." + step.Name
		}
	}
	return mention.RootName()
}

// whereNamesBelong states, for the first words of names, where they are valid.
var whereNamesBelong = map[string]string{
	"var":     "a declared variable, like var.image",
	"local":   "what a locals block declares, like local.seeds",
	"path":    "path.module, the project's folder",
	"count":   "count.index, the number of a session",
	"each":    "each.key or each.value, of an element of for_each",
	"cosplay": "cosplay.catalog, the available targets",
	"target":  "what a target block declares, like target.lab-card",
}

// unknownVariable reports a reference to a name that an expression cannot use.
func (l *loader) unknownVariable(a attribute, mention hcl.Traversal, r reach) {
	summary, detail := offInstance(a, mention)
	if summary == "" {
		summary, detail = l.offReach(a, mention, r)
	}
	l.complain(mention.SourceRange(), summary, "%s", detail)
}

// offInstance describes a name of an instance where there is none; "" for another name.
func offInstance(a attribute, mention hcl.Traversal) (summary, detail string) {
	switch full := variableName(mention); {
	case full == "count.index" && a.path == "count":
		return "count depends on itself", "count.index is known once count is. Write the number of sessions, like 7."
	case mention.RootName() == "each" && a.path == "for_each":
		return "for_each depends on itself",
			"each.key and each.value are known once for_each is. Write a map or a set, like toset([\"a\", \"b\"])."
	case full == "count.index":
		return "count.index without count", "count.index is the number of a session within a session block that has count. " +
			"Add count to the block, or write a fixed value here."
	case full == "each.key" || full == "each.value":
		return full + " without for_each", full + " is of the element that a block is repeated for: a session, import or moved block " +
			"that has for_each. Add for_each to the block, or write a fixed value here."
	}
	return "", ""
}

// offReach describes any other name that is not valid where it is.
func (l *loader) offReach(a attribute, mention hcl.Traversal, r reach) (summary, detail string) {
	const withWord = "A session is mentioned with the word session before its name. Write: session."
	name, full := mention.RootName(), variableName(mention)
	alone := len(mention) == 1
	unknown, noSession := fmt.Sprintf("unknown variable %q", full), fmt.Sprintf("%q does not name a session", a.path)
	switch belongs := whereNamesBelong[name]; {
	case advice["values"][name] != "":
		return unknown, advice["values"][name]
	case name == "session":
		return "sessions are not known yet", "Live attributes of a session are known only after apply, " +
			"so only output and check blocks can use them. Put values that both need into a local."
	case belongs != "" && full == name:
		return fmt.Sprintf("%q is not a value by itself", name), fmt.Sprintf("Write %s.", belongs)
	case name == "var":
		return unknown, l.undeclared(full, `variable %q {}`)
	case name == "local":
		return unknown, l.undeclared(full, "locals { %s = 1 }")
	case slices.Contains(l.named, name) && r.live:
		return unknown, withWord + name
	case alone && sessionReferences[a.path] != nil:
		return noSession, withWord + name
	case a.path == "depends_on":
		return noSession, referenceAdvice(a.expr)
	case name == "host" && full != name:
		return unknown, fmt.Sprintf("A host is named by a text. Write: %q", strings.TrimPrefix(full, "host."))
	case name == "env" && full != name:
		return unknown, fmt.Sprintf("The environment is asked by a function. Write: env(%q)", strings.TrimPrefix(full, "env."))
	}
	names := l.namesInReach(r)
	if alone {
		return unknown, fmt.Sprintf("A word without quotes is the name of a value, like %s. Put text in quotes: \"%s\".",
			prose.Or(prose.Few(names, maxListed)), name)
	}
	if a.iterator != "" {
		names = append([]string{a.iterator + ".key", a.iterator + ".value"}, names...)
	}
	return unknown, fmt.Sprintf("Write one of %s.%s", prose.And(prose.Few(names, maxListed)),
		didYouMean(full, append(names, "count.index", "each.key", "each.value")))
}

// undeclared describes a variable or local that no block declares; the form is that of its declaration.
func (l *loader) undeclared(full, form string) string {
	_, name, _ := strings.Cut(full, ".")
	suggestion := l.suggest(full, func() []string { return l.namesInReach(nowhere) })
	return fmt.Sprintf("Nothing declares it.%s Declare it: %s", suggestion, fmt.Sprintf(form, name))
}

func (l *loader) namesInReach(r reach) []string {
	names := slices.Collect(maps.Keys(l.nodes))
	names = append(names, "path.module")
	if r.count {
		names = append(names, "count.index")
	}
	if r.each {
		names = append(names, "each.key", "each.value")
	}
	return slices.Sorted(slices.Values(names))
}

// scopeOf returns the scope of expressions whose references have been checked.
func (l *loader) scopeOf(mentions []hcl.Traversal) *hcl.EvalContext {
	if len(mentions) == 0 {
		return l.base
	}
	roots := map[string]map[string]cty.Value{}
	for _, mention := range mentions {
		if n := l.nodes[variableName(mention)]; n != nil {
			root, name, _ := strings.Cut(n.name, ".")
			if roots[root] == nil {
				roots[root] = map[string]cty.Value{}
			}
			roots[root][name] = n.value
		}
	}
	scope := l.base.NewChild()
	scope.Variables = map[string]cty.Value{}
	for root, values := range roots {
		scope.Variables[root] = cty.ObjectVal(values)
	}
	return scope
}

// scopeOfAll returns the scope of the expressions of several attributes.
func (l *loader) scopeOfAll(attributes []attribute) *hcl.EvalContext {
	var mentions []hcl.Traversal
	for _, a := range attributes {
		mentions = append(mentions, a.mentions...)
	}
	return l.scopeOf(mentions)
}

// evaluate evaluates an attribute in a scope. If that is not possible, it reports the reason and fails.
func (l *loader) evaluate(a attribute, scope *hcl.EvalContext) (value, bool) {
	if a.bound != nil {
		scope = scope.NewChild()
		scope.Variables = a.bound
	}
	scope, diags := l.withSpellings(a.mentions, scope)
	result, more := l.budget.within(a.expr, scope)
	diags = append(diags, more...)
	for _, d := range diags {
		if !l.hasEnough(d) {
			l.report(redacted(withLive(d, a)))
		}
	}
	return value{Value: result, l: l, attribute: a, expr: a.expr, scope: scope}, !diags.HasErrors()
}

// work checks and evaluates an attribute that is the same for all instances.
func (l *loader) work(a *attribute) (value, bool) {
	if _, ok := l.check(a, nowhere); !ok {
		return value{}, false
	}
	return l.evaluate(*a, l.scopeOf(a.mentions))
}
