package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"cosplay/internal/prose"
)

// world returns the functions that read files and the environment, within the limits of the options.
type world struct{ Options }

// place is a path in the form that the file system of the options expects.
func (w world) place(typed string) (string, error) {
	full := typed
	if rest, home := strings.CutPrefix(typed, "~/"); home && w.Home != "" {
		full = filepath.Join(w.Home, rest)
	}
	if !filepath.IsAbs(full) {
		full = filepath.Join(w.Dir, full)
	}
	inside := strings.TrimPrefix(filepath.Clean(full), "/")
	switch {
	case typed == "":
		return "", errors.New("the path is empty")
	case w.Files == nil || !fs.ValidPath(inside) && inside != "":
		return "", fmt.Errorf("%q cannot be read from here", typed)
	case inside == "":
		return ".", nil
	}
	return inside, nil
}

func (w world) read(typed string) ([]byte, error) {
	at, err := w.place(typed)
	if err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(w.Files, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %q; paths start in the project's folder", typed)
	case err != nil:
		return nil, fmt.Errorf("%q cannot be read: %w", typed, errors.Unwrap(err))
	}
	return data, nil
}

func (w world) readText(typed string) (string, error) {
	data, err := w.read(typed)
	if err == nil && !utf8.Valid(data) {
		err = fmt.Errorf("%q is not text in UTF-8; filebase64 reads it", typed)
	}
	return string(data), err
}

func (w world) fileDigest(sum func([]byte) []byte, write func([]byte) string) function.Function {
	return mapping(func(typed string) (string, error) {
		data, err := w.read(typed)
		return write(sum(data)), err
	}, "path")
}

func (w world) fileExists(arguments []string) (cty.Value, error) {
	at, err := w.place(arguments[0])
	if err != nil {
		return cty.NilVal, err
	}
	info, err := fs.Stat(w.Files, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cty.False, nil
	case err != nil:
		return cty.NilVal, fmt.Errorf("%q cannot be read: %w", arguments[0], errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return cty.NilVal, fmt.Errorf("%q is there, and is no file", arguments[0])
	}
	return cty.True, nil
}

func (w world) fileSet(arguments []string) (cty.Value, error) {
	at, err := w.place(arguments[0])
	if err != nil {
		return cty.NilVal, err
	}
	folder, err := fs.Sub(w.Files, at)
	if err != nil {
		return cty.NilVal, err
	}
	names, err := doublestar.Glob(folder, arguments[1], doublestar.WithFilesOnly(), doublestar.WithFailOnPatternNotExist())
	if err != nil && !errors.Is(err, doublestar.ErrPatternNotExist) {
		return cty.NilVal, fmt.Errorf("the pattern %q: %w", arguments[1], err)
	}
	if len(names) == 0 {
		return cty.SetValEmpty(cty.String), nil
	}
	return cty.SetVal(prose.Each(names, cty.StringVal)), nil
}

func (w world) absolute(typed string) (string, error) {
	if filepath.IsAbs(typed) {
		return filepath.Clean(typed), nil
	}
	return filepath.Join(w.Dir, typed), nil
}

func (w world) expand(typed string) (string, error) {
	rest, home := strings.CutPrefix(typed, "~")
	switch {
	case !home || rest != "" && rest[0] != '/':
		return typed, nil
	case w.Home == "":
		return "", errors.New("there is no home folder to put for ~")
	}
	return filepath.Join(w.Home, rest), nil
}

// env reads the environment of the cosplay process.
func (w world) env() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "name", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.String, AllowNull: true},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			if w.Env != nil {
				if set, there := w.Env(name); there {
					return cty.StringVal(set), nil
				}
			}
			switch len(args) {
			case 1:
				return cty.NilVal, fmt.Errorf("%s is not set in the environment; set it, or say what to take then: env(%q, \"...\")", name, name)
			case 2:
				return args[1], nil
			}
			return cty.NilVal, errors.New("it takes a name and what to take where it is not set")
		},
	})
}

// templateFile renders a template with the given values only.
func (w world) templateFile(functions map[string]function.Function) function.Function {
	render := func(args []cty.Value) (cty.Value, error) {
		values := args[1]
		if t := values.Type(); !isMap(t) {
			return cty.NilVal, function.NewArgErrorf(1, "a map of values is wanted, like { name = \"a\" }")
		}
		name := args[0].AsString()
		text, err := w.readText(name)
		if err != nil {
			return cty.NilVal, err
		}
		if diags := tooDeep(name, []byte(text)); diags.HasErrors() {
			return cty.NilVal, inTemplate(diags[0], functions)
		}
		expr, diags := hclsyntax.ParseTemplate([]byte(text), name, hcl.InitialPos)
		if diags.HasErrors() {
			return cty.NilVal, inTemplate(diags[0], functions)
		}
		scope := &hcl.EvalContext{Variables: values.AsValueMap(), Functions: functions}
		for _, mention := range expr.Variables() {
			if _, there := scope.Variables[mention.RootName()]; !there {
				return cty.NilVal, templateError{mention.SourceRange(), fmt.Sprintf("unknown variable %q", mention.RootName()),
					"It is not among the template's values. Add it to the second argument." + didYouMean(mention.RootName(), sortedKeys(scope.Variables))}
			}
		}
		result, diags := expr.Value(scope)
		if diags.HasErrors() {
			return cty.NilVal, inTemplate(diags[0], functions)
		}
		return result, nil
	}
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if !args[0].IsKnown() || !args[1].IsWhollyKnown() {
				return cty.DynamicPseudoType, nil
			}
			result, err := render(args)
			if err != nil {
				return cty.NilType, err
			}
			return result.Type(), nil
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return render(args) },
	})
}

// templateError is a mistake in a template.
type templateError struct {
	at              hcl.Range
	summary, detail string
}

func (e templateError) Error() string {
	return fmt.Sprintf("%s line %d: %s. %s", e.at.Filename, e.at.Start.Line, e.summary, e.detail)
}

// inTemplate is a diagnostic of the HCL library's about a template.
func inTemplate(d *hcl.Diagnostic, functions map[string]function.Function) error {
	if call, is := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d); is && call.CalledFunctionName() == "templatefile" {
		return templateError{*d.Subject, "a template cannot fill in another", "Give it the text of the other as a value."}
	}
	d = (&loader{functions: functions}).inOurWords(d)
	return templateError{*d.Subject, d.Summary, d.Detail}
}
