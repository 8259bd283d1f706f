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
	state nodeState
	value cty.Value
	ok    bool // if false, the reason has been reported
}

type nodeState int

const (
	untouched nodeState = iota
	underWay
	settled
)

// maxChain limits how many nodes wait for each other, since each needs space on the stack.
const maxChain = 50_000

// settle evaluates a node and everything that it depends on.
func (l *loader) settle(n *node) bool {
	switch n.state {
	case settled:
		return n.ok
	case underWay:
		l.reportCycle(n)
		return false
	case untouched:
	}
	if len(l.chain) == maxChain {
		l.complain(n.at, n.at, exceeds, "%d values wait for each other here, the limit of cosplay. Make the chain of locals shorter.", maxChain)
		n.state = settled
		return false
	}
	n.state = underWay
	l.chain = append(l.chain, n)
	n.value, n.ok = n.work()
	l.chain = l.chain[:len(l.chain)-1]
	n.state = settled
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
			places = append(places, fmt.Sprintf("%s at %s line %d", one.name, one.at.Filename, one.at.Start.Line))
		}
	}
	drawn = append(drawn, n.name)
	if len(ring) > maxListed {
		places = places[:maxListed]
	}
	if len(ring) == 1 {
		l.complain(n.at, n.at, fmt.Sprintf("%s depends on itself", n.name), "To know it, it would have to be known. Write a value that does not mention %s.", n.name)
		return
	}
	l.complain(n.at, n.at, fmt.Sprintf("%s depends on itself", n.name),
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
			ok = l.checkLive(*a, mention) && ok
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

func (l *loader) unknownVariable(a attribute, mention hcl.Traversal, r reach) {
	name, at := mention.RootName(), mention.SourceRange()
	full := variableName(mention)
	belongs, knownRoot := whereNamesBelong[name]
	instead, terraforms := advice["values"][name]
	switch {
	case terraforms:
		l.complain(at, a.whole, fmt.Sprintf("unknown variable %q", full), "%s", instead)
	case full == "count.index" && a.path == "count":
		l.complain(at, a.whole, "count depends on itself",
			"count.index is known once count is. Write the number of sessions, like 7.")
	case name == "each" && a.path == "for_each":
		l.complain(at, a.whole, "for_each depends on itself",
			"each.key and each.value are known once for_each is. Write a map or a set, like toset([\"a\", \"b\"]).")
	case full == "count.index":
		l.complain(at, a.whole, "count.index without count",
			"count.index is the number of a session within a session block that has count. Add count to the block, or write a fixed value here.")
	case full == "each.key" || full == "each.value":
		l.complain(at, a.whole, fmt.Sprintf("%s without for_each", full),
			"%s is of the element that a block is repeated for: a session, import or moved block that has for_each. Add for_each to the block, or write a fixed value here.", full)
	case name == "session":
		l.complain(at, a.whole, "sessions are not known yet",
			"Live attributes of a session are known only after apply, so only output and check blocks can use them. Put values that both need into a local.")
	case knownRoot && full == name:
		l.complain(at, a.whole, fmt.Sprintf("%q is not a value by itself", name),
			"Write %s.", belongs)
	case name == "var" || name == "local":
		l.undeclared(a, mention, full)
	case slices.Contains(l.named, name) && r.live:
		l.complain(at, a.whole, fmt.Sprintf("unknown variable %q", full),
			"A session is mentioned with the word session before its name. Write: session.%s", name)
	case len(mention) == 1 && sessionReferences[a.path] != nil:
		l.complain(at, a.whole, fmt.Sprintf("%q does not name a session", a.path),
			"A session is mentioned with the word session before its name. Write: session.%s", name)
	case a.path == "depends_on":
		l.complain(at, a.whole, fmt.Sprintf("%q does not name a session", a.path), "%s", referenceAdvice(a.expr))
	case name == "host" && full != name:
		l.complain(at, a.whole, fmt.Sprintf("unknown variable %q", full), "A host is named by a text. Write: %q", strings.TrimPrefix(full, "host."))
	case name == "env" && full != name:
		l.complain(at, a.whole, fmt.Sprintf("unknown variable %q", full), "The environment is asked by a function. Write: env(%q)", strings.TrimPrefix(full, "env."))
	case len(mention) == 1:
		l.complain(at, a.whole, fmt.Sprintf("unknown variable %q", name),
			"A word without quotes is the name of a value, like %s. Put text in quotes: \"%s\".", prose.Or(prose.Few(l.namesInReach(r), maxListed)), name)
	default:
		names := l.namesInReach(r)
		if a.iterator != "" {
			names = append([]string{a.iterator + ".key", a.iterator + ".value"}, names...)
		}
		l.complain(at, a.whole, fmt.Sprintf("unknown variable %q", full),
			"Write one of %s.%s", prose.And(prose.Few(names, maxListed)), didYouMean(full, append(names, "count.index", "each.key", "each.value")))
	}
}

func (l *loader) undeclared(a attribute, mention hcl.Traversal, full string) {
	root, name, _ := strings.Cut(full, ".")
	declare := fmt.Sprintf("Declare it: variable %q {}", name)
	if root == "local" {
		declare = fmt.Sprintf("Declare it: locals { %s = 1 }", name)
	}
	l.complain(mention.SourceRange(), a.whole, fmt.Sprintf("unknown variable %q", full),
		"Nothing declares it.%s %s", l.suggest(full, func() []string { return l.namesInReach(nowhere) }), declare)
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
