package archtest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the picture in docs/developers/architecture.md")

// group is packages that may import the same groups.
type group struct {
	name     string
	packages []string // below the module
	inner    bool     // they may import each other
	pure     bool     // they read and change nothing outside the process, also through what they import
	imports  []string // groups
}

// groups are all packages. Each may import its own list, and no other package of the module.
var groups = []group{
	{name: "values", packages: []string{"internal/checksum", "internal/pattern", "internal/prose", "internal/public", "internal/resource"}, inner: true, pure: true},
	{name: "tools", packages: []string{"driver", "internal/durable", "internal/fullscreen", "internal/interrupt", "internal/proc", "internal/shared", "internal/terminal"}, inner: true},
	{name: "decisions", packages: []string{"catalog", "internal/capacity", "internal/config", "internal/diff", "internal/disguise/verify", "internal/findings", "internal/fit", "internal/gpucosplay", "internal/hostfile", "internal/kubernetes", "internal/place", "internal/plan",
		"internal/preflight", "internal/resolve", "internal/salvage", "internal/verdict", "internal/words"}, inner: true, pure: true, imports: []string{"values"}},
	{name: "records", packages: []string{"internal/ledger", "internal/state"}, imports: []string{"values", "tools"}},
	{name: "hardware", packages: []string{"internal/agent", "internal/mps", "internal/sim"}, inner: true, imports: []string{"values", "tools", "decisions", "records"}},
	{name: "init", packages: []string{"internal/initd", "internal/initd/account", "internal/initd/boot", "internal/initd/environ", "internal/initd/launch", "internal/initd/scp", "internal/initd/sshd"}, inner: true},
	{name: "sessions", packages: []string{"internal/cdi", "internal/disguise", "internal/inside", "internal/remote", "internal/runtime", "internal/runtime/all", "internal/runtime/docker/image", runtimes, "internal/transfer"}, inner: true,
		imports: []string{"values", "tools", "decisions", "hardware", "init"}},
	{name: "observe", packages: []string{"internal/observe"}, imports: []string{"values"}},
	{name: "apply", packages: []string{"internal/apply"}, imports: []string{"values", "tools", "decisions", "records"}},
	{name: "render", packages: []string{"internal/render"}, imports: []string{"values", "tools", "decisions", "apply"}},
	{name: "machine", packages: []string{"internal/machine"}, imports: []string{"values", "tools", "decisions", "records", "hardware", "sessions", "observe", "apply"}},
	{name: "project", packages: []string{"internal/project"}, imports: []string{"values", "tools", "decisions", "records", "hardware", "sessions", "observe", "apply", "machine"}},
	{name: "recovery", packages: []string{"internal/recovery"}, imports: []string{"values", "tools", "decisions", "records", "sessions", "apply", "machine", "project"}},
	{name: "selftest", packages: []string{"internal/selftest"}, imports: []string{"values", "tools", "decisions", "hardware", "sessions", "machine", "project"}},
	{name: "alerts", packages: []string{"internal/alerts"}, imports: []string{"values", "tools", "decisions"}},
	{name: "metrics", packages: []string{"internal/metrics"}, imports: []string{"values", "decisions"}},
	{name: "watch", packages: []string{"internal/watch"}, imports: []string{"metrics", "values", "tools", "decisions", "sessions", "apply", "project"}},
	{name: "cli", packages: []string{"internal/cli"}, imports: []string{"values", "tools", "decisions", "records", "hardware", "sessions", "apply", "render", "machine", "project", "recovery", "selftest", "alerts", "watch"}},
	{name: "cosplay", packages: []string{"cmd/cosplay"}, imports: []string{"cli"}},
	{name: "cosplay-dist", packages: []string{"cmd/cosplay-dist"}, imports: []string{"values", "tools", "cli"}},
	{name: "cosplay-init", packages: []string{"cmd/cosplay-init"}, imports: []string{"init"}},
}

// forTests are packages that only tests import.
var forTests = []string{"docs/reference/schema", "internal/archtest", "internal/enginetest", "internal/initd/inittest", "internal/need", "internal/projecttest", "internal/public/publictest", "internal/wiretest", "internal/worldtest"}

// groupOf finds the group of a package below the module; "" is none.
func groupOf(name string) string {
	for _, g := range groups {
		if slices.Contains(g.packages, name) {
			return g.name
		}
	}
	return ""
}

// TestGroups: each package is in a group, and the groups import what their lists say: no
// more, and no less.
func TestGroups(t *testing.T) {
	seen, used := map[string]bool{}, map[string]bool{}
	for _, p := range packages(t) {
		name := nameOf(p.ImportPath)
		seen[name] = true
		if slices.Contains(forTests, name) {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return slices.Contains(g.packages, name) })
		if i < 0 {
			t.Errorf("%s is in no group", name)
			continue
		}
		for _, imported := range p.Imports {
			other, own := strings.CutPrefix(imported, module)
			if !own {
				continue
			}
			to := groupOf(nameOf(other))
			if nameOf(other) == runtimes && name != "internal/runtime/all" && name != "internal/cli" { // cli: cosplay build
				t.Errorf("%s imports %s; ask resource.RuntimeNamed or internal/runtime what a runtime can do", name, other)
			}
			if to != groups[i].name && !slices.Contains(groups[i].imports, to) || to == groups[i].name && !groups[i].inner {
				t.Errorf("%s imports %s, which is not among what %s may import", name, other, groups[i].name)
			}
			used[groups[i].name+" "+to] = true
		}
	}
	for _, g := range groups {
		for _, name := range g.packages {
			if !seen[name] {
				t.Errorf("%s is in group %s and does not exist", name, g.name)
			}
		}
		for _, to := range g.imports {
			if !used[g.name+" "+to] {
				t.Errorf("%s may import %s and does not", g.name, to)
			}
		}
	}
}

// The picture is between these lines.
const (
	document      = "../../docs/developers/architecture.md"
	pictureBegins = "<!-- go test ./internal/archtest -update writes this picture. -->\n"
	pictureEnds   = "<!-- end of the picture -->\n"
)

// TestPicture: the picture of the groups in the docs is that of the table.
func TestPicture(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(data), pictureBegins)
	now, after, ends := strings.Cut(rest, pictureEnds)
	if !begins || !ends {
		t.Fatalf("%s has no place for the picture", document)
	}
	want := picture()
	switch {
	case now == want:
	case *update:
		if err := os.WriteFile(document, []byte(before+pictureBegins+want+pictureEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the picture in %s is not that of the table: go test ./internal/archtest -update", document)
	}
}

// picture draws the groups for mermaid. An arrow is left out where others lead to the same
// group.
func picture() string {
	var out strings.Builder
	out.WriteString("```mermaid\nflowchart TD\n")
	for _, g := range groups {
		var names []string
		for _, p := range g.packages {
			names = append(names, strings.TrimPrefix(p, "internal/"))
		}
		label := strings.Join(names, ", ")
		if label != g.name {
			label = "<b>" + g.name + "</b><br>" + label
		}
		fmt.Fprintf(&out, "  %s[\"%s\"]\n", g.name, label)
	}
	for _, g := range groups {
		for _, to := range g.imports {
			if !slices.ContainsFunc(g.imports, func(by string) bool { return by != to && leads(by, to) }) {
				fmt.Fprintf(&out, "  %s --> %s\n", g.name, to)
			}
		}
	}
	out.WriteString("```\n")
	return out.String()
}

// leads reports whether a group imports another, also through others.
func leads(from, to string) bool {
	i := slices.IndexFunc(groups, func(g group) bool { return g.name == from })
	return slices.ContainsFunc(groups[i].imports, func(next string) bool { return next == to || leads(next, to) })
}
