package public_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/public"
	"cosplay/internal/public/publictest"
)

var update = flag.Bool("update", false, "write docs/reference/schema/cosplay.json and docs/reference/json.md")

// output is the type of what a command writes.
type output struct {
	command string
	value   any
	usage   string         // where it is not "cosplay COMMAND --json"
	others  map[string]any // what it can write instead, by how it is used
}

const noProject = "The same command in a folder without a project"

// outputs are the commands that write JSON, in the order of the document.
var outputs = []output{
	{"validate", public.Diagnostics{}, "", nil},
	{"plan", public.Plan{}, "", map[string]any{"`cosplay plan --refresh-only --json`": public.DriftReport{}}},
	{"drift", public.DriftReport{}, "", nil},
	{"watch", public.WatchEvent{}, "", nil},
	{"apply", public.Applied{}, "", nil},
	{"destroy", public.Applied{}, "", nil},
	{"status", public.Status{}, "", map[string]any{noProject: public.Machine{}}},
	{"top", public.Top{}, "", nil},
	{"map", public.Status{}, "", map[string]any{noProject: public.Machine{}}},
	{"ps", public.Sessions{}, "", map[string]any{noProject: public.Machine{}}},
	{"history", public.History{}, "", nil},
	{"devices", public.Devices{}, "", nil},
	{"report", public.Reports{}, "", nil},
	{"fits", public.Capacity{}, "cosplay fits --json -- CMD", nil},
	{"show", public.State{}, "", map[string]any{"`cosplay show PLANFILE --json`": public.Plan{}}},
	{"output", public.Outputs{}, "", nil},
	{"verify", public.Verified{}, "", nil},
	{"doctor", public.Doctor{}, "", nil},
	{"ls", public.Targets{}, "", nil},
	{"info", public.TargetInfo{}, "", nil},
	{"fit", public.Fits{}, "", map[string]any{"`cosplay fit --matrix --json`": public.FitMatrix{}}},
	{"graph", public.Graph{}, "", nil},
	{"ssh-config", public.SSHConfig{}, "", nil},
	{"dev", public.Dev{}, "", nil},
	{"state list", public.StateList{}, "", nil},
	{"state show", public.StateItem{}, "", nil},
	{"state mv", public.Moved{}, "", nil},
	{"state rm", public.Forgotten{}, "", nil},
	{"state rebuild", public.Rebuilt{}, "", nil},
	{"import", public.Imported{}, "", nil},
	{"reset", public.Reset{}, "", nil},
	{"force-unlock", public.Unlocked{}, "", nil},
	{"build", public.Built{}, "", nil},
	{"fmt", public.Formatted{}, "", nil},
	{"version", public.Version{}, "", nil},
	{"host export", public.HostExport{}, "cosplay host export", nil},
	{"sim show", public.Simulated{}, "cosplay sim show", nil},
}

// values are the types of a public.Value.
var values = []any{"", 0.0, true, []string{}, public.Slice{}, []public.Volume{}, public.Limits{}, public.User{}, public.MIGMode{}, public.ClockLock{}, public.Unusable{}, public.MPS{}}

// TestSchema: schema and document are those of the types. Each type and field has a comment.
func TestSchema(t *testing.T) {
	comments := read(t)
	s := schema{comments: comments, defs: map[string]*def{}}
	for _, o := range outputs {
		s.add(reflect.TypeOf(o.value))
		for _, other := range o.others {
			s.add(reflect.TypeOf(other))
		}
	}
	for _, missing := range s.silent {
		t.Errorf("%s has no comment", missing)
	}
	compare(t, "../../docs/reference/schema/cosplay.json", s.json(t))
	compare(t, "../../docs/reference/json.md", s.document())
}

func compare(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(have), want); d != "" {
		t.Errorf("%s is not that of the types; go test ./internal/public -update writes it:\n%s", path, d)
	}
}

// read collects the comments of types ("Plan") and of fields ("Plan.Config").
func read(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, is := d.(*ast.GenDecl)
			if !is || g.Tok != token.TYPE {
				continue
			}
			spec := g.Specs[0].(*ast.TypeSpec)
			comments[spec.Name.Name] = joined(g.Doc)
			fields, is := spec.Type.(*ast.StructType)
			if !is {
				continue
			}
			for _, f := range fields.Fields.List {
				for _, n := range f.Names {
					comments[spec.Name.Name+"."+n.Name] = joined(f.Comment)
				}
			}
		}
	}
	return comments
}

func joined(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// schema is what is known of the types.
type schema struct {
	comments map[string]string
	defs     map[string]*def
	order    []string // names of defs as they are found
	silent   []string // what has no comment
}

// def is a type, and field one of its fields; those of embedded types are among them.
type (
	def struct {
		about  string
		fields []field
	}
	field struct {
		name, about string
		required    bool
		kind        map[string]any // its schema
		words       string         // its type in the document
		of          string         // the embedded type that has it
	}
)

func (s *schema) add(t reflect.Type) {
	if t.Kind() != reflect.Struct || s.defs[t.Name()] != nil {
		return
	}
	about := strings.TrimPrefix(s.comment(t.Name()), t.Name()+" ")
	d := &def{about: about}
	s.defs[t.Name()] = d
	s.order = append(s.order, t.Name())
	d.fields = s.fields(t)
}

func (s *schema) fields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for _, embedded := range s.fields(f.Type) {
				embedded.of = f.Type.Name()
				all = append(all, embedded)
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		one := field{name: name, about: s.comment(t.Name() + "." + f.Name), required: options == ""}
		one.kind, one.words = s.kind(f.Type)
		if f.Type.Kind() == reflect.Pointer && one.required {
			one.kind, one.words = map[string]any{"anyOf": []any{one.kind, map[string]any{"type": "null"}}}, one.words+" or null"
		}
		all = append(all, one)
	}
	return all
}

func (s *schema) comment(of string) string {
	if s.comments[of] == "" {
		s.silent = append(s.silent, of)
	}
	return s.comments[of]
}

// kind is the schema of a type, and its name in the document.
func (s *schema) kind(t reflect.Type) (map[string]any, string) {
	s.add(t)
	switch {
	case t == reflect.TypeFor[public.Value]():
		oneOf := []any{map[string]any{"type": "null"}}
		for _, v := range values {
			kind, _ := s.kind(reflect.TypeOf(v))
			oneOf = append(oneOf, kind)
		}
		return map[string]any{"anyOf": oneOf}, "[value](#values)"
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}, "any"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.kind(t.Elem())
	case reflect.Struct:
		return map[string]any{"$ref": "#/$defs/" + t.Name()}, fmt.Sprintf("[%s](#%s)", t.Name(), strings.ToLower(t.Name()))
	case reflect.Slice:
		of, words := s.kind(t.Elem())
		return map[string]any{"type": "array", "items": of}, "list of " + words
	case reflect.Map:
		of, words := s.kind(t.Elem())
		return map[string]any{"type": "object", "additionalProperties": of}, "map of " + words
	case reflect.Int:
		return map[string]any{"type": "integer"}, "integer"
	case reflect.Float64:
		return map[string]any{"type": "number"}, "number"
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, "boolean"
	case reflect.String:
		return map[string]any{"type": "string"}, "string"
	}
	panic(t)
}

func (s *schema) json(t *testing.T) string {
	defs := map[string]any{}
	for name, d := range s.defs {
		properties, required := map[string]any{}, []string{}
		for _, f := range d.fields {
			f.kind["description"] = f.about
			properties[f.name] = f.kind
			if f.required {
				required = append(required, f.name)
			}
		}
		defs[name] = map[string]any{"type": "object", "description": name + " " + d.about, "properties": properties, "required": required}
	}
	for _, o := range outputs {
		ref := func(name string) map[string]any { return map[string]any{"$ref": "#/$defs/" + name} }
		oneOf := []any{ref(reflect.TypeOf(o.value).Name()), ref("Diagnostics")}
		for _, other := range o.others {
			oneOf = append(oneOf, ref(reflect.TypeOf(other).Name()))
		}
		defs[strings.ReplaceAll(o.command, " ", "-")] = map[string]any{"title": usage(o.command, o.usage), "anyOf": oneOf}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "What cosplay's commands write with --json", "$defs": defs}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func usage(command, usage string) string {
	if usage != "" {
		return usage
	}
	return "cosplay " + command + " --json"
}

const intro = `# JSON output

<!-- go test ./internal/public -update writes this file and schema/cosplay.json from the types of internal/public. -->

Most commands write JSON with ` + "`--json`" + `. [schema/cosplay.json](schema/cosplay.json) has the same as this page, as a JSON Schema
(draft 2020-12) with one definition for each command: ` + "`#/$defs/plan`, `#/$defs/state-show`" + `.

* Each output has ` + "`format_version`" + `, which is 1. It is raised when a field is removed or changes its meaning. A program
  must accept fields that it does not know.
* A command that finds errors in the configuration writes the output of [cosplay validate](#cosplay-validate) instead
  and exits with 1. Other errors are on standard error.
* Fields that end in ` + "`?`" + ` can be missing. A field without a type is a string.
* Units are in the names or the meanings of fields. Texts that are marked "in words" are for people and can change.
* ` + "`cosplay output NAME --json`" + ` writes the value alone, and ` + "`cosplay console --json`" + ` one value a line.

## Commands
`

// document is the schema for people.
func (s *schema) document() string {
	var b strings.Builder
	b.WriteString(intro)
	shown := map[string]string{}
	for _, o := range outputs {
		name := reflect.TypeOf(o.value).Name()
		fmt.Fprintf(&b, "\n### cosplay %s\n\n", o.command)
		for usage, other := range o.others {
			if command := commandOf(other); command != "" {
				fmt.Fprintf(&b, "%s writes the output of %s.\n\n", usage, link(command))
				continue
			}
			name := reflect.TypeOf(other).Name()
			fmt.Fprintf(&b, "%s writes a [%s](#%s).\n\n", usage, name, strings.ToLower(name))
		}
		if shown[name] != "" {
			fmt.Fprintf(&b, "The same as %s.\n", link(shown[name]))
			continue
		}
		shown[name] = o.command
		s.table(&b, s.defs[name])
	}
	b.WriteString("\n## Values\n\n" + strings.TrimPrefix(s.comments["Value"], "Value ") + " It is null, a string, a number, a boolean, a list of strings")
	for _, v := range values {
		if t := reflect.TypeOf(v); t.Kind() == reflect.Struct || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
			_, words := s.kind(t)
			b.WriteString(", or " + words)
		}
	}
	b.WriteString(".\n\n## Types\n")
	for _, name := range s.order {
		if shown[name] == "" {
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", name, capital(s.defs[name].about))
			s.table(&b, s.defs[name])
		}
	}
	return b.String()
}

// commandOf is the first command that writes a type; "" if a command writes it only with certain flags.
func commandOf(value any) string {
	i := slices.IndexFunc(outputs, func(o output) bool { return reflect.TypeOf(o.value) == reflect.TypeOf(value) })
	if i < 0 {
		return ""
	}
	return outputs[i].command
}

func link(command string) string {
	return fmt.Sprintf("[cosplay %s](#cosplay-%s)", command, strings.ReplaceAll(command, " ", "-"))
}

func capital(text string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "is "), "are ")
	return strings.ToUpper(text[:1]) + text[1:]
}

func (s *schema) table(b *strings.Builder, d *def) {
	b.WriteString("| field | meaning |\n|---|---|\n")
	for i, f := range d.fields {
		switch {
		case f.name == "format_version": // above
			continue
		case s.defs[f.of] != nil: // the document has them once, with the type
			if i == 0 || d.fields[i-1].of != f.of {
				fmt.Fprintf(b, "| all of [%s](#%s) | |\n", f.of, strings.ToLower(f.of))
			}
			continue
		}
		name := "`" + f.name + "`"
		if !f.required {
			name = "`" + f.name + "?`"
		}
		if f.words != "string" {
			name += ", " + f.words
		}
		fmt.Fprintf(b, "| %s | %s |\n", name, strings.ReplaceAll(f.about, "|", "\\|"))
	}
}

// TestCheckRefuses: a field too few or too many, and a command without a schema.
func TestCheckRefuses(t *testing.T) {
	for output, command := range map[string]string{
		`{"format_version":1,"image":"a","id":"b"}`:         "",
		`{"format_version":1,"image":"a"}`:                  "build",
		`{"format_version":1,"image":"a","id":"b","new":1}`: "build",
		`{"format_version":1,"image":"a","id":null}`:        "build",
	} {
		if publictest.Check(command, []byte(output)) == nil {
			t.Errorf("%q: %s is accepted", command, output)
		}
	}
	if err := publictest.Check("build", []byte(`{"format_version":1,"image":"a","id":"b"}`)); err != nil {
		t.Error(err)
	}
}
