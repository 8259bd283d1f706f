package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// shape says what may stand in a file or block.
type shape struct {
	what       string // "a session"
	attributes []string
	blocks     map[string]shape
	required   map[string]string // attributes that a block inside another must have, each with a sample
	repeatable bool              // a block inside another that may be there several times
	notYet     []string          // attributes and blocks
	sampleName string            // for a block with a label
}

var (
	fileShape = shape{
		what:   "a file",
		blocks: map[string]shape{"host": hostShape, "session": sessionShape},
		notYet: notYet["file"],
	}
	hostShape = shape{
		what:       "a host",
		attributes: slices.Sorted(maps.Keys(hostAttributes)),
		sampleName: "lab",
	}
	sessionShape = shape{
		what:       "a session",
		attributes: append(topLevel(sessionAttributes), "count"),
		blocks:     map[string]shape{"fit": fitShape, "volume": volumeShape, "ssh": sshShape, "limits": limitsShape},
		notYet:     notYet["session"],
		sampleName: "worker",
	}
	fitShape = shape{
		what:       "a fit block",
		attributes: within("fit.", sessionAttributes),
	}
	volumeShape = shape{
		what:       "a volume",
		attributes: within("volume.", sessionAttributes),
		required:   map[string]string{"source": `"./data"`, "target": `"/data"`},
		repeatable: true,
	}
	sshShape = shape{
		what:       "an ssh block",
		attributes: within("ssh.", sessionAttributes),
	}
	limitsShape = shape{
		what:       "a limits block",
		attributes: within("limits.", sessionAttributes),
	}
)

// notYet is all that the language knows and cosplay cannot do yet, by where it
// stands. What can be done is taken out of here.
var notYet = map[string][]string{
	"file":     {"cosplay", "variable", "locals", "target", "output", "check", "moved", "removed", "import"},
	"session":  {"for_each", "slice", "sharing", "lifecycle", "strict", "cap", "ttl", "idle_timeout"},
	"variable": {"var", "local", "each", "session"},
	"function": {"file", "env"},
}

func topLevel[T any](table map[string]T) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(table)), func(path string) bool { return strings.Contains(path, ".") })
}

func within[T any](prefix string, table map[string]T) []string {
	var names []string
	for _, path := range slices.Sorted(maps.Keys(table)) {
		if name, ok := strings.CutPrefix(path, prefix); ok {
			names = append(names, name)
		}
	}
	return names
}

func (s shape) hasBlock(kind string) bool {
	_, ok := s.blocks[kind]
	return ok
}

// attribute is one assignment. Its path names it inside its top-level block:
// "target", "fit.tolerance".
type attribute struct {
	path  string
	nth   int // which of the blocks that can be there several times it is in, from 1; else 0
	expr  hcl.Expression
	whole hcl.Range // from the name to the end of the value
}

// key tells an attribute from all others of its top-level block.
func (a attribute) key() string {
	if a.nth == 0 {
		return a.path
	}
	block, name, _ := strings.Cut(a.path, ".")
	return fmt.Sprintf("%s[%d].%s", block, a.nth-1, name)
}

// attributes returns what a block assigns, that of blocks inside it included,
// in the order of the file, and tells what does not belong there. It is the one
// place that knows in which of its syntaxes HCL was written.
func (l *loader) attributes(body *hclsyntax.Body, s shape, prefix string) []attribute {
	all := make([]attribute, 0, len(body.Attributes))
	for _, a := range body.Attributes {
		if !slices.Contains(s.attributes, a.Name) {
			l.unexpected("attribute", a.Name, s, a.NameRange, a.SrcRange)
			continue
		}
		all = append(all, attribute{path: prefix + a.Name, expr: a.Expr, whole: a.SrcRange})
	}
	seen := map[string]hcl.Range{}
	nth := map[string]int{}
	for _, b := range body.Blocks {
		inner, known := s.blocks[b.Type]
		first, again := seen[b.Type]
		switch {
		case !known:
			l.unexpected("block", b.Type, s, b.TypeRange, b.DefRange())
		case again && !inner.repeatable:
			l.complain(b.TypeRange, b.DefRange(), fmt.Sprintf("second %s block", b.Type),
				"%s has one %s block; the first is at line %d. Put everything into one.", capital(s.what), b.Type, first.Start.Line)
		case len(b.Labels) > 0:
			l.complain(b.LabelRanges[0], b.DefRange(), fmt.Sprintf("%s has no name", b.Type), "Write it as: %s {", b.Type)
		case inner.repeatable:
			nth[b.Type]++
			all = append(all, l.nthAttributes(b, inner, nth[b.Type])...)
		default:
			all = append(all, l.attributes(b.Body, inner, b.Type+".")...)
		}
		seen[b.Type] = b.DefRange()
	}
	slices.SortFunc(all, func(a, b attribute) int { return a.whole.Start.Byte - b.whole.Start.Byte })
	return all
}

// nthAttributes are those of one of the blocks that can be there several times,
// which has to be whole in itself.
func (l *loader) nthAttributes(b *hclsyntax.Block, s shape, nth int) []attribute {
	attributes := l.attributes(b.Body, s, b.Type+".")
	for i := range attributes {
		attributes[i].nth = nth
	}
	for name, sample := range s.required {
		if _, ok := b.Body.Attributes[name]; !ok {
			l.complain(b.TypeRange, b.DefRange(), fmt.Sprintf("%q of the %s is missing", name, b.Type),
				"%s needs %s. Add a line like: %s = %s", capital(s.what), and(slices.Sorted(maps.Keys(s.required))), name, sample)
		}
	}
	return attributes
}

// unexpected tells of an attribute or block that a shape has no room for.
func (l *loader) unexpected(kind, name string, s shape, at, context hcl.Range) {
	switch {
	case kind == "attribute" && len(s.attributes) == 0 && !s.hasBlock(name):
		l.complain(at, context, fmt.Sprintf("%q stands outside of any block", name),
			"%s Put it into the one that it is meant for.", s.describe())
	case slices.Contains(s.notYet, name):
		l.complain(at, context, fmt.Sprintf("%q is not yet part of cosplay", name),
			"A later version will have it. Leave it out for now.")
	case kind == "attribute" && s.hasBlock(name):
		l.complain(at, context, fmt.Sprintf("%q is a block", name),
			"Write it without the equals sign: %s.", s.blocks[name].sample(name))
	case kind == "block" && slices.Contains(s.attributes, name):
		l.complain(at, context, fmt.Sprintf("%q is an attribute", name),
			"Write it with an equals sign: %s = ...", name)
	default:
		candidates := slices.Concat(s.attributes, slices.Sorted(maps.Keys(s.blocks)), s.notYet)
		l.complain(at, context, fmt.Sprintf("unknown %s %q", kind, name),
			"%s%s", s.describe(), didYouMean(name, candidates))
	}
}

func (s shape) sample(name string) string {
	if s.sampleName != "" {
		name = fmt.Sprintf("%s %q", name, s.sampleName)
	}
	return name + " { ... }"
}

// describe lists what a shape has room for.
func (s shape) describe() string {
	var has []string
	if len(s.attributes) > 0 {
		has = append(has, "the attributes "+and(slices.Sorted(slices.Values(s.attributes))))
	}
	switch names := slices.Sorted(maps.Keys(s.blocks)); len(names) {
	case 0:
	case 1:
		has = append(has, "the block "+names[0])
	default:
		has = append(has, "the blocks "+and(names))
	}
	return capital(s.what) + " has " + strings.Join(has, ", and ") + "."
}
