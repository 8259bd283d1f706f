// Package archtest holds the tests of the house rules: which package may import
// what, and that each says what it is for.
package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is the prefix of our own packages.
const module = "cosplay/"

// effects are imports by which a package could read or change something outside the
// process, or print in colour.
var effects = []string{
	"os", "os/exec", "os/user", "os/signal", "net", "net/http", "log", "log/slog", "syscall", "golang.org/x/sys/unix",
	"github.com/NVIDIA/go-nvml/pkg/nvml", "github.com/docker/docker/client", "github.com/fatih/color",
}

// clocks are what package time has that depends on the moment, on the zone of the machine, or that waits.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Local", "LoadLocation"}

// reads lists what the packages read that may import os, the pipeline's above all. Of the
// hosts' GPUs and sessions, observe alone takes the snapshot; it asks agent and runtime.
var reads = map[string]string{
	"cmd/cosplay":                   "its arguments",
	"cmd/cosplay-dist":              "the binaries of a release",
	"cmd/cosplay-init":              "its arguments",
	"internal/alerts":               "the findings of a project",
	"internal/agent":                "NVML; who uses a slice; as root, the files that root trusts",
	"internal/cdi":                  "the driver's device nodes and libraries",
	"internal/cli":                  "its terminal, saved plans, the files that fmt formats",
	"internal/disguise":             "the files of a session and the host's NVIDIA libraries",
	"internal/durable":              "locks, journals and announcements",
	"internal/shared":               "the files that sessions have in common",
	"internal/initd":                "its own container",
	"internal/initd/account":        "its own container",
	"internal/initd/boot":           "its own container",
	"internal/initd/environ":        "its own container",
	"internal/initd/launch":         "its own container",
	"internal/initd/scp":            "its own container",
	"internal/initd/sshd":           "its own container",
	"internal/inside":               "the files of a session; what the kernel shows of the GPUs",
	"internal/fullscreen":           "the terminal",
	"internal/interrupt":            "signals",
	"internal/ledger":               "the ledger of a host",
	"internal/machine":              "who runs cosplay, and their ssh keys; which session folders exist",
	"internal/mps":                  "the MPS daemons and their folders",
	"internal/proc":                 "what the kernel shows of processes",
	"internal/project":              "the configuration, values of variables, the states and journals that are named",
	"internal/recovery":             "which files of a state are left",
	"internal/remote":               "programs that run for a client on another machine",
	"internal/render":               "the terminal",
	"internal/runtime":              "the folder of a workspace",
	"internal/runtime/docker/image": "the engine's builder",
	runtimes:                        "engines, folders of sessions, which session a process is in",
	"internal/selftest":             "the folder of a session, to lock it; ssh",
	"internal/sim":                  "the folder of a simulated host",
	"internal/state":                "the state and its backup",
	"internal/transfer":             "the files that are copied",
}

// procs are the packages that read /proc or /sys, of other processes above all.
var procs = []string{"internal/agent", "internal/cdi", "internal/durable", "internal/initd/account", "internal/initd/boot", "internal/initd/launch",
	"internal/mps", "internal/proc", runtimes}

// runtimes stands for all packages that are a runtime, so that another one needs no line here.
const runtimes = "internal/runtime/*"

// nameOf is what the tables call a package.
func nameOf(importPath string) string {
	name := strings.TrimPrefix(importPath, module)
	if path.Dir(name) == "internal/runtime" && name != "internal/runtime/all" {
		return runtimes
	}
	return name
}

// only lists imports that a single package may have.
var only = map[string]string{
	"github.com/fatih/color":             "internal/render",
	"github.com/NVIDIA/go-nvml/pkg/nvml": "internal/agent",
	"github.com/spf13/cobra":             "internal/cli",
}

type goPackage struct {
	ImportPath string
	Dir        string
	Doc        string
	Imports    []string
	GoFiles    []string
	CgoFiles   []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Doc,Imports,GoFiles,CgoFiles", module+"...")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 15 {
		t.Fatalf("only %d packages found", len(all))
	}
	return all
}

// TestReads: a package imports os only to read what the table says, and /proc is read
// where it says so.
func TestReads(t *testing.T) {
	for _, p := range packages(t) {
		name := nameOf(p.ImportPath)
		if slices.Contains(forTests, name) || len(p.GoFiles) == 0 {
			continue
		}
		if _, may := reads[name]; may != slices.Contains(p.Imports, "os") && name != runtimes {
			t.Errorf("%s: the table of what packages read says %v", name, may)
		}
		if may, does := slices.Contains(procs, name), readsProc(t, p); may != does && name != runtimes {
			t.Errorf("%s: reads /proc or /sys: %v; the table says %v", name, does, may)
		}
		for _, imported := range p.Imports {
			if owner, ok := only[imported]; ok && name != owner {
				t.Errorf("%s imports %s, which is for %s alone", name, imported, owner)
			}
		}
	}
}

// readsProc reports whether a package has a path in /proc or /sys among its strings.
func readsProc(t *testing.T, p goPackage) bool {
	return slices.Contains(p.Imports, module+"internal/proc") || has(t, p, func(n ast.Node) bool {
		s, is := n.(*ast.BasicLit)
		return is && s.Kind == token.STRING && procPath.MatchString(s.Value)
	})
}

// readsClock reports whether a package uses one of clocks.
func readsClock(t *testing.T, p goPackage) bool {
	return slices.Contains(p.Imports, "time") && has(t, p, func(n ast.Node) bool {
		s, is := n.(*ast.SelectorExpr)
		if !is || !slices.Contains(clocks, s.Sel.Name) {
			return false
		}
		of, is := s.X.(*ast.Ident)
		return is && of.Name == "time"
	})
}

// has reports whether the source of a package has a node.
func has(t *testing.T, p goPackage, wanted func(ast.Node) bool) (found bool) {
	t.Helper()
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			found = found || wanted(n)
			return !found
		})
	}
	return found
}

// procPath is a string that is a path in /proc or /sys.
var procPath = regexp.MustCompile("^[\"`]/(proc|sys)[/\"`]")

// TestPure: a pure package reads and changes nothing outside the process, also through
// what it imports.
func TestPure(t *testing.T) {
	imports := map[string][]string{}
	read := map[string]goPackage{}
	for _, p := range packages(t) {
		imports[p.ImportPath], read[p.ImportPath] = p.Imports, p
	}
	for _, g := range groups {
		if !g.pure {
			continue
		}
		for _, pure := range g.packages {
			for _, reached := range reach(imports, module+pure) {
				if readsClock(t, read[reached]) {
					t.Errorf("%s is pure, but reaches the clock through %s", pure, reached)
				}
				for _, imported := range imports[reached] {
					if slices.Contains(effects, imported) {
						t.Errorf("%s is pure, but reaches %s through %s", pure, imported, reached)
					}
				}
			}
		}
	}
}

// clients are the packages that see a host through its agent and its runtimes alone: it may be another machine.
var clients = []string{"internal/apply", "internal/cli", "internal/observe", "internal/project", "internal/recovery", "internal/render", "internal/selftest", "internal/watch"}

// TestClientsReadNoHost: they read no process and no setting of the kernel, no ledger, and no file of a host's admin. Only
// the agent reaches MPS daemons.
func TestClientsReadNoHost(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(p.Imports, module+"internal/mps") && nameOf(p.ImportPath) != "internal/agent" {
			t.Errorf("%s imports internal/mps, which is for the agent", p.ImportPath)
		}
		if !slices.Contains(clients, nameOf(p.ImportPath)) {
			continue
		}
		if readsProc(t, p) {
			t.Errorf("%s reads /proc or /sys", p.ImportPath)
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				of, is := n.(*ast.SelectorExpr)
				if !is {
					return true
				}
				if in, named := of.X.(*ast.Ident); named && in.Name == "ledger" && (of.Sel.Name == "Book" || of.Sel.Name == "SystemDir") {
					t.Errorf("%s: %s uses %s.%s, which is for the agent", p.ImportPath, name, in.Name, of.Sel.Name)
				}
				return true
			})
		}
	}
}

// TestNoEngine: what a session needs inside is made without a container engine.
func TestNoEngine(t *testing.T) {
	imports := map[string][]string{}
	for _, p := range packages(t) {
		imports[p.ImportPath] = p.Imports
	}
	for _, reached := range reach(imports, module+"internal/inside") {
		for _, imported := range append(imports[reached], reached) {
			if strings.HasPrefix(imported, "github.com/docker/docker/") || nameOf(imported) == runtimes {
				t.Errorf("internal/inside reaches %s through %s", imported, reached)
			}
		}
	}
}

func reach(imports map[string][]string, from string) []string {
	all, todo := []string{from}, []string{from}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		for _, i := range imports[next] {
			if strings.HasPrefix(i, module) && !slices.Contains(all, i) {
				all, todo = append(all, i), append(todo, i)
			}
		}
	}
	return all
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles)+len(p.CgoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
