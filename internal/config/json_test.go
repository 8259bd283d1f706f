package config_test

import (
	"strings"
	"testing"
)

// A file in JSON can be a list of objects, which count as one.
func TestListsInJSON(t *testing.T) {
	src := `[{"//": "two blocks", "variable": {"image": {"default": "x"}}},
		{"session": {"a": {"target": "2060"}}}, {"session": [{"b": {"target": "3090", "image": "${var.image}"}}]}]`
	intent, diags := load(t, map[string]string{"a.hcl.json": src})
	if len(diags) > 0 || len(intent.Sessions) != 2 || intent.Sessions[1].Spec.Image != "x:latest" {
		t.Errorf("%v, %v", intent.Sessions, diags)
	}
	for src, want := range map[string]string{
		`[{"sesion": {"a": {}}}]`:          `Did you mean "session"`,
		`["session"]`:                      "object",
		`[{"session": {"a": {}}}, 7]`:      "object",
		`[{"variable": {"x": {}}}, {"a":]`: "comma without a value behind it",
	} {
		if _, diags := load(t, map[string]string{"a.hcl.json": src}); !strings.Contains(strings.Join(allWords(diags), "\n"), want) {
			t.Errorf("%s: %v", src, allWords(diags))
		}
	}
}
