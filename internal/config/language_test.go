package config

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestLanguageReference checks that docs/language.md matches the tables.
func TestLanguageReference(t *testing.T) {
	const path = "../../docs/language.md"
	template, err := os.ReadFile("testdata/language.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var blocks strings.Builder
	var same []string
	for _, b := range Schema().Blocks {
		describeBlock(&blocks, b, "")
		if b.Name == "session" {
			same = sameInAll(b)
		}
	}
	functions := "`" + strings.Join(sortedKeys(Functions(Options{})), "`, `") + "`."
	text := strings.NewReplacer("@FUNCTIONS@", wrap(functions, 118), "@LIVE@", strings.TrimSpace(liveTable()), "@SAME@", strings.Join(same, ", "), "@BLOCKS@", strings.TrimSpace(blocks.String())).Replace(string(template))
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, []byte(text)) {
		t.Errorf("%s is not what the tables say (%v); go test ./internal/config -update rewrites it", path, err)
	}
}

// sameInAll are the attributes that have one value for all instances of a block.
func sameInAll(b Block) (names []string) {
	for _, a := range b.Attributes {
		if a.Common {
			names = append(names, "`"+a.Name+"`")
		}
	}
	for _, inner := range b.Blocks {
		names = append(names, sameInAll(inner)...)
	}
	return names
}

func liveTable() string {
	var w strings.Builder
	w.WriteString("| attribute | type | what it is |\n|---|---|---|\n")
	for _, a := range LiveAttributes() {
		kind := a.Type
		if a.Unit != "" {
			kind += ", " + a.Unit
		}
		fmt.Fprintf(&w, "| `%s` | %s | %s |\n", a.Name, kind, bars(a.Description))
	}
	return w.String()
}

// describeBlock writes a section of the reference for a block and one for each nested block.
func describeBlock(w *strings.Builder, b Block, outside string) {
	name := strings.TrimSpace(outside + " " + b.Name)
	header := "`" + b.Name + " {}`"
	if b.Label != "" {
		header = fmt.Sprintf("`%s %q {}`", b.Name, b.Label)
	}
	if outside != "" {
		header += " in `" + outside + "`"
	}
	fmt.Fprintf(w, "## %s\n\n%s", header, b.Description)
	if b.Repeatable {
		w.WriteString(" There can be several.")
	}
	w.WriteString("\n\n")
	if b.Free != "" {
		fmt.Fprintf(w, "Each attribute is %s.\n\n", b.Free)
	}
	if len(b.Attributes) > 0 {
		inSession := strings.HasPrefix(name, "session")
		head, rule := "| attribute | type | default | what it is | example |", "|---|---|---|---|---|"
		if inSession {
			head, rule = "| attribute | type | default | a change | what it is | example |", "|---|---|---|---|---|---|"
		}
		fmt.Fprintf(w, "%s\n%s\n", head, rule)
		for _, a := range b.Attributes {
			cells := []string{"`" + a.Name + "`", typeWords(a), defaultWords(a)}
			if inSession {
				cells = append(cells, cmp.Or(string(a.Change), "-"))
			}
			cells = append(cells, bars(a.Description), "`"+bars(a.Example)+"`")
			fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		}
		w.WriteString("\n")
	}
	for _, inner := range b.Blocks {
		describeBlock(w, inner, name)
	}
}

func typeWords(a Attribute) string {
	words := string(a.Type)
	if a.Words != nil {
		words += ": `" + strings.Join(a.Words, "`, `") + "`"
	}
	if a.Unit != "" {
		words += ", " + a.Unit
	}
	return bars(words)
}

func defaultWords(a Attribute) string {
	switch {
	case a.Instead != "":
		return "**required**, or `" + a.Instead + "`"
	case a.Required:
		return "**required**"
	case a.Unless != "":
		return bars(strings.Trim(a.Default, "()")) + "; **required** without `" + a.Unless + "`"
	case strings.HasPrefix(a.Default, "("):
		return bars(strings.Trim(a.Default, "()"))
	}
	return "`" + bars(a.Default) + "`"
}

// bars escapes the bars within a table cell.
func bars(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// wrap breaks a text into lines of limited length.
func wrap(s string, width int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if len(line)+1+len(word) > width && line != "" {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}
