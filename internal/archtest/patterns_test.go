package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// TestPatterns compiles the expressions that are compiled when they are first used, and finds those that every command
// would compile.
func TestPatterns(t *testing.T) {
	lazy := 0
	for _, p := range packages(t) {
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			path := filepath.Join(p.Dir, name)
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				vars, is := d.(*ast.GenDecl)
				if !is || vars.Tok != token.VAR {
					continue
				}
				ast.Inspect(vars, func(n ast.Node) bool {
					if _, later := n.(*ast.FuncLit); later {
						return false
					}
					switch of, expression := called(n); of {
					case "regexp.MustCompile":
						t.Errorf("%s compiles %s at the start of every command: use pattern.Of", path, expression)
					case "pattern.Of":
						lazy++
						if _, err := regexp.Compile(expression); err != nil {
							t.Errorf("%s: %v", path, err)
						}
					}
					return true
				})
			}
		}
	}
	if lazy < 20 {
		t.Errorf("found %d expressions, and expected tens of them", lazy)
	}
}

// called returns the function of a package that a node calls, and its argument if that is a literal.
func called(n ast.Node) (function, argument string) {
	call, is := n.(*ast.CallExpr)
	if !is || len(call.Args) != 1 {
		return "", ""
	}
	if s, is := call.Fun.(*ast.SelectorExpr); is {
		if p, is := s.X.(*ast.Ident); is {
			function = p.Name + "." + s.Sel.Name
		}
	}
	if literal, is := call.Args[0].(*ast.BasicLit); is {
		argument, _ = strconv.Unquote(literal.Value)
	}
	return function, argument
}
