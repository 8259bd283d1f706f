package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	file   = regexp.MustCompile(`^[\w/-]+\.(go|c|h|py)$`)
	named  = regexp.MustCompile(`^[a-z]+(\.[A-Za-z]\w*)+$`)
)

// TestNamesOfArchitecture: the files and identifiers that the pages on the house name exist: `plan.Fold`, `resource.Prior.Serial`,
// `agent/guard.go`, or the end of such a path.
func TestNamesOfArchitecture(t *testing.T) {
	var files []string
	declared := map[string]map[string]bool{} // by the last part of a package's path
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files = append(files, filepath.ToSlash(at))
		if strings.HasSuffix(at, ".go") && !strings.HasSuffix(at, "_test.go") && !strings.Contains(at, "testdata") {
			in := path.Base(filepath.ToSlash(filepath.Dir(at)))
			if declared[in] == nil {
				declared[in] = map[string]bool{}
			}
			return declare(at, declared[in])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for at, text := range documents(t) {
		if !slices.Contains([]string{"architecture.md", "glossary.md", "CONTRIBUTING.md"}, filepath.Base(at)) {
			continue
		}
		for _, found := range quoted.FindAllStringSubmatch(text, -1) {
			word := found[1]
			isFile := file.MatchString(word) && !strings.Contains(word, "NAME")
			room, _, _ := strings.Cut(word, ".")
			switch {
			case isFile && !slices.ContainsFunc(files, func(one string) bool { return strings.HasSuffix(one, "/"+word) }):
				t.Errorf("%s names %s, which does not exist", at, word)
			case !isFile && named.MatchString(word) && declared[room] != nil && !declared[room][word[strings.LastIndex(word, ".")+1:]]:
				t.Errorf("%s names %s, and %s has no such name", at, word, room)
			}
		}
	}
}

// declare adds the names that a file declares: functions, methods, types, fields, variables and constants.
func declare(at string, names map[string]bool) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
		case *ast.TypeSpec:
			names[d.Name.Name] = true
		case *ast.ValueSpec:
			for _, name := range d.Names {
				names[name.Name] = true
			}
		case *ast.Field:
			for _, name := range d.Names {
				names[name.Name] = true
			}
		}
		return true
	})
	return nil
}
