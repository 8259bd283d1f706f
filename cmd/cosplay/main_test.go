package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"cosplay/internal/cli"
	"cosplay/internal/need"
)

// TestMain makes the test binary be cosplay where it is called so: in the
// scripts, and when it starts itself as its own agent.
func TestMain(m *testing.M) {
	commands := map[string]func(){
		"cosplay": func() {
			followMoments()
			cli.Version = thisVersion
			os.Exit(cli.Main(os.Args[1:], cli.Stdio()))
		},
		"gonvml":     askNVML,
		"otherbuild": otherBuild,
	}
	var tests need.Tests = m
	if commands[filepath.Base(os.Args[0])] == nil {
		var err error
		if tests, err = need.Scratch(m); err != nil { // before the commands are put there
			fmt.Fprintln(os.Stderr, "a temporary folder:", err)
			os.Exit(1)
		}
	}
	testscript.Main(tests, commands)
}

// setFakes tells a story where the stand-ins for Python's modules are: torch and
// pynvml, as far as the self-test asks them, over the session's own libraries.
func setFakes(env *testscript.Env) error {
	fakes, err := filepath.Abs("testdata/fakes")
	env.Setenv("FAKES", fakes)
	return err
}

// TestScripts runs every user story in testdata/script.
func TestScripts(t *testing.T) {
	judge, judged := need.Judge(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("NVIDIA_SMI", judge)
			scripts, err := filepath.Abs("../../scripts")
			env.Setenv("SCRIPTS", scripts)
			return errors.Join(err, setFakes(env))
		},
		Condition: func(name string) (bool, error) {
			return name == "judge" && judged, nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
