// Package wiretest keeps a list of the JSON fields of a format in testdata. The types of internal/resource have the
// JSON names of the state, the ledger, the journal, the saved plan, the agent's protocol and a session's folder, so
// that each has its session or slice without a copy of all types: the list of each format shows what a changed name
// would break.
package wiretest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/durable"
)

// Pin compares the fields of values with the list in a file, one field a line. With update it writes the file. The
// advice says what a difference means for the format.
func Pin(t *testing.T, path string, update bool, advice string, values ...any) {
	t.Helper()
	var lines []string
	for _, v := range values {
		lines = append(lines, fields(reflect.TypeOf(v).Name(), reflect.TypeOf(v))...)
	}
	now := strings.Join(lines, "\n") + "\n"
	if update {
		if err := durable.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(was), now); d != "" {
		t.Errorf("%s: the format is another one (-was +now). %s\n%s", path, advice, d)
	}
}

// fields lists what JSON has of a type: "session.slice.gpu string".
func fields(name string, t reflect.Type) []string {
	for _, own := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(own) && t.Kind() != reflect.Pointer {
			return []string{name + " " + t.String()}
		}
	}
	switch kind := t.Kind(); {
	case kind == reflect.Pointer:
		return fields(name, t.Elem())
	case kind == reflect.Slice:
		return fields(name+"[]", t.Elem())
	case kind == reflect.Map:
		return fields(name+"{}", t.Elem())
	case kind == reflect.Struct:
		return structFields(name, t)
	}
	return []string{fmt.Sprintf("%s %s", name, t.Kind())}
}

func structFields(name string, t reflect.Type) []string {
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-", !f.IsExported() && !f.Anonymous:
		case f.Anonymous && tag == "":
			all = append(all, slices.DeleteFunc(fields(name, f.Type), func(field string) bool { return replaced(t, name, field) })...)
		default:
			if tag == "" {
				tag = f.Name
			}
			if slices.Contains(strings.Split(options, ","), "omitempty") || slices.Contains(strings.Split(options, ","), "omitzero") {
				tag += "?"
			}
			all = append(all, fields(name+"."+tag, f.Type)...)
		}
	}
	return all
}

// replaced reports whether a struct has a field with the JSON name of a field of one that it embeds.
func replaced(t reflect.Type, name, field string) bool {
	for i := range t.NumField() {
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if after, is := strings.CutPrefix(field, name+"."+tag); is && tag != "" && (after == "" || strings.ContainsAny(after[:1], " ?.[{")) {
			return true
		}
	}
	return false
}
