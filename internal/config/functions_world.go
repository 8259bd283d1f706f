package config

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
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
type world struct {
	Options
	budget *budget
	reads  reads
}

// place is a path in the form that the file system of the options expects.
func (w world) place(typed string) (string, error) {
	full := typed
	if rest, home := strings.CutPrefix(typed, "~/"); home && w.Home != "" {
		full = filepath.Join(w.Home, rest)
	}
	inside := strings.TrimPrefix(w.absolute(full), "/")
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

// open opens a regular file. It asks for the kind first, because to open a pipe would wait for its writer.
func (w world) open(typed string) (fs.File, error) {
	at, err := w.place(typed)
	if err != nil {
		return nil, err
	}
	info, err := fs.Stat(w.Files, at)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no regular file; cosplay reads no folders, devices and pipes", typed)
	}
	var file fs.File
	if err == nil {
		file, err = w.Files.Open(at)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.noteExists(typed, false) // try(file(...), ...) evaluates then
		return nil, fmt.Errorf("there is no file %q; paths start in the project's folder", typed)
	case err != nil:
		return nil, fmt.Errorf("%q cannot be read: %w", typed, errors.Unwrap(err))
	}
	w.noteExists(typed, true)
	return file, nil
}

func (w world) noteExists(typed string, exists bool) {
	w.reads.note("fileexists", []string{typed}, strconv.AppendBool(nil, exists))
}

func (w world) read(typed string) ([]byte, error) {
	file, err := w.open(typed)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxText+1))
	if err == nil && len(data) > maxText {
		err = limitError{fmt.Sprintf("the file %q", typed), mebi(maxText), "Pass its path to the session, which can read it"}
	}
	if err == nil {
		w.reads.note("file", []string{typed}, data)
	}
	return data, err
}

func (w world) readText(typed string) (string, error) {
	data, err := w.read(typed)
	if err == nil && !utf8.Valid(data) {
		err = fmt.Errorf("%q is not text in UTF-8; filebase64 reads it", typed)
	}
	return string(data), err
}

// fileDigest returns a function of a file's checksum. The file can have any size.
func (w world) fileDigest(name string, digest func() hash.Hash, write func([]byte) string) function.Function {
	return mapping(func(typed string) (string, error) {
		file, err := w.open(typed)
		if err != nil {
			return "", err
		}
		defer file.Close()
		sum := digest()
		for err == nil {
			if _, err = io.CopyN(sum, file, maxText); err == nil {
				err = w.budget.use(0)
			}
		}
		if !errors.Is(err, io.EOF) {
			return "", err
		}
		digest := write(sum.Sum(nil))
		w.reads.note(name, []string{typed}, []byte(digest))
		return digest, nil
	}, "path")
}

func (w world) readBase64(typed string) (string, error) {
	data, err := w.read(typed)
	return inBase64(data), err
}

func (w world) fileExists(arguments []string) (cty.Value, error) {
	at, err := w.place(arguments[0])
	if err != nil {
		return cty.NilVal, err
	}
	info, err := fs.Stat(w.Files, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.noteExists(arguments[0], false)
		return cty.False, nil
	case err != nil:
		return cty.NilVal, fmt.Errorf("%q cannot be read: %w", arguments[0], errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return cty.NilVal, fmt.Errorf("%q is there, and is no file", arguments[0])
	}
	w.noteExists(arguments[0], true)
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
	visited := &countingFS{FS: folder, budget: w.budget}
	names, err := doublestar.Glob(visited, arguments[1], doublestar.WithFilesOnly())
	if err != nil {
		return cty.NilVal, fmt.Errorf("the pattern %q: %w", arguments[1], err)
	}
	if visited.err != nil {
		return cty.NilVal, visited.err
	}
	w.reads.note("fileset", arguments, []byte(strings.Join(slices.Sorted(slices.Values(names)), "\x00")))
	if len(names) == 0 {
		return cty.SetValEmpty(cty.String), nil
	}
	return cty.SetVal(prose.Each(names, cty.StringVal)), nil
}

// countingFS is a file system that ends a search which visits too many files.
type countingFS struct {
	fs.FS
	budget *budget
	seen   int
	err    error
}

// ReadDir implements fs.ReadDirFS.
func (c *countingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if c.err == nil {
		c.err = c.budget.use(0)
	}
	if c.err != nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(c.FS, name)
	if c.seen += len(entries); c.seen > maxLooked {
		c.err = limitError{"the number of files that match or are beside them", fmt.Sprint(maxLooked), "Start in another folder, or write a pattern without **"}
		return nil, nil
	}
	return entries, err
}

// absolute returns a path from the project's folder as an absolute one.
func (o Options) absolute(typed string) string {
	if filepath.IsAbs(typed) {
		return filepath.Clean(typed)
	}
	return filepath.Join(o.Dir, typed)
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
				set, there := w.Env(name)
				w.reads.note("env", []string{name}, fmt.Appendf(nil, "%t %s", there, set))
				if there {
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

// planTimestamp returns the time of the plan. A saved plan keeps it.
func (w world) planTimestamp() function.Function {
	return valueFunction(cty.String, func([]cty.Value) (cty.Value, error) {
		if w.Timestamp == "" {
			return cty.NilVal, errors.New("the time of the plan is not known here")
		}
		return cty.StringVal(w.Timestamp), nil
	})
}

func (w world) readTemplate(path string) (text, name string, err error) {
	text, err = w.readText(path)
	return text, path, err
}

// templateFunction renders a template with the given values only. The first parameter of the function leads to the
// template's text and name.
func (w world) templateFunction(param string, source func(string) (text, name string, err error), functions map[string]function.Function) function.Function {
	render := func(args []cty.Value) (cty.Value, error) {
		values := args[1]
		if t := values.Type(); !isMap(t) {
			return cty.NilVal, function.NewArgErrorf(1, "a map of values is wanted, like { name = \"a\" }")
		}
		text, name, err := source(args[0].AsString())
		if err != nil {
			return cty.NilVal, err
		}
		if diags := tooDeep(name, []byte(text), hcl.InitialPos, hclsyntax.LexTemplate); diags.HasErrors() {
			return cty.NilVal, inTemplate(diags[0], functions)
		}
		expr, diags := hclsyntax.ParseTemplate([]byte(text), name, hcl.InitialPos)
		if diags.HasErrors() {
			return cty.NilVal, inTemplate(diags[0], functions)
		}
		w.budget.attach(expr)
		scope := &hcl.EvalContext{Variables: values.AsValueMap(), Functions: functions}
		for _, mention := range expr.Variables() {
			if _, there := scope.Variables[mention.RootName()]; !there {
				return cty.NilVal, templateError{mistake(mention.SourceRange(), fmt.Sprintf("unknown variable %q", mention.RootName()),
					"It is not among the template's values. Add it to the second argument.%s",
					didYouMean(mention.RootName(), sortedKeys(scope.Variables)))}
			}
		}
		result, diags := expr.Value(scope)
		if diags.HasErrors() {
			return cty.NilVal, inTemplate(diags[0], functions)
		}
		return result, nil
	}
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: param, Type: cty.String}, {Name: "vars", Type: cty.DynamicPseudoType}},
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
type templateError struct{ *hcl.Diagnostic }

func (e templateError) Error() string {
	return fmt.Sprintf("%s: %s. %s", place(*e.Subject), e.Summary, e.Detail)
}

// inTemplate is a diagnostic of the HCL library's about a template.
func inTemplate(d *hcl.Diagnostic, functions map[string]function.Function) error {
	call, is := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d)
	if is && strings.HasPrefix(withoutCore(call.CalledFunctionName()), "template") {
		return templateError{mistake(*d.Subject, "a template cannot fill in another", "Give it the text of the other as a value.")}
	}
	return templateError{(&reporter{functions: functions}).inOurWords(d)}
}
