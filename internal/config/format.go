package config

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	given := src
	src = modern(name, src)
	laid := src
	for range settles {
		next := hclwrite.Format(laid)
		if bytes.Equal(next, laid) {
			if at, changed := otherWord(name, src, laid); changed {
				l.complain(at, fmt.Sprintf("%s cannot be laid out", name), "Without the blanks here it would mean something else, so it is left as it is. Write it in another way, with brackets for instance.")
				return given, file, l.diags
			}
			return laid, file, nil
		}
		laid = next
	}
	all := hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}
	l.complain(all, fmt.Sprintf("%s cannot be laid out", name), "Each pass of the formatter changes its layout, so cosplay left it unchanged. Simplify the placement of its comments and line breaks.")
	return given, file, l.diags
}

// modern writes a text without what earlier syntaxes of the language needed, as Terraform's fmt does: "${x}" as a whole
// value becomes x, and labels of blocks get quotes.
func modern(name string, src []byte) []byte {
	for range settles { // a value that was unwrapped may be another one to unwrap
		file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
		if diags.HasErrors() {
			return src
		}
		edits := edits(file.Body.(*hclsyntax.Body), src)
		if len(edits) == 0 {
			return src
		}
		slices.SortFunc(edits, func(a, b edit) int { return b.at.Start.Byte - a.at.Start.Byte })
		for _, e := range edits {
			src = slices.Concat(src[:e.at.Start.Byte], []byte(e.text), src[e.at.End.Byte:])
		}
	}
	return src
}

// edit replaces a part of a text.
type edit struct {
	at   hcl.Range
	text string
}

func edits(body *hclsyntax.Body, src []byte) (all []edit) {
	for _, a := range body.Attributes {
		if wrapped, is := a.Expr.(*hclsyntax.TemplateWrapExpr); is {
			if bare, ok := unwrapped(string(wrapped.SrcRange.SliceBytes(src))); ok {
				all = append(all, edit{wrapped.SrcRange, bare})
			}
		}
	}
	for _, b := range body.Blocks {
		for i, at := range b.LabelRanges {
			if src[at.Start.Byte] != '"' {
				all = append(all, edit{at, strconv.Quote(b.Labels[i])})
			}
		}
		all = append(all, edits(b.Body, src)...)
	}
	return all
}

// unwrapped returns the expression of "${x}", in parentheses if it has several lines. One with a comment stays.
func unwrapped(typed string) (bare string, ok bool) {
	inner, opens := strings.CutPrefix(typed, `"${`)
	inner, closes := strings.CutSuffix(inner, `}"`)
	inner = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(inner, "~"), "~"))
	tokens, diags := hclsyntax.LexExpression([]byte(inner), "", hcl.InitialPos)
	comment := slices.ContainsFunc(tokens, func(t hclsyntax.Token) bool { return t.Type == hclsyntax.TokenComment })
	if !opens || !closes || comment || diags.HasErrors() {
		return "", false
	}
	if strings.Contains(inner, "\n") {
		inner = "(" + inner + ")"
	}
	return inner, true
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
