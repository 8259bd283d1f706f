package config

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/hashicorp/hcl/v2"
)

type jsonMistake struct{ says, summary, detail string }

// jsonMistakes maps error messages of the standard library to diagnostics; the first match counts, and the last one
// matches every message.
var jsonMistakes = []jsonMistake{
	{"unexpected end", "the file ends too early", "Something that was begun is not closed. Add the quote, bracket or brace that is missing."},
	{"in string literal", "quote without its end", "A text in quotes ends on the line that it starts on. Add the closing quote; a line end within a text is written as \\n."},
	{"in string escape", "no such escape", `Only " \ / b f n r t u can follow a \. Write \\ for a literal \.`},
	{"in \\u", "no such escape", "Behind \\u go four digits of base 16. Write it like \\u00e9."},
	{"'}' looking for beginning of object key", "comma without a property behind it", "The last property has no comma. Remove it."},
	{"']' looking for beginning of value", "comma without a value behind it", "The last value has no comma. Remove it."},
	{"beginning of object key", "this is no name", "In JSON the name of a property is in double quotes. Write it like \"target\": \"rtx-2060\"."},
	{"after object key:value", "no comma before this", "Properties are separated by commas. Add the comma, or the missing quote before it."},
	{"after object key", "no colon before this", "A colon separates a property's name from its value. Write it like \"target\": \"rtx-2060\"."},
	{"after array element", "no comma before this", "Values are separated by commas. Add the comma, or the missing quote before it."},
	{"after top-level", "there is text behind the end", "The file is one object in braces, or a list of objects in brackets, which ends before this. Remove what is too much, or a brace before it."},
	{"", "this is no value", "In JSON a value is a \"text\", a number, true, false, null, [ ... ] or { ... }. Write one of these."},
}

// complainJSON reports the first syntax error of a JSON file. Later errors only follow from it.
func (r *reporter) complainJSON(name string, src []byte, err *stdjson.SyntaxError) {
	at := max(0, min(int(err.Offset)-1, len(src)))
	if strings.HasPrefix(err.Error(), "unexpected end") {
		at = len(bytes.TrimRight(src, " \t\r\n"))
	}
	first := slices.IndexFunc(jsonMistakes, func(m jsonMistake) bool { return strings.Contains(err.Error(), m.says) })
	summary, detail := jsonMistakes[first].summary, jsonMistakes[first].detail
	switch before := bytes.TrimRight(src[:at], " \t\r\n"); {
	case len(bytes.TrimSpace(src)) == 0:
		summary, detail = "the file is empty", "JSON has at least an object. Write { }, or remove the file."
	case len(before) == 0:
		summary, detail = "this is no JSON", "A file whose name ends with .json begins with a brace or a bracket. Write { ... }; or name it so that it ends with .hcl, if it is HCL."
	case strings.HasPrefix(summary, "comma without"):
		at = len(before) - 1
	case strings.Contains(err.Error(), "in literal"):
		at = 1 + bytes.LastIndexAny(src[:at], "{[:, \t\r\n") // where the wrong token begins
	}
	if hidden := invisible(src[at:]); hidden != "" && !strings.HasPrefix(err.Error(), "unexpected end") {
		summary, detail = "invisible character", fmt.Sprintf("Here is %s, which no editor shows. Remove it: save the file as UTF-8 without a byte order mark.", hidden)
	}
	r.files[name].Nav = jsonPlace(src[:at])
	subject := oneCharacter(name, src, at)
	r.complain(subject, summary, "%s", detail)
}

// oneCharacter returns the range of the character at an offset; an empty range at the end.
func oneCharacter(name string, src []byte, at int) hcl.Range {
	start := hcl.Pos{Line: 1 + bytes.Count(src[:at], []byte("\n")), Byte: at}
	start.Column = 1 + utf8.RuneCount(src[bytes.LastIndexByte(src[:at], '\n')+1:at])
	end := start
	if _, size := utf8.DecodeRune(src[at:]); size > 0 && src[at] != '\n' && src[at] != '\r' {
		end.Byte, end.Column = at+size, start.Column+1
	}
	return hcl.Range{Filename: name, Start: start, End: end}
}

// jsonNav gives the block of any position in a file with a JSON error: the block of the first error.
type jsonNav string

// ContextString implements the interface of the HCL library's diagnostic printer.
func (n jsonNav) ContextString(int) string { return string(n) }

// jsonPlace returns the block that contains the end of incomplete JSON: session "worker".
func jsonPlace(begun []byte) jsonNav {
	tokens := jsontext.NewDecoder(bytes.NewReader(begun), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for err := error(nil); err == nil; {
		_, err = tokens.ReadToken()
	}
	var names []string // of properties whose values are incomplete
	depth := 0
	for name := range tokens.StackPointer().Tokens() {
		depth++
		if kind, length := tokens.StackIndex(depth); kind == '{' && (depth < tokens.StackDepth() || length%2 == 1) {
			names = append(names, name)
		}
	}
	switch block := fileSchema.block(strings.Join(names[:min(1, len(names))], "")); {
	case block == nil:
		return ""
	case len(names) > 1 && block.Label != "":
		return jsonNav(fmt.Sprintf("%s %q", names[0], names[1]))
	}
	return jsonNav(names[0])
}

// jsonFile returns the body of a file, which is an object or a list of objects.
func jsonFile(content hcl.Body, src []byte) jsonBody {
	var list []map[string]stdjson.RawMessage
	if stdjson.Unmarshal(src, &list) != nil {
		return jsonBody{Body: content, isList: bytes.HasPrefix(bytes.TrimSpace(src), []byte("["))}
	}
	all := map[string]stdjson.RawMessage{}
	for _, object := range list {
		maps.Copy(all, object)
	}
	delete(all, "//") // a comment
	return jsonBody{Body: content, isList: true, names: sortedKeys(all)}
}

// jsonSyntax returns the standard library's first error in JSON; nil if there is none.
func jsonSyntax(src []byte) *stdjson.SyntaxError {
	var whole stdjson.RawMessage
	var syntax *stdjson.SyntaxError
	errors.As(stdjson.Unmarshal(src, &whole), &syntax)
	return syntax
}
