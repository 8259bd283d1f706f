package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// grouped are the sessions of one block: one, or the instances of count or for_each.
type grouped struct{ keys []resource.Key }

func instancesOf(drafts []Draft) grouped {
	return grouped{prose.Each(drafts, func(d Draft) resource.Key { return d.Session.Address.Key })}
}

func (g grouped) kind() resource.KeyKind { return g.keys[0].Kind }

// count is that of a block with the highest index.
func (g grouped) count() int {
	most := 0
	for _, key := range g.keys {
		most = max(most, key.Index+1)
	}
	return most
}

// missing says which instances of a count do not exist.
func (g grouped) missing(name string) []string {
	var lost []string
	for i := range g.count() {
		if g.kind() == resource.ByCount && !slices.ContainsFunc(g.keys, func(k resource.Key) bool { return k.Index == i }) {
			lost = append(lost, fmt.Sprintf("%s[%d]", name, i))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Not found: %s. The next apply creates what count includes.", strings.Join(prose.Few(lost, maxListed), ", "))}
}

// multiply writes count or for_each.
func (g grouped) multiply(session *hclwrite.Body) {
	switch g.kind() {
	case resource.Single:
	case resource.ByCount:
		session.SetAttributeValue("count", cty.NumberIntVal(int64(g.count())))
	case resource.ByEach:
		keys := texts(prose.Each(g.keys, func(k resource.Key) string { return k.Each }))
		session.SetAttributeRaw("for_each", hclwrite.TokensForFunctionCall("toset", hclwrite.TokensForValue(keys)))
	}
}

// tokens are the value of an attribute: that of all instances, or the one of each.
func (g grouped) tokens(values []cty.Value) hclwrite.Tokens {
	if !slices.ContainsFunc(values, func(v cty.Value) bool { return !v.RawEquals(values[0]) }) {
		return hclwrite.TokensForValue(values[0])
	}
	var (
		all   cty.Value
		which hcl.Traversal
	)
	if g.kind() == resource.ByCount {
		list := make([]cty.Value, g.count())
		for i := range list {
			list[i] = values[0] // also of an instance that does not exist
		}
		for i, key := range g.keys {
			list[key.Index] = values[i]
		}
		all, which = cty.TupleVal(list), hcl.Traversal{hcl.TraverseRoot{Name: "count"}, hcl.TraverseAttr{Name: "index"}}
	} else {
		named := map[string]cty.Value{}
		for i, key := range g.keys {
			named[key.Each] = values[i]
		}
		all, which = cty.ObjectVal(named), hcl.Traversal{hcl.TraverseRoot{Name: "each"}, hcl.TraverseAttr{Name: "key"}}
	}
	tokens := hclwrite.TokensForValue(all)
	tokens = append(tokens, &hclwrite.Token{Type: hclsyntax.TokenOBrack, Bytes: []byte("[")})
	tokens = append(tokens, hclwrite.TokensForTraversal(which)...)
	return append(tokens, &hclwrite.Token{Type: hclsyntax.TokenCBrack, Bytes: []byte("]")})
}

// UsualSpec is the container of a session whose block says nothing of it.
func UsualSpec() resource.ContainerSpec {
	spec := defaultSpec
	spec.Sudo = true
	return spec
}
