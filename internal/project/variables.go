package project

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cosplay/internal/config"
	"cosplay/internal/durable"
)

// Given is a flag with values of variables: one value, or a file of values.
type Given struct {
	Name, Value string
	File        string // instead
}

// Files of values that are read without a flag.
const (
	valuesFile = "cosplay.hclvars"
	autoSuffix = ".auto.hclvars"
	jsonSuffix = ".json"
)

// inputs lists the sources of values of variables. A later one overrules an earlier one,
// as in Terraform: the environment, cosplay.hclvars, its JSON form, *.auto.hclvars by
// name, and flags in their order. A saved plan has its own values.
func inputs(dir string, environ []string, o Options) ([]config.Input, error) {
	all := fromEnvironment(environ)
	names, err := valuesFiles(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := durable.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("reading the values of variables: %w", err)
		}
		all = append(all, config.Input{From: name, File: data})
	}
	for _, f := range o.Given {
		if f.File == "" {
			all = append(all, config.Input{From: "--var " + f.Name, Name: f.Name, Text: f.Value, Flag: true})
			continue
		}
		data, err := durable.ReadFile(f.File)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--var-file: there is no file %s; a relative path starts in the current folder, or in that of --chdir", f.File)
		}
		if err != nil {
			return nil, fmt.Errorf("--var-file: %w", err)
		}
		all = append(all, config.Input{From: f.File, File: data, Flag: true})
	}
	saved, err := config.FromSaved(o.Saved)
	return slices.Concat(all, saved, terraforms(dir, environ)), err
}

// terraforms are the sources that only Terraform reads; cosplay warns of them.
func terraforms(dir string, environ []string) []config.Input {
	var all []config.Input
	for _, one := range environ {
		name, value, _ := strings.Cut(one, "=")
		if short, is := strings.CutPrefix(name, "TF_VAR_"); is && value != "" {
			all = append(all, config.Input{From: name, Name: short, Unread: true, Text: fmt.Sprintf("Name it %s%s.", config.EnvPrefix, short)})
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if base, is := strings.CutSuffix(e.Name(), ".tfvars"); is {
			name := cmp.Or(strings.TrimSuffix(base, ".auto"), "values") + autoSuffix
			if base == "terraform" {
				name = valuesFile
			}
			all = append(all, config.Input{From: e.Name(), Unread: true, Text: fmt.Sprintf("Name it %s, or give it with --var-file %s.", name, e.Name())})
		}
	}
	return all
}

// fromEnvironment are the values of the environment. A variable that no block declares
// may be for another project, so it is no error.
func fromEnvironment(environ []string) []config.Input {
	var all []config.Input
	for _, one := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(one, "=")
		if short, ok := strings.CutPrefix(name, config.EnvPrefix); ok && short != "" {
			all = append(all, config.Input{From: name, Name: short, Text: value, MayBeUnknown: true})
		}
	}
	return all
}

// valuesFiles are the files of values that are read without a flag.
func valuesFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // by name
	if err != nil {
		return nil, err
	}
	var first, auto []string
	for _, e := range entries {
		switch bare := strings.TrimSuffix(e.Name(), jsonSuffix); {
		case bare == valuesFile:
			first = append(first, e.Name())
		case strings.HasSuffix(bare, autoSuffix) && !strings.HasPrefix(bare, "."):
			auto = append(auto, e.Name())
		}
	}
	return append(first, auto...), nil
}
