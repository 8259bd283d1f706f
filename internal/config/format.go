package config

import (
	"bytes"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// settles limits how often a text is formatted. The library needs a second pass for few texts; no known text needs a
// third.
const settles = 8

// Format formats a file so that formatting the result again changes nothing. If a file has a syntax error, Format
// returns it unchanged, with the diagnostics.
func Format(name string, src []byte) ([]byte, *hcl.File, hcl.Diagnostics) {
	l := newLoader(Options{})
	if len(src) > MaxSource {
		return src, &hcl.File{}, hcl.Diagnostics{tooLarge(name)}
	}
	if diags := tooDeep(name, src, hcl.InitialPos, hclsyntax.LexConfig); diags.HasErrors() {
		return src, &hcl.File{Bytes: src}, diags
	}
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if l.reportSyntax(diags, src); l.diags.HasErrors() {
		return src, file, l.diags
	}
	laid := src
	for range settles {
		next := hclwrite.Format(laid)
		if bytes.Equal(next, laid) {
			if at, changed := otherWord(name, src, laid); changed {
				l.complain(at, at, fmt.Sprintf("%s cannot be laid out", name), "Without the blanks here it would mean something else, so it is left as it is. Write it in another way, with brackets for instance.")
				return src, file, l.diags
			}
			return laid, file, nil
		}
		laid = next
	}
	all := hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}
	l.complain(all, all, fmt.Sprintf("%s cannot be laid out", name), "Each pass of the formatter changes its layout, so cosplay left it unchanged. Simplify the placement of its comments and line breaks.")
	return src, file, l.diags
}

// otherWord returns the first word of a text that formatting changes: the library joins "2. 3" to a number.
func otherWord(name string, src, laid []byte) (at hcl.Range, changed bool) {
	before, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	after, _ := hclsyntax.LexConfig(laid, name, hcl.InitialPos)
	word := func(t hclsyntax.Token) []byte { return bytes.TrimRight(t.Bytes, " \t") } // a comment may end in blanks
	for i, token := range before {
		if i >= len(after) || !bytes.Equal(word(token), word(after[i])) {
			return token.Range, true
		}
	}
	return hcl.Range{}, len(after) > len(before)
}
