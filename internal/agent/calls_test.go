package agent

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

var updateDocs = flag.Bool("update", false, "write the table of calls into docs/reference/nvml.md")

var functionName = regexp.MustCompile(`^nvml[A-Z][A-Za-z0-9_]*$`)

// TestEveryCallIsInTheTable: the agent names each function of NVML that it calls, go-nvml
// is called only where the name is given, and the table has these functions and no
// others.
func TestEveryCallIsInTheTable(t *testing.T) {
	used := map[string]bool{"nvmlShutdown": true} // when the agent ends
	isNVML := nvmlMethods()
	set := token.NewFileSet()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || path == "calls.go" {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && isNVML[selector.Sel.Name] && !inTable(selector.Sel.Name) {
				t.Errorf("%s: %s is a function of NVML that is not in the table of calls", set.Position(n.Pos()), selector.Sel.Name)
			}
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && functionName.MatchString(text) {
					used[text] = true
				}
			}
			return true
		})
	}
	// The functions that C code of the package looks up.
	source, err := os.ReadFile("direct.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`function\(library, "(nvml\w+)"\)`).FindAllSubmatch(source, -1) {
		used[string(found[1])] = true
	}
	for name := range used {
		if !slices.ContainsFunc(calls, func(c Call) bool { return c.Name == name }) {
			t.Errorf("the agent calls %s, which is not in the table of calls", name)
		}
	}
	for _, c := range calls {
		if !used[c.Name] {
			t.Errorf("the table has %s, which the agent does not call", c.Name)
		}
	}
	if len(used) != len(calls) {
		t.Error("the table has a function twice")
	}
}

// nvmlMethods are the methods by which go-nvml calls functions of NVML.
func nvmlMethods() map[string]bool {
	all := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[nvml.Interface](), reflect.TypeFor[nvml.Device](), reflect.TypeFor[nvml.GpuInstance](), reflect.TypeFor[nvml.ComputeInstance]()} {
		for i := range of.NumMethod() {
			all[of.Method(i).Name] = true
		}
	}
	delete(all, "Extensions") // go-nvml's own
	return all
}

// inTable reports whether the table has the function that a method calls, in one of its
// versions.
func inTable(method string) bool {
	return slices.ContainsFunc(calls, func(c Call) bool {
		for _, of := range []string{"nvml", "nvmlDevice", "nvmlGpuInstance", "nvmlComputeInstance"} {
			if version, ok := strings.CutPrefix(c.Name, of+method); ok && (version == "" || strings.HasPrefix(version, "_v")) {
				return true
			}
		}
		return false
	})
}

// TestDegradation: four codes say that a call is not available, two that the GPU is out
// of order, and a required call is given up by none.
func TestDegradation(t *testing.T) {
	const power, required = "nvmlDeviceGetPowerUsage", "nvmlDeviceGetUUID"
	for code, want := range map[nvml.Return]bool{
		nvml.ERROR_NOT_SUPPORTED: true, nvml.ERROR_NO_PERMISSION: true, nvml.ERROR_FUNCTION_NOT_FOUND: true, nvml.ERROR_UNKNOWN: true,
		nvml.ERROR_GPU_IS_LOST: false, nvml.ERROR_RESET_REQUIRED: false, nvml.ERROR_IN_USE: false,
	} {
		at := &Error{Call: power, Code: int(code), Message: code.Error()}
		if got := unavailable(at); got != want {
			t.Errorf("code %d says that a call is not available: %v", code, got)
		}
		lacks, is := degradation(at)
		if broken := code == nvml.ERROR_GPU_IS_LOST || code == nvml.ERROR_RESET_REQUIRED; is == broken {
			t.Errorf("code %d costs a reading: %v", code, is)
		}
		if is && (lacks.Feature != resource.ReadingDraw || lacks.Code != int(code) || lacks.Set) {
			t.Errorf("code %d: %+v", code, lacks)
		}
		if _, is := degradation(&Error{Call: required, Code: int(code)}); is {
			t.Errorf("code %d gives up a required call", code)
		}
	}
	if unavailable(missing(power, "/lib")) != true {
		t.Error("a function that the library does not export is not available")
	}
}

// TestSlicesThatCannotBeRead do not count as removed: each call that lists slices
// keeps them when it is not available.
func TestSlicesThatCannotBeRead(t *testing.T) {
	host, client := newHost(t, Options{}, "h200")
	gpu := read(t, client).GPUs[0].UUID
	if err := change(client, gpu, resource.MIGMode, resource.On); err != nil {
		t.Fatal(err)
	}
	made, err := client.CreateSlice(t.Context(), resource.Slice{GPU: gpu, Profile: "1g.18gb", Size: 1}, resource.Need{SMs: 16})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if c.Feature != resource.FeatureMIG || c.Destroy != Leaves {
			continue
		}
		for _, code := range []nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_UNKNOWN} {
			if err := host.SetFault(sim.Fault{Function: c.Name, Action: sim.Answer, Code: int(code)}); err != nil {
				t.Fatal(err)
			}
			if c.Name != "nvmlDeviceSetMigMode" {
				if err := client.DestroySlice(t.Context(), made); err == nil {
					t.Errorf("without %s (%d) the slice is destroyed", c.Name, code)
				}
			}
			g := read(t, client).GPUs[0]
			if lost := len(g.Slices) == 0 || g.Slices[0].GPUInstance != made.GPUInstance; lost && !g.Unread(resource.FeatureMIG) {
				t.Errorf("without %s (%d) there is no slice, and nothing says that it cannot be read: %+v", c.Name, code, g)
			}
			if err := host.ClearFaults(); err != nil {
				t.Fatal(err)
			}
		}
		if now := read(t, client).GPUs[0].Slices; len(now) != 1 || now[0].UUID != made.UUID { // its compute instance went
			made.UUID = ""
		}
	}
}

const (
	docsPath  = "../../docs/reference/nvml.md"
	docsBegin = "<!-- table of calls: go test ./internal/agent -run TestDocsHaveTheTable -update -->\n"
)

// TestDocsHaveTheTable: the documentation has the table that the agent works by.
func TestDocsHaveTheTable(t *testing.T) {
	text, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), docsBegin)
	if !found {
		t.Fatalf("%s has no line %q", docsPath, docsBegin)
	}
	want := docsTable()
	if after == want {
		return
	}
	if !*updateDocs {
		t.Fatalf("the table in %s is not that of the code; write it with -update", docsPath)
	}
	if err := os.WriteFile(docsPath, []byte(before+docsBegin+want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// docsTable has the functions in the order of calls, those with the same consequences in one row.
func docsTable() string {
	ending := map[Ending]string{Restores: "", Leaves: "leaves what needs it", Stops: "stops"}
	names, rows := map[string][]string{}, []string{}
	for _, c := range Calls() {
		row := fmt.Sprintf("%s | %s | %s |\n", importance(c), c.Without, ending[c.Destroy])
		if names[row] == nil {
			rows = append(rows, row)
		}
		names[row] = append(names[row], "`"+c.Name+"`")
	}
	var b strings.Builder
	b.WriteString("\n| functions | feature | without one of them | `destroy`, if it worked at `apply` |\n|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s | %s", strings.Join(names[row], ", "), row)
	}
	return b.String()
}

func importance(c Call) string {
	if c.Optional {
		return "optional"
	}
	return cmp.Or(string(c.Feature), "required")
}

// TestFeaturesHaveWords: what a GPU is used without can be said in a sentence.
func TestFeaturesHaveWords(t *testing.T) {
	var bare []string
	for _, c := range calls {
		if c.Feature != "" && c.Feature.Words() == string(c.Feature) {
			bare = append(bare, string(c.Feature))
		}
	}
	if len(bare) > 0 {
		t.Errorf("features without words: %v", slices.Compact(bare))
	}
}
