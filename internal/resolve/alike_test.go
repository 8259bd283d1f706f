package resolve_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

const (
	key      = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4aE0S4tVE5mUr1hXWhVTdGyOWQ5AOUGRjKCUMGyJnZ"
	otherKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6MDEyMzQ1"
)

const alike = `host "lab" { runtime = "docker" }
session "w" {
  target = "2060"
  image  = "debian:12"
  env    = { SEED = "1", TOKEN = sensitive("x") }
  ports  = ["8888:8888", "9999:9999"]
  volume {
    source = "/data"
    target = "/data"
  }
  volume {
    source = "cache"
    target = "/cache"
  }
  ssh { authorized_keys = ["` + key + ` ann@desk", "` + otherKey + `"] }
}`

// TestSpelling: order, spelling and comments that mean nothing to the engine do not recreate a container.
func TestSpelling(t *testing.T) {
	w := inDocker(t)
	prior := applied(t, w, alike, resource.Prior{Key: "k"})
	w.Host().Bodies[0].Hash = prior.Sessions[0].Hash(prior.Key)
	volumes := alike[strings.Index(alike, "  volume {"):strings.Index(alike, "  ssh {")]
	half := strings.Index(volumes, "}\n") + 2
	for name, change := range map[string]struct {
		old, new string
		changes  bool
	}{
		"ports swapped":      {`"8888:8888", "9999:9999"`, `"9999:9999", "8888:8888"`, false},
		"a port more":        {`"8888:8888", `, `"8888:8888", "1:1", `, true},
		"volumes swapped":    {volumes, volumes[half:] + volumes[:half], false},
		"a volume read-only": {`source = "cache"`, `read_only = true` + "\n" + `source = "cache"`, true},
		"another comment":    {"ann@desk", "ann@laptop", false},
		"keys swapped":       {`"` + key + ` ann@desk", "` + otherKey + `"`, `"` + otherKey + `", "` + key + `"`, false},
		"a key less":         {`, "` + otherKey + `"`, "", true},
		"the image in full":  {`"debian:12"`, `"docker.io/library/debian:12"`, false},
		"no longer secret":   {`sensitive("x")`, `"x"`, false},
		"another value":      {`sensitive("x")`, `"y"`, true},
		"now secret":         {`SEED = "1"`, `SEED = sensitive("1")`, true}, // the engine shows it otherwise
	} {
		text := strings.Replace(alike, change.old, change.new, 1)
		if text == alike {
			t.Fatalf("%s changes nothing", name)
		}
		p, diags := w.Plan(t, text, prior)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		fields := p.Diff.Sessions[0].Fields
		if name == "now secret" {
			if len(fields) != 1 || fields[0].From != diff.IsInEnvironment || fields[0].To != diff.IsInFile {
				t.Errorf("%s: %+v", name, fields)
			}
			data, err := json.Marshal(p.Saved("")) // without the value
			var saved plan.Saved
			if err == nil {
				err = json.Unmarshal(data, &saved)
			}
			again, err2 := saved.Plan(prior.Key)
			if err != nil || err2 != nil || !reflect.DeepEqual(again.Diff.Sessions[0].Fields, fields) {
				t.Errorf("%s, saved: %v, %v, %+v", name, err, err2, again.Diff.Sessions[0].Fields)
			}
		}
		if changes := p.Diff.Sessions[0].Action != diff.NoOp; changes != change.changes {
			t.Errorf("%s: %v", name, p.Diff.Sessions[0].Fields)
		}
	}
}
