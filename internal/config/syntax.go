package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"

	"cosplay/internal/pattern"
)

// body is the content of a file or block. Only its implementations know the syntax.
type body interface {
	hcl.Body

	// read returns the whole content in the order of the file, including what the schema does not have. In JSON, only the
	// schema distinguishes a block from an attribute. The range of a block's definition ends before its content.
	read(r *reporter, schema *Block) ([]*hcl.Attribute, hcl.Blocks)
}

// nativeBody is a body in HCL's native syntax, up to the first byte that the parser did not understand reliably.
type nativeBody struct {
	*hclsyntax.Body
	sound int
}

func (b nativeBody) read(*reporter, *Block) ([]*hcl.Attribute, hcl.Blocks) {
	attributes := make([]*hcl.Attribute, 0, len(b.Attributes))
	for _, a := range b.Attributes {
		if r := a.Expr.Range(); a.SrcRange.End.Byte <= b.sound && r.Start.Byte < r.End.Byte {
			attributes = append(attributes, a.AsHCLAttribute())
		}
	}
	blocks := make(hcl.Blocks, 0, len(b.Blocks))
	for _, inner := range b.Blocks {
		one := inner.AsHCLBlock()
		if isWhole := inner.OpenBraceRange.Start.Byte >= one.DefRange.End.Byte; isWhole && inner.Range().End.Byte <= b.sound {
			one.Body = nativeBody{inner.Body, b.sound}
			blocks = append(blocks, one)
		}
	}
	return inFileOrder(attributes), blocks
}

// jsonBody is a body in HCL's JSON syntax. A file can be a list of objects, which count as one; names are their
// properties.
type jsonBody struct {
	hcl.Body
	isList bool
	names  []string
}

func (b jsonBody) read(r *reporter, schema *Block) ([]*hcl.Attribute, hcl.Blocks) {
	var wanted hcl.BodySchema
	for _, inner := range schema.Blocks {
		header := hcl.BlockHeaderSchema{Type: inner.Name}
		if inner.Label != "" {
			header.LabelNames = []string{"name"}
		}
		wanted.Blocks = append(wanted.Blocks, header)
	}
	if len(schema.dynamicNames()) > 0 {
		wanted.Blocks = append(wanted.Blocks, hcl.BlockHeaderSchema{Type: dynamicWord, LabelNames: []string{"kind"}})
	}
	for _, name := range b.names { // without a schema, the HCL library reads no attributes from a list of objects
		if !slices.ContainsFunc(wanted.Blocks, func(inner hcl.BlockHeaderSchema) bool { return inner.Type == name }) {
			wanted.Attributes = append(wanted.Attributes, hcl.AttributeSchema{Name: name})
		}
	}
	content, rest, diags := b.PartialContent(&wanted)
	attributes, more := content.Attributes, hcl.Diagnostics(nil)
	if !b.isList {
		attributes, more = rest.JustAttributes()
	}
	if diags.HasErrors() {
		more = nil // the same diagnostics again
	}
	for _, d := range slices.Concat(diags, more) {
		r.report(d)
	}
	for _, inner := range content.Blocks {
		inner.DefRange, inner.Body = inner.TypeRange, jsonBody{Body: inner.Body}
		if len(inner.LabelRanges) > 0 {
			inner.DefRange = inner.LabelRanges[0]
		}
	}
	return inFileOrder(slices.Collect(maps.Values(attributes))), content.Blocks
}

func inFileOrder(attributes []*hcl.Attribute) []*hcl.Attribute {
	slices.SortFunc(attributes, func(a, b *hcl.Attribute) int { return cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte) })
	return attributes
}

// parse reads one file in the syntax that its name indicates, and returns the blocks that can be evaluated. After a
// syntax error the parser guesses, and a wrong guess would produce misleading diagnostics, so later blocks are
// dropped.
func (r *reporter) parse(name string, src []byte) hcl.Blocks {
	all := r.parseBody(name, src)
	if all == nil {
		return nil
	}
	attributes, blocks := all.read(r, &fileSchema)
	for _, a := range attributes {
		r.unexpected("attribute", a.Name, &fileSchema, a.NameRange)
	}
	return slices.DeleteFunc(blocks, func(b *hcl.Block) bool {
		known := fileSchema.block(b.Type) != nil
		if !known {
			r.unexpected("block", b.Type, &fileSchema, b.TypeRange)
		}
		return !known
	})
}

// parseBody returns the content of a file; nil if it cannot be determined.
func (r *reporter) parseBody(name string, src []byte) body {
	refused := func(d *hcl.Diagnostic) body {
		r.files[name], r.partial = &hcl.File{Bytes: src}, true
		r.report(d)
		return nil
	}
	if r.sources += len(src); r.sources > MaxSource {
		r.partial = true
		r.files[name] = &hcl.File{} // so that no diagnostic shows it
		r.report(tooLarge(name))
		return nil
	}
	if !isJSON(name, src) {
		if file, ok := parsePieces(name, src); ok {
			r.files[name] = file
			return nativeBody{file.Body.(*hclsyntax.Body), len(src)}
		}
		if diags := tooDeep(name, src, hcl.InitialPos, hclsyntax.LexConfig); diags.HasErrors() {
			return refused(diags[0])
		}
		file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
		r.files[name] = file
		return nativeBody{file.Body.(*hclsyntax.Body), r.reportSyntax(diags, src)}
	}
	if d := tooDeepInJSON(name, src); d != nil {
		return refused(d)
	}
	if wrong := jsonSyntax(src); wrong != nil {
		r.files[name], r.partial = &hcl.File{Bytes: src}, true
		r.complainJSON(name, src, wrong)
		return nil
	}
	file, diags := json.Parse(src, name)
	r.files[name] = file
	if diags.HasErrors() {
		r.partial = true
		r.report(diags[0]) // the others only follow from it
		return nil
	}
	return jsonFile(file.Body, src)
}

func parseExpression(src, name string) (hcl.Expression, hcl.Diagnostics) {
	if diags := tooDeep(name, []byte(src), hcl.InitialPos, hclsyntax.LexExpression); diags.HasErrors() {
		return nil, diags
	}
	return hclsyntax.ParseExpression([]byte(src), name, hcl.InitialPos)
}

// isJSON determines the syntax from the file's name. For a file without an extension, like standard input, the first
// character decides: HCL's native syntax does not start with a brace.
func isJSON(name string, src []byte) bool {
	telling := strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".hcl")
	return strings.HasSuffix(name, ".json") || !telling && bytes.HasPrefix(bytes.TrimSpace(src), []byte("{"))
}

// Summaries of the parser's diagnostics that need special treatment.
const (
	attributeRedefined = "Attribute redefined"       // the rest of the file is parsed correctly
	quoteNotClosed     = "Invalid multi-line string" // the rest of the file is parsed wrongly
	wrongCharacter     = "Invalid character"         // the rest of the line is parsed wrongly, too

	textNotClosed = "Unterminated template string" // reported at the end of the file
)

// aboutHeredoc moves a diagnostic at the end of the file to the unterminated heredoc that caused it, if there is one.
func aboutHeredoc(d *hcl.Diagnostic, src []byte) {
	if at, open := openHeredoc(src, d.Subject.Filename); open {
		d.Subject, d.Context = &at, &at
		d.Summary, d.Detail = "heredoc without its end", fmt.Sprintf("No line below is %s and nothing else. Add it.", strings.TrimLeft(string(at.SliceBytes(src)), "<-"))
	}
}

// openHeredoc finds an unterminated heredoc at the end of a file.
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

// escapable is a character that %q writes as HCL does.
func escapable(r rune) rune {
	if r == utf8.RuneError || r == 0x7f || r < ' ' && !strings.ContainsRune("\t\n\r", r) {
		return '?'
	}
	return r
}

// otherQuotes are quotes that users type instead of double quotes.
var otherQuotes = pattern.Of("^(?:'([^'\n]*)'?|`([^`\n]*)`?|[“”„]([^“”\n]*)[“”]?|‘([^’\n]*)’?)")

// shellName is a variable as shells write it.
var shellName = pattern.Of(`^\$([A-Za-z_]\w*)`)

// invisible names the character at the start of a source; "" if it is visible.
func invisible(src []byte) string {
	c, size := utf8.DecodeRune(src)
	names := map[rune]string{0: "a NUL byte", 0xFEFF: "a byte order mark", 0xA0: "a no-break space", 0x200B: "a zero-width space"}
	switch {
	case c == utf8.RuneError && size == 1:
		return fmt.Sprintf("the byte 0x%02X, which is not UTF-8", src[0])
	case names[c] != "":
		return fmt.Sprintf("%s (U+%04X)", names[c], c)
	case size > 0 && !unicode.IsGraphic(c) || unicode.IsSpace(c) && c > 0x7F:
		return fmt.Sprintf("the character U+%04X", c)
	}
	return ""
}

// reportCharacter reports a character that is not part of the language.
func (r *reporter) reportCharacter(d *hcl.Diagnostic, src []byte) {
	at, rest := *d.Subject, src[d.Subject.Start.Byte:]
	quoted, shell := otherQuotes().FindSubmatch(rest), shellName().FindSubmatch(rest)
	switch {
	case quoted != nil:
		r.complain(at, "a text is in double quotes", "Write: %q", bytes.Map(escapable, bytes.Join(quoted[1:], nil))) // one of them
	case shell != nil:
		r.complain(at, "a dollar sign outside of a text",
			"Write var.%s for a variable of the configuration, or env(%q) for one of the environment.", shell[1], shell[1])
	case bytes.HasPrefix(rest, []byte("${")):
		inner, _, _ := bytes.Cut(rest[2:], []byte("}"))
		r.complain(at, "a dollar sign outside of a text", "Only a text in quotes needs ${ and }. Write: %s", bytes.TrimSpace(inner))
	case invisible(rest) != "":
		r.complain(at, "invisible character", "Here is %s, which no editor shows. Remove it, or write this line again.", invisible(rest))
	default:
		d.Detail += " Remove it."
		r.report(d)
	}
}

// reportSyntax reports the parser's diagnostics about a file and returns how many bytes at its start were parsed
// reliably.
func (r *reporter) reportSyntax(diags hcl.Diagnostics, src []byte) (sound int) {
	sound = len(src)
	wrongLines := map[int]bool{} // with a wrong character; other diagnostics on the line follow from it
	for _, d := range diags {
		if d.Summary == attributeRedefined {
			d.Summary = fmt.Sprintf("%q is there twice", d.Subject.SliceBytes(src))
			d.Detail += " Remove one of the two."
			r.report(d)
			continue
		}
		r.partial = true
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
		if d.Summary == wrongCharacter || otherQuotes().Match(src[d.Subject.Start.Byte:]) {
			wrongLines[line] = true
			r.reportCharacter(d, src)
			continue
		}
		if d.Summary == quoteNotClosed {
			r.complain(*d.Subject, "quote without its end", "A text in quotes ends on the line that it starts on. Add the closing quote.")
			break
		}
		r.report(d)
	}
	return sound
}
