package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"cosplay/internal/cli"
	hosts "cosplay/internal/machine"
	"cosplay/internal/need"
	"cosplay/internal/prose"
	"cosplay/internal/public/publictest"
)

// TestMain makes the test binary be cosplay where it is called so: in the
// scripts, and when it starts itself as its own agent.
func TestMain(m *testing.M) {
	commands := map[string]func(){
		"cosplay": func() {
			followMoments()
			cli.Version = thisVersion
			if len(os.Args) > 1 && os.Args[1] != "agent" {
				hosts.Elsewhere = os.Getenv("COSPLAY_TEST_CONNECT")
			}
			os.Exit(runChecked(os.Args[1:]))
		},
		"container":  runContainer,
		"gonvml":     askNVML,
		"otherbuild": otherBuild,
	}
	var tests need.Tests = m
	if commands[filepath.Base(os.Args[0])] == nil {
		if signal.Ignored(syscall.SIGHUP) { // under nohup: the commands would ignore it as well
			signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		}
		var err error
		if tests, err = need.Scratch(faultless{m}); err != nil { // before the commands are put there
			fmt.Fprintln(os.Stderr, "a temporary folder:", err)
			os.Exit(1)
		}
	}
	testscript.Main(tests, commands)
}

// faultless are tests that fail, too, if a command found a fault of its output: a story that expects the command to fail
// would pass with it.
type faultless struct{ need.Tests }

func (f faultless) Run() int {
	code := f.Tests.Run()
	if found, err := os.ReadFile(faultsFile()); err == nil {
		fmt.Fprintf(os.Stderr, "faults of what commands have written:\n%s", found)
		return 1
	}
	return code
}

// faultsFile is beside the commands that testscript has put into a folder of PATH.
func faultsFile() string {
	command, _ := exec.LookPath("cosplay")
	return filepath.Join(filepath.Dir(command), "faults")
}

// faulty reports a fault of a command's output. A command of another user than the tests' cannot write the file.
func faulty(err error) int {
	fmt.Fprintln(os.Stderr, err)
	_ = os.WriteFile(faultsFile(), fmt.Appendf(nil, "%q: %v\n", os.Args, err), 0o644)
	return 99
}

// runChecked runs a command, and fails if what it writes with --json does not match the schema, or if cosplay would
// refuse a command that it tells the user to type.
func runChecked(args []string) int {
	streams := cli.Stdio()
	cmd, _, err := cli.Command().Find(args)
	if err == nil && listens(cmd) && !slices.Contains(args, "--json") {
		out, errs := &heard{File: os.Stdout}, &heard{File: os.Stderr}
		streams.Out, streams.Err = out, errs
		code := cli.Main(args, streams)
		if err := errors.Join(out.check(), errs.check()); err != nil {
			return faulty(err)
		}
		return code
	}
	if err != nil || !slices.Contains(args, "--json") && cmd.CommandPath() != "cosplay sim show" {
		return cli.Main(args, streams)
	}
	var written bytes.Buffer
	streams.Out = io.MultiWriter(streams.Out, &written)
	code := cli.Main(args, streams)
	command := strings.TrimPrefix(cmd.CommandPath(), "cosplay ")
	if command == "console" || command == "output" && !bytes.Contains(written.Bytes(), []byte("format_version")) {
		return code // values alone
	}
	if written.Len() == 0 { // as of a command that has no --json and says so
		return code
	}
	if err := publictest.Check(command, written.Bytes()); err != nil {
		return faulty(err)
	}
	return code
}

// setFakes gives a story the path of the stand-ins for Python's modules: torch and
// pynvml, as far as the self-test uses them, over the session's libraries.
func setFakes(env *testscript.Env) error {
	fakes, err := filepath.Abs("testdata/fakes")
	env.Setenv("FAKES", fakes)
	return err
}

// setMPS gives a story the folder of the MPS daemon, and one with a short path, since that of a Unix socket has a limit.
func setMPS(env *testscript.Env, daemon string) error {
	short, err := os.MkdirTemp("", "s")
	env.Setenv("MPS", daemon)
	env.Setenv("SHORT", short)
	env.Defer(func() { _ = os.RemoveAll(short) })
	return err
}

// TestScripts runs every user story in testdata/script.
func TestScripts(t *testing.T) { runScripts(t, stories(t), nil) }

// stories are the files of all user stories.
func stories(t *testing.T) []string {
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	return all
}

// elsewhere are the stories that always run as if their hosts were on another machine: each kind of question, at least once.
var elsewhere = []string{"again", "audit", "cp", "lost", "moved", "privatemounts", "run", "secrets", "state", "stories"}

// notElsewhere are the stories that cannot run so: of two versions of cosplay, of which a machine has one; that has its machines;
// and of tests of one session that take turns, which they do on one machine only.
var notElsewhere = []string{"updated", "unreachable", "verify"}

// TestScriptsElsewhere runs stories as if their hosts were on another machine, which is this one: ssh is a program that runs
// the command here. COSPLAY_LONG=1 runs all but notElsewhere.
func TestScriptsElsewhere(t *testing.T) {
	files := prose.Each(elsewhere, func(name string) string { return "testdata/script/" + name + ".txtar" })
	if os.Getenv("COSPLAY_LONG") != "" {
		files = slices.DeleteFunc(stories(t), func(file string) bool {
			return slices.Contains(notElsewhere, strings.TrimSuffix(filepath.Base(file), ".txtar"))
		})
	}
	runScripts(t, files, placeElsewhere(t))
}

// placeElsewhere gives a story hosts on another machine, which is this one. A login into a session is by the user's ssh, without
// the jump.
func placeElsewhere(t *testing.T) func(*testscript.Env) {
	t.Helper()
	dir := t.TempDir()
	const ssh = `#!/bin/bash
case "$*" in
*" -- here cosplay "*)
	while [ "$1" != -- ]; do shift; done
	shift 2
	exec sh -c "$*" ;;
esac
words=()
for word; do
	[ "$word" != ProxyJump=ssh://here ] || word=ProxyJump=none
	words+=("$word")
done
exec /usr/bin/ssh "${words[@]}"
`
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(ssh), 0o755); err != nil {
		t.Fatal(err)
	}
	open(dir)
	return func(env *testscript.Env) {
		env.Setenv("COSPLAY_TEST_CONNECT", "ssh://here")
		env.Setenv("PATH", dir+":"+env.Getenv("PATH"))
	}
}

func runScripts(t *testing.T, files []string, more func(*testscript.Env)) {
	judge, judged := need.Judge(t)
	daemon, daemons := need.MPS(t)
	torch := need.TorchIfAny(t)
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("NVIDIA_SMI", judge)
			env.Setenv("TORCH_PYTHON", torch)
			scripts, err := filepath.Abs("../../scripts")
			env.Setenv("SCRIPTS", scripts)
			hidden, failed := filepath.Abs("testdata/notorch")
			env.Setenv("NOTORCH", hidden)
			if more != nil {
				more(env)
			}
			return errors.Join(err, failed, setMPS(env, daemon), setFakes(env))
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "mounts":
				return need.Mounts(), nil
			case "mps":
				return daemons, nil
			case "root":
				return os.Geteuid() == 0, nil
			case "torch":
				return torch != "", nil
			}
			return name == "judge" && judged, nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
