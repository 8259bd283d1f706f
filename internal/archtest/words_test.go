package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unclear are phrases that readers could not parse, with what to write instead. They are
// regular expressions for whole words.
var unclear = map[string]string{
	`(is|are|was|were) told`:          "is reported, is printed",
	`anew`:                            "again, recreated",
	`(mend|mends|mended)`:             "fix, repair",
	`finds? no (place|room)`:          "does not fit",
	`(takes?|taken|took) in hand`:     "acquires",
	`(is|are|to|cannot) be had`:       "is available",
	`lies open`:                       "is readable by",
	`(somebody|nobody|everybody)`:     "name the user or the process",
	`whoever`:                         "name the user or the process",
	`in the way`:                      "blocks",
	`strays`:                          "leftovers",
	`(of (its|their) own|of ours)`:    "its, cosplay's",
	`cut[ -]off`:                      "interrupted",
	`passes? for`:                     "presents, acts as",
	`(taken|takes?|took) down`:        "is removed",
	`(put|puts) (it|them) back`:       "restores",
	`lets? go of`:                     "releases, closes",
	`what (there is|is there)`:        "status, all objects",
	`as far as one can tell`:          "as far as cosplay can check",
	`(is|are|was|has|have|been) gone`: "is removed, is lost",
}

// TestWords: texts that users read contain no unclear phrase: string literals of the
// program, documents, and the recorded output.
func TestWords(t *testing.T) {
	root := filepath.Join("..", "..")
	var all []string
	for phrase := range unclear {
		all = append(all, phrase)
	}
	slices.Sort(all)
	wrong := regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") + `)\b`)
	check := func(path string, line int, text string) {
		found := wrong.FindString(strings.Join(strings.Fields(text), " "))
		for phrase, instead := range unclear {
			if found != "" && regexp.MustCompile(`(?i)^`+phrase+`$`).MatchString(found) {
				t.Errorf("%s:%d: %q is unclear; write: %s", path, line, found, instead)
			}
		}
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && name != "." || name == "bin" || name == "dist"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "test/"):
			return literals(path, func(line int, text string) { check(name, line, text) })
		case strings.HasSuffix(name, ".md"), strings.HasSuffix(name, ".golden"), strings.HasSuffix(name, ".tmpl"):
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i, line := range strings.Split(string(data), "\n") {
				check(name, i+1, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// literals calls check with each string literal of a Go file.
func literals(path string, check func(line int, text string)) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if field, is := n.(*ast.Field); is {
			field.Tag = nil // keys, no text
		}
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				check(files.Position(literal.Pos()).Line, text)
			}
		}
		return true
	})
	return nil
}
