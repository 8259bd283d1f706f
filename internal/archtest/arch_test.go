// Package archtest holds the tests of the house rules: which package may import
// what, and that each says what it is for.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the prefix of our own packages.
const module = "cosplay/"

// effects are imports by which a package could touch or ask the world.
var effects = []string{
	"os", "os/exec", "os/user", "os/signal", "net", "net/http", "log", "log/slog", "time", "syscall",
	"github.com/NVIDIA/go-nvml/pkg/nvml", "github.com/docker/docker/client", "github.com/fatih/color",
	module + "internal/agent", module + "internal/observe", module + "internal/apply", module + "internal/durable",
	module + "internal/sim", module + "internal/runtime/process", module + "internal/runtime/docker",
	module + "internal/runtime/docker/image", module + "internal/cdi", module + "driver",
}

// forbidden lists, by package, what it may not import, with the reason.
var forbidden = map[string]struct {
	imports []string
	reason  string
}{
	"internal/resource":        {append(effects, module+"internal/fit", module+"internal/diff", module+"internal/plan"), "it is the vocabulary: values alone"},
	"internal/fit":             {effects, "a function of values"},
	"internal/place":           {effects, "a function of values"},
	"internal/resolve":         {effects, "a function of values"},
	"internal/diff":            {effects, "a function of values"},
	"internal/plan":            {effects, "a function of values"},
	"internal/preflight":       {effects, "a function of values: what it takes to be asked is asked by project"},
	"internal/salvage":         {effects, "a function of values"},
	"internal/verdict":         {effects, "a function of values"},
	"internal/disguise/verify": {effects, "a function of values: who asks is project"},
	"internal/config":          {[]string{"os", "os/exec", "net", "log", module + "internal/agent", module + "internal/sim"}, "files and names come in through Options"},
	"internal/apply":           {[]string{module + "internal/agent", module + "internal/runtime/process", module + "internal/runtime/docker", module + "internal/config", "github.com/fatih/color"}, "it declares what it writes to and decides nothing"},
	"internal/observe":         {[]string{module + "internal/agent", module + "internal/runtime/process", module + "internal/runtime/docker", "github.com/fatih/color"}, "it declares what it reads from"},
	"internal/render":          {[]string{module + "internal/agent", module + "internal/project", module + "internal/sim", module + "internal/state"}, "it is given values and writes text"},
}

// only lists imports that a single package may have.
var only = map[string]string{
	"github.com/fatih/color":             "internal/render",
	"github.com/NVIDIA/go-nvml/pkg/nvml": "internal/agent",
	"github.com/spf13/cobra":             "internal/cli",
}

type goPackage struct {
	ImportPath string
	Doc        string
	Imports    []string
	GoFiles    []string
	CgoFiles   []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.Command("go", "list", "-e", "-json=ImportPath,Doc,Imports,GoFiles,CgoFiles", module+"...")
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

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		seen[name] = true
		for _, imported := range p.Imports {
			if rule := forbidden[name]; slices.Contains(rule.imports, imported) {
				t.Errorf("%s imports %s: %s", name, imported, rule.reason)
			}
			if owner, ok := only[imported]; ok && name != owner {
				t.Errorf("%s imports %s, which is for %s alone", name, imported, owner)
			}
		}
	}
	for name := range forbidden {
		if !seen[name] {
			t.Errorf("there is a rule for %s, but no such package", name)
		}
	}
}

// TestPureBelow makes sure that a pure package does not reach the world through
// one of our own that it imports.
func TestPureBelow(t *testing.T) {
	imports := map[string][]string{}
	for _, p := range packages(t) {
		imports[p.ImportPath] = p.Imports
	}
	for _, pure := range []string{"resource", "fit", "place", "resolve", "diff", "plan", "preflight", "disguise/verify"} {
		for _, reached := range reach(imports, module+"internal/"+pure) {
			for _, imported := range imports[reached] {
				if slices.Contains(effects, imported) {
					t.Errorf("%s is pure, but reaches %s through %s", pure, imported, reached)
				}
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
