package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/worldtest"
)

// values are, for each attribute of a session, two values that it can have.
// The first is what the others are changed with; "" leaves the attribute out.
var values = map[string][2]string{
	"count":      {"", "1"}, // the lone session becomes the first
	"depends_on": {"", "[session.none]"},
	"for_each":   {"", ""}, // another address: a moved block is for that
	"target":     {`"2060"`, `"1660"`},
	"host":       {"", `"lab"`},
	"hosts":      {"", ""}, // excludes host
	"gpu":        {"", "0"},
	"fraction":   {"", ""}, // replaces target: TestPlacedAnew
	"gpus":       {"", ""}, // excludes gpu: TestPlacedAnew

	"oversubscribe": {"", ""}, // needs sharing: TestPlacedAnew
	"sharing":       {"", `"mig"`},
	"slice":         {"", `"1g.18gb"`},
	"name":          {"", `"lab-a"`},
	"entrypoint":    {"", `"image"`},
	"image":         {`"one"`, `"two"`},
	"pull":          {`"never"`, `"missing"`},
	"command":       {"", `["sleep", "1"]`},
	"workspace":     {"", `"/elsewhere"`},
	"env":           {"", `{ SEED = 1 }`},
	"strict":        {"", "true"},
	"capability":    {"", `"target"`},
	"sudo":          {"", "false"},
	"restart":       {"", `"no"`},
	"ports":         {"", `["8080:80"]`},
	"network":       {"", `"lab-net"`},

	"ttl":          {"", `"8h"`},
	"idle_timeout": {"", `"2h"`},
	"stop_at":      {"", `"2026-12-01T18:00:00Z"`},

	"fit.prefer":    {"", `"balanced"`},
	"fit.tolerance": {"", `"11%"`},
	"fit.max_error": {"", `"90%"`},

	"volume.source":    {`"/data"`, `"/other"`},
	"volume.target":    {`"/data"`, `"/other"`},
	"volume.read_only": {"", "true"},

	"ssh.enabled":         {"", "false"},
	"ssh.port":            {"", "2200"},
	"ssh.bind":            {"", `"127.0.0.2"`},
	"ssh.authorized_keys": {"", `["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2k3l5Q9wXKz0o0wq4C3k8o0bq7Yb8v2pZ5x1c9n4mV me"]`},

	"limits.cpus":     {"", "4"},
	"limits.memory":   {"", `"32GiB"`},
	"limits.shm_size": {"", `"8GiB"`},
	"limits.pids":     {"", "4096"},

	"lifecycle.prevent_destroy":      {"", "true"},
	"lifecycle.ignore_changes":       {"", "[env]"},
	"lifecycle.replace_triggered_by": {"", `["a value"]`},
}

// fleet writes a session with these values, by path.
func fleetOf(with map[string]string) string {
	var b strings.Builder
	b.WriteString(lab + "session \"none\" {\n  count  = 0\n  target = \"2060\"\n}\nsession \"worker\" {\n")
	blocks := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(with)) {
		block, name, inside := strings.Cut(path, ".")
		switch {
		case with[path] == "":
		case inside:
			blocks[block] = append(blocks[block], fmt.Sprintf("    %s = %s\n", name, with[path]))
		default:
			fmt.Fprintf(&b, "  %s = %s\n", path, with[path])
		}
	}
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		fmt.Fprintf(&b, "  %s {\n%s  }\n", block, strings.Join(blocks[block], ""))
	}
	b.WriteString("}\n")
	return b.String()
}

func firstValues() map[string]string {
	with := map[string]string{}
	for path, v := range values {
		with[path] = v[0]
	}
	return with
}

// sessionAttributes are those of the language, by path.
func sessionAttributes() map[string]config.Attribute {
	all := map[string]config.Attribute{}
	for _, block := range config.Schema().Blocks {
		if block.Name != "session" {
			continue
		}
		for _, a := range block.Attributes {
			all[a.Name] = a
		}
		for _, inner := range block.Blocks {
			for _, a := range inner.Attributes {
				all[inner.Name+"."+a.Name] = a
			}
		}
	}
	return all
}

// TestChangingOneAttribute: each attribute that is changed alone leads to what the reference says, and to nothing
// else; and once it is applied there is nothing left to do.
func TestChangingOneAttribute(t *testing.T) {
	for path, a := range sessionAttributes() {
		t.Run(path, func(t *testing.T) {
			v, ok := values[path]
			if !ok {
				t.Fatal("there are no values for it in this test")
			}
			w := &world{World: worldtest.New(t, "h200").WithDocker("one:latest", "two:latest"), t: t}
			with := firstValues()
			w.bring(fleetOf(with))
			with[path] = v[1]
			p, diags := w.plan(fleetOf(with))
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if len(p.Diff.Sessions) != 1 {
				t.Fatalf("%d sessions change:\n%s", len(p.Diff.Sessions), p)
			}
			c := p.Diff.Sessions[0]
			if got := comesOf(c); !slices.Contains(allowed(a.Change), got) {
				t.Errorf("%s, but the reference says %q: %+v", got, a.Change, c.Fields)
			}
			for _, f := range c.Fields {
				if !about(path, string(f.Kind)) {
					t.Errorf("%s changes as well: %v -> %v", f.Kind, f.From, f.To)
				}
			}
			w.apply(p)
			again, diags := w.plan(fleetOf(with))
			if diags.HasErrors() || again.Diff.Changes() || !again.Empty() {
				t.Errorf("after it there is more to do: %v\n%s", diags, again)
			}
		})
	}
}

// bring applies a configuration, after which nothing must be left to do.
func (w *world) bring(text string) {
	w.t.Helper()
	for range 2 {
		p, diags := w.plan(text)
		if diags.HasErrors() {
			w.t.Fatalf("%v\n%s", diags, text)
		}
		if w.prior.Serial++; w.prior.Serial == 2 {
			if p.Diff.Changes() {
				w.t.Fatalf("there is more to do:\n%s", p)
			}
			return
		}
		w.apply(p)
		w.prior.Serial = 1
	}
}

// comesOf is what a change does to a session, in a word.
func comesOf(c diff.SessionChange) string {
	switch {
	case c.Action == diff.NoOp, c.Action == diff.Move:
		return "nothing"
	case c.Action == diff.Replace && c.Slice != diff.Keep:
		return "another slice"
	case c.Action == diff.Replace:
		return "another container"
	case c.Action == diff.Update && c.Slice == diff.Keep:
		return "an update"
	}
	return fmt.Sprintf("%s, slice %s, container %s", c.Action, c.Slice, c.Body)
}

// allowed is what may come of a change.
func allowed(change config.Change) []string {
	switch change {
	case config.Update:
		return []string{"an update"}
	case config.Replace:
		return []string{"another container"}
	case config.Replaces:
		return []string{"another container", "another slice", "an update", "nothing"}
	}
	return []string{"nothing"}
}

// about reports whether a field belongs to an attribute.
func about(path, field string) bool {
	block, _, _ := strings.Cut(path, ".")
	switch {
	case field == path, field == block, strings.HasPrefix(field, path+"."), field == block+"s":
		return true
	case strings.HasPrefix(path, "lifecycle."):
		return "lifecycle."+field == path
	}
	// What the target asks for decides where the session sits.
	return path == "target" && slices.Contains([]string{"slice", "fit-clock", "target-figures"}, field)
}

// TestEveryAttributeSet: with all of them set at once there is nothing left to do after an apply.
func TestEveryAttributeSet(t *testing.T) {
	with := map[string]string{}
	for path, v := range values {
		if with[path] = v[1]; v[1] == "" {
			with[path] = v[0]
		}
	}
	with["count"] = "2"
	with["ssh.port"] = "2200 + count.index"
	with["ports"] = `["${8080 + count.index}:80"]`
	with["name"] = `"lab-${count.index}"`
	with["ssh.enabled"] = "true"
	w := &world{World: worldtest.New(t, "h200").WithDocker("one:latest", "two:latest"), t: t}
	w.bring(fleetOf(with))
	if len(w.prior.Sessions) != 2 || w.prior.Sessions[1].Runtime != "docker" {
		t.Errorf("%d sessions", len(w.prior.Sessions))
	}
}

// TestPlacedAnew: what asks for another slice gets one, by each attribute that the
// reference says it of, but for the host, of which this fleet has one.
func TestPlacedAnew(t *testing.T) {
	for path, a := range sessionAttributes() {
		if a.Change != config.Replaces || path == "host" || path == "hosts" {
			continue
		}
		t.Run(path, func(t *testing.T) {
			w := &world{World: worldtest.New(t, "h200", "h200").WithDocker("one:latest"), t: t}
			with := firstValues()
			with["target"], with["gpu"] = `"3090"`, "0"
			w.bring(fleetOf(with))
			with[path] = map[string]string{"target": `"2060"`, "gpu": "1", "slice": `"7g.141gb"`, "sharing": `"exclusive"`, "fit.prefer": `"bandwidth"`, "fit.tolerance": "0", "fit.max_error": `"5%"`, "fraction": "0.2", "gpus": "2", "oversubscribe": "true"}[path]
			for _, excluded := range map[string][]string{"fraction": {"target"}, "gpus": {"gpu"}}[path] {
				with[excluded] = ""
			}
			if path == "oversubscribe" {
				with["sharing"] = `"time-slice"`
			}
			p, diags := w.plan(fleetOf(with))
			if diags.HasErrors() || len(p.Diff.Sessions) != 1 || comesOf(p.Diff.Sessions[0]) != "another slice" {
				t.Errorf("%v\n%s", diags, p)
			}
		})
	}
}
