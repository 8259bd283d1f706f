package resolve_test

import (
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
)

// load reads a configuration.
func load(t *testing.T, text string) *config.Intent {
	t.Helper()
	intent, diags := config.Load(map[string][]byte{"x.hcl": []byte(text)}, config.Options{Dir: "/project", Target: catalog.Target, Simulate: func(string) error { return nil }})
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, text)
	}
	return intent
}

// TestDown: an expired session stays down while its block says the same, wherever it is; any other value, also a
// sensitive one, or an extension brings it up.
func TestDown(t *testing.T) {
	const text = `session "a" {
  target = "2060"
  ttl    = "8h"
  env    = { SEED = 1, TOKEN = sensitive("abc") }
}
`
	a := resource.One("a")
	prior := resource.Prior{Key: "k"}
	record := resolve.Expired(load(t, text), prior, a, resource.End{At: 100, Why: "ttl"})
	if record.At != 100 || record.Why != "ttl" || record.Block == "" {
		t.Fatalf("%+v", record)
	}
	edited := func(from, to string) string {
		out := strings.Replace(text, from, to, 1)
		if out == text {
			t.Fatalf("%q is not in the text", from)
		}
		return out
	}
	for name, test := range map[string]struct {
		text string
		down bool
	}{
		"the same":           {text, true},
		"a comment":          {"# a comment\n\n" + text, true},
		"another spelling":   {edited(`"2060"`, `"RTX 2060"`), true},
		"another ttl":        {edited("8h", "9h"), false},
		"the same ttl":       {edited("8h", "480m"), true},
		"another target":     {edited("2060", "3090"), false},
		"another variable":   {edited("SEED = 1", "SEED = 2"), false},
		"another secret":     {edited("abc", "abd"), false},
		"another attribute":  {edited("ttl ", "strict = true\n  ttl "), false},
		"another session":    {edited(`"a"`, `"b"`), false},
		"with a second host": {`host "x" { simulate = "1 x h200" }` + "\n" + text, false},
	} {
		intent := load(t, test.text)
		down := resolve.Down(intent, prior.Expire(record))
		if down[a] != test.down {
			t.Errorf("%s: down is %v", name, down)
		}
		if rest := resolve.WithoutDown(intent, down); len(rest.Sessions) != len(intent.Sessions)-len(down) {
			t.Errorf("%s: %d sessions remain", name, len(rest.Sessions))
		}
	}
	record.ExtendedTo = 5000
	if down := resolve.Down(load(t, text), prior.Expire(record)); len(down) > 0 {
		t.Error("it stays down after an extension")
	}
}

// TestDownAnywhere: the host that cosplay has chosen for an expired session is no change of its block.
func TestDownAnywhere(t *testing.T) {
	const text = `host "x" { simulate = "1 x h200" }
host "y" { simulate = "1 x h200" }
session "a" {
  target = "2060"
  ttl    = "8h"
}
`
	a, prior, chosen := resource.One("a"), resource.Prior{Key: "k"}, load(t, text)
	chosen.Sessions[0].Host = "y"
	prior = prior.Expire(resolve.Expired(chosen, prior, a, resource.End{At: 100, Why: "ttl"}))
	if !resolve.Down(load(t, text), prior)[a] {
		t.Error("it comes up again")
	}
	if resolve.Down(load(t, strings.ReplaceAll(text, "8h", "9h")), prior)[a] {
		t.Error("it stays down although its block was edited")
	}
}
