package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"cosplay/internal/config"
	"cosplay/internal/project"
)

// givenValues is what --var and --var-file give to variables, in the order in
// which they were typed.
type givenValues []project.Given

// valueFlag is --var, and fileFlag --var-file: both add to the same list.
type (
	valueFlag struct{ all *givenValues }
	fileFlag  struct{ all *givenValues }
)

var _, _ pflag.Value = valueFlag{}, fileFlag{}

func (f valueFlag) String() string { return "" }
func (f valueFlag) Type() string   { return "NAME=VALUE" }

func (f valueFlag) Set(typed string) error {
	name, value, found := strings.Cut(typed, "=")
	if !found || name == "" {
		return fmt.Errorf("%q has no =", name)
	}
	*f.all = append(*f.all, project.Given{Name: strings.TrimSpace(name), Value: value})
	return nil
}

func (f fileFlag) String() string { return "" }
func (f fileFlag) Type() string   { return "FILE" }

func (f fileFlag) Set(path string) error {
	*f.all = append(*f.all, project.Given{File: path})
	return nil
}

// variableFlags repeats the flags that give values to variables, for the commands
// that are suggested. A sensitive value is left for the user to type.
func (inv *invocation) variableFlags() []string {
	var flags []string
	for _, g := range inv.given {
		switch {
		case g.File != "":
			flags = append(flags, "--var-file", g.File)
		case slices.ContainsFunc(inv.variables, func(v config.Variable) bool { return v.Name == g.Name && v.Sensitive }):
			flags = append(flags, "--var", g.Name+"=...")
		default:
			flags = append(flags, "--var", g.Name+"="+g.Value)
		}
	}
	return flags
}
