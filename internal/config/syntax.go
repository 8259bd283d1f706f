package config

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
)

// block is one block as it was written, in whichever syntax.
type block struct {
	kind        string
	labels      []string
	kindRange   hcl.Range
	labelRanges []hcl.Range
	header      hcl.Range // from the kind to the last label
	body        body
}

// written is one assignment as it was written.
type written struct {
	name  string
	at    hcl.Range // of the name
	whole hcl.Range // from the name to the end of the value
	expr  hcl.Expression
}

// body is what stands in a file or block. Which syntax it was written in only
// its implementations know.
type body interface {
	// read returns all that stands there, what the schema does not know included.
	// In JSON only the schema tells a block from an attribute.
	read(l *loader, schema *Block) ([]written, []block)
}

// nativeBody is a body in HCL's own syntax. What is behind the bytes that are
// beyond doubt is left out.
type nativeBody struct {
	*hclsyntax.Body
	sound int
}

func (b nativeBody) read(*loader, *Block) ([]written, []block) {
	attributes := make([]written, 0, len(b.Attributes))
	for _, a := range b.Attributes {
		if r := a.Expr.Range(); a.SrcRange.End.Byte <= b.sound && r.Start.Byte < r.End.Byte {
			attributes = append(attributes, written{name: a.Name, at: a.NameRange, whole: a.SrcRange, expr: a.Expr})
		}
	}
	slices.SortFunc(attributes, compareWritten)
	blocks := make([]block, 0, len(b.Blocks))
	for _, inner := range b.Blocks {
		if isWhole := inner.OpenBraceRange.Start.Byte >= inner.DefRange().End.Byte; isWhole && inner.Range().End.Byte <= b.sound {
			blocks = append(blocks, block{kind: inner.Type, labels: inner.Labels, kindRange: inner.TypeRange, labelRanges: inner.LabelRanges,
				header: inner.DefRange(), body: nativeBody{inner.Body, b.sound}})
		}
	}
	return attributes, blocks
}

// jsonBody is a body in HCL's JSON syntax.
type jsonBody struct{ hcl.Body }

func (b jsonBody) read(l *loader, schema *Block) ([]written, []block) {
	var (
		wanted hcl.BodySchema
		blocks []block
	)
	for _, inner := range schema.Blocks {
		header := hcl.BlockHeaderSchema{Type: inner.Name}
		if inner.Label != "" {
			header.LabelNames = []string{"name"}
		}
		wanted.Blocks = append(wanted.Blocks, header)
	}
	content, rest, diags := b.PartialContent(&wanted)
	attributes, more := rest.JustAttributes()
	if diags.HasErrors() {
		more = nil // they are the same once more
	}
	for _, d := range slices.Concat(diags, more) {
		l.report(d)
	}
	for _, inner := range content.Blocks {
		header := inner.TypeRange
		if len(inner.LabelRanges) > 0 {
			header = inner.LabelRanges[0]
		}
		blocks = append(blocks, block{kind: inner.Type, labels: inner.Labels, kindRange: inner.TypeRange, labelRanges: inner.LabelRanges,
			header: header, body: jsonBody{inner.Body}})
	}
	all := make([]written, 0, len(attributes))
	for _, a := range attributes {
		all = append(all, written{name: a.Name, at: a.NameRange, whole: a.Range, expr: a.Expr})
	}
	slices.SortFunc(all, compareWritten)
	return all, blocks
}

func compareWritten(a, b written) int { return cmp.Compare(a.whole.Start.Byte, b.whole.Start.Byte) }

// parse reads one file, in the syntax that its name tells, and returns the
// blocks worth a look. Behind a syntax error the parser guesses, and what it
// guesses wrong would be told as mistakes that nobody made: there nothing is
// judged.
func (l *loader) parse(name string, src []byte) []block {
	all := l.parseBody(name, src)
	if all == nil {
		return nil
	}
	attributes, blocks := all.read(l, &fileSchema)
	for _, a := range attributes {
		l.unexpected("attribute", a.name, &fileSchema, a.at, a.whole)
	}
	return slices.DeleteFunc(blocks, func(b block) bool {
		known := fileSchema.block(b.kind) != nil
		if !known {
			l.unexpected("block", b.kind, &fileSchema, b.kindRange, b.header)
		}
		return !known
	})
}

// parseBody returns what stands in a file; nil where that cannot be told.
func (l *loader) parseBody(name string, src []byte) body {
	if !isJSON(name, src) {
		if diags := tooDeep(name, src); diags.HasErrors() {
			l.files[name], l.partial = &hcl.File{Bytes: src}, true
			l.report(diags[0])
			return nil
		}
		file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
		l.files[name] = file
		return nativeBody{file.Body.(*hclsyntax.Body), l.reportSyntax(diags, src)}
	}
	if wrong := jsonSyntax(src); wrong != nil {
		l.files[name], l.partial = &hcl.File{Bytes: src}, true
		l.complainJSON(name, src, wrong)
		return nil
	}
	file, diags := json.Parse(src, name)
	if file == nil {
		file = &hcl.File{Bytes: src}
	}
	l.files[name] = file
	for _, d := range diags[:min(1, len(diags))] { // what follows from it is no news
		l.report(d)
	}
	if diags.HasErrors() {
		l.partial = true
		return nil
	}
	return jsonBody{file.Body}
}

// maxDepth is how many brackets may be open at a time: the HCL library's parser
// calls itself for each, until its stack is full.
const maxDepth = 10_000

// tooDeep tells of the bracket that is one too many; nothing where there is none.
func tooDeep(name string, src []byte) hcl.Diagnostics {
	depth := 0
	for i, c := range src {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(0, depth-1)
		}
		if depth > maxDepth {
			at := oneCharacter(name, src, i)
			return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "too many brackets within each other", Subject: &at, Context: &at,
				Detail: fmt.Sprintf("%d are open here. Close them, or put what is in them into locals.", maxDepth)}}
		}
	}
	return nil
}

// parseExpression reads an expression.
func parseExpression(src, name string) (hcl.Expression, hcl.Diagnostics) {
	if diags := tooDeep(name, []byte(src)); diags.HasErrors() {
		return nil, diags
	}
	return hclsyntax.ParseExpression([]byte(src), name, hcl.InitialPos)
}

// isJSON tells the syntax by the file's name; what has no name that tells, like
// standard input, by its first character, which in HCL's own syntax is no brace.
func isJSON(name string, src []byte) bool {
	telling := strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".hcl")
	return strings.HasSuffix(name, ".json") || !telling && bytes.HasPrefix(bytes.TrimSpace(src), []byte("{"))
}

// Summaries of the parser's that call for more than being passed on.
const (
	attributeRedefined = "Attribute redefined"       // leaves the rest of the file well understood
	quoteNotClosed     = "Invalid multi-line string" // turns the rest of the file inside out
	wrongCharacter     = "Invalid character"         // and so is what follows on its line

	textNotClosed = "Unterminated template string" // told where the file ends
)

// aboutHeredoc makes a diagnostic that stands where the file ends one about the
// heredoc that it ends in, if it does.
func aboutHeredoc(d *hcl.Diagnostic, src []byte) {
	if at, open := openHeredoc(src, d.Subject.Filename); open {
		d.Subject, d.Context = &at, &at
		d.Summary, d.Detail = "heredoc without its end", fmt.Sprintf("No line below is %s and nothing else. Add it.", strings.TrimLeft(string(at.SliceBytes(src)), "<-"))
	}
}

// openHeredoc finds the heredoc that a file ends in.
func openHeredoc(src []byte, name string) (at hcl.Range, open bool) {
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOHeredoc:
			word := bytes.TrimRight(t.Bytes, "\r\n")
			at, open = t.Range, true
			at.End = hcl.Pos{Line: at.Start.Line, Column: at.Start.Column + utf8.RuneCount(word), Byte: at.Start.Byte + len(word)}
		case hclsyntax.TokenCHeredoc:
			open = false
		}
	}
	return at, open
}

// otherQuotes are what people put around a text instead of double quotes.
var otherQuotes = regexp.MustCompile("^(?:'([^'\n]*)'?|`([^`\n]*)`?|[“”„]([^“”\n]*)[“”]?|‘([^’\n]*)’?)")

// tellCharacter tells of a character that the language does not have.
func (l *loader) tellCharacter(d *hcl.Diagnostic, src []byte) {
	m := otherQuotes.FindSubmatch(src[d.Subject.Start.Byte:])
	if m == nil {
		d.Detail += " Remove it."
		l.report(d)
		return
	}
	text := bytes.Join(m[1:], nil) // one of them
	l.complain(*d.Subject, *d.Subject, "a text is in double quotes", "Write: %q", text)
}

// reportSyntax tells the parser's complaints about a file and returns how many
// bytes at its start are beyond doubt.
func (l *loader) reportSyntax(diags hcl.Diagnostics, src []byte) (sound int) {
	sound = len(src)
	wrongLines := map[int]bool{} // with a wrong character, of which the rest follows
	for _, d := range diags {
		if d.Summary == attributeRedefined {
			d.Summary = fmt.Sprintf("%q is there twice", d.Subject.SliceBytes(src))
			d.Detail += " Remove one of the two."
			l.report(d)
			continue
		}
		l.partial = true
		if d.Summary == textNotClosed {
			aboutHeredoc(d, src)
		}
		sound = min(sound, d.Subject.Start.Byte)
		if strings.HasPrefix(strings.TrimPrefix(string(d.Subject.SliceBytes(src)), "\r"), "\n") {
			d.Subject.End = d.Subject.Start // the end of a line, not the start of the next
		}
		line := d.Subject.Start.Line
		if wrongLines[line] {
			continue
		}
		if d.Summary == wrongCharacter || otherQuotes.Match(src[d.Subject.Start.Byte:]) {
			wrongLines[line] = true
			l.tellCharacter(d, src)
			continue
		}
		if d.Summary == quoteNotClosed {
			l.complain(*d.Subject, *d.Subject, "quote without its end", "A text in quotes ends on the line that it starts on. Add the closing quote.")
			break
		}
		l.report(d)
	}
	return sound
}
