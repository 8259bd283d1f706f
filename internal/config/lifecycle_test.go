package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
)

// In JSON, a text that is an address refers to a session; any other text is a value.
func TestReferencesInJSON(t *testing.T) {
	intent, diags := load(t, map[string]string{"fleet.hcl.json": `{"session": {
		"a": {"target": "2060"},
		"b": {"target": "2060", "depends_on": ["session.a"], "lifecycle": {"replace_triggered_by": ["session.a.image", "v1"]}}
	}}`})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	b := intent.Sessions[1]
	if d := cmp.Diff([]string{"a"}, b.DependsOn); d != "" {
		t.Error(d)
	}
	triggers := b.Lifecycle.Triggers
	if len(triggers) != 1 || triggers[0].Of != (resource.Reference{Address: resource.One("a"), Block: true}) || triggers[0].Attribute != "image" || b.Lifecycle.Digest == "" {
		t.Errorf("%+v, digest %q", triggers, b.Lifecycle.Digest)
	}
}
