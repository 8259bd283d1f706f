package config

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// readLocals registers the names of a locals block. Their values are evaluated when they are needed.
func (l *loader) readLocals(b *hcl.Block) {
	l.unnamed(b)
	said := l.read(b, &localsSchema)
	for i := range said.attributes {
		a := &said.attributes[i]
		name := "local." + a.path
		if !hclsyntax.ValidIdentifier(a.path) {
			l.complain(a.whole, fmt.Sprintf("%q cannot be the name of a local", a.path), "A name starts with a letter and continues with letters, digits, _ and -, like seeds.")
			continue
		}
		if first := l.nodes[name]; first != nil {
			l.complain(a.whole, fmt.Sprintf("%s is there twice", name),
				"It is declared at %s as well. Give this one another name, or remove one of the two.", place(first.at))
			continue
		}
		l.nodes[name] = &node{name: name, at: a.whole, work: func() (cty.Value, bool) {
			v, ok := l.work(a)
			return v.Value, ok
		}}
	}
}

// settleAll evaluates every variable and local, so that mistakes in unused ones are reported as well.
func (l *loader) settleAll() {
	for _, name := range sortedKeys(l.nodes) {
		if name != catalogName { // the catalog is known to be right, and large
			l.settle(l.nodes[name])
		}
	}
}
