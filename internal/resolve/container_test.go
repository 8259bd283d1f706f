package resolve_test

import (
	"errors"
	"strings"
	"testing"

	"cosplay/internal/apply"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

const image = "debian:12"

func inDocker(t *testing.T) *worldtest.World {
	t.Helper()
	return worldtest.New(t, "h200").WithDocker(image)
}

// applied plans and applies a configuration.
func applied(t *testing.T, w *worldtest.World, text string, prior resource.Prior) resource.Prior {
	t.Helper()
	p, diags := w.Plan(t, text, prior)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	live, err := w.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	result, err := w.Run(&worldtest.Journal{}, 1).Execute(t.Context(), p, prior, live)
	if err != nil || len(result.Failures) > 0 {
		t.Fatal(err, result.Failures)
	}
	return result.Prior
}

func specOf(t *testing.T, w *worldtest.World, text string, prior resource.Prior) resource.ContainerSpec {
	t.Helper()
	p, diags := w.Plan(t, text, prior)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return p.Desired.Sessions[0].Spec
}

const docker = `host "lab" { runtime = "docker" }
session "w" {
  target = "2060"
  image  = "debian:12"
  env    = { SEED = "1" }
}`

// TestUserIsChosenOnce: a plan of another user does not change a session's user and
// keys; if that user replaces the session, they become its user.
func TestUserIsChosenOnce(t *testing.T) {
	w := inDocker(t)
	first := specOf(t, w, docker, resource.Prior{})
	if first.User.Name != "ann" || len(first.SSH.AuthorizedKeys) != 1 || first.SSH.Kept != 0 {
		t.Errorf("made for %+v", first)
	}
	prior := applied(t, w, docker, resource.Prior{})
	port := prior.Sessions[0].Body.SSHPort
	w.Person = resolve.Person{User: resource.User{Name: "bob", UID: 1001}, Keys: []string{"ssh-ed25519 BBBB bob"}}
	p, _ := w.Plan(t, docker, prior)
	if p.Diff.Changes() {
		t.Errorf("bob changes ann's session:\n%s", p)
	}
	w.Person.Files = map[string]resolve.KeyFile{"/keys/new.pub": {Keys: []string{"ssh-ed25519 CCCC new"}}}
	for name, changed := range map[string]string{
		"env":  strings.Replace(docker, "1", "2", 1),
		"keys": strings.Replace(docker, "env ", "ssh { authorized_keys = [\"/keys/new.pub\"] }\n  env ", 1),
	} {
		now := specOf(t, w, changed, prior)
		if now.User.Name != "bob" || now.SSH.Kept != port {
			t.Errorf("%s changed: user %+v, port %d; want bob and the port %d that it had", name, now.User, now.SSH.Kept, port)
		}
	}
}

func TestPortOutlivesTheContainer(t *testing.T) {
	w := inDocker(t)
	prior := applied(t, w, docker, resource.Prior{})
	port := prior.Sessions[0].Body.SSHPort
	w.Remove("w")
	prior = applied(t, w, docker, prior)
	if got := prior.Sessions[0].Body.SSHPort; got != port || port == 0 {
		t.Errorf("the port was %d and is %d", port, got)
	}
}

func TestRefusals(t *testing.T) {
	const seven = "host \"lab\" { runtime = \"docker\" }\nsession \"w\" {\n  count  = 3\n  target = \"2060\"\n  image  = \"debian:12\"\n"
	for _, test := range []struct {
		name, text string
		before     func(*worldtest.World)
		want       string // "" is none
	}{
		{"image that may not be pulled", seven + "  pull = \"never\"\n}", func(w *worldtest.World) { delete(w.Host().Engine.Images, image) }, "there is no image debian:12"},
		{"image that is there", seven + "  pull = \"never\"\n}", func(*worldtest.World) {}, ""},
		{"cosplay's own is built", strings.Replace(seven, image, "cosplay:latest", 1) + "  pull = \"never\"\n}", func(*worldtest.World) {}, ""},
		{"ssh without a key", seven + "}", func(w *worldtest.World) { w.Person.Keys = nil }, "there is no key to log in with"},
		{"no ssh and no key", seven + "  ssh { enabled = false }\n}", func(w *worldtest.World) { w.Person.Keys = nil }, ""},
		{"key file missing", seven + "  ssh { authorized_keys = [\"/keys/a.pub\"] }\n}", func(w *worldtest.World) {
			w.Person.Files = map[string]resolve.KeyFile{"/keys/a.pub": {Err: errors.New("no such file")}}
		}, "the public key /keys/a.pub cannot be used"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := inDocker(t)
			test.before(w)
			_, diags := w.Plan(t, test.text, resource.Prior{})
			if test.want == "" {
				if diags.HasErrors() {
					t.Error(diags)
				}
				return
			}
			if len(diags) != 1 || !strings.HasPrefix(diags[0].Summary, test.want) || diags[0].Subject.Start.Line < 2 {
				t.Errorf("%d diagnostics: %v; want one at its line: %s", len(diags), diags, test.want)
			}
		})
	}
}

// TestRunningSessionOutlivesItsImage: a removed image is needed again only to recreate a container.
func TestRunningSessionOutlivesItsImage(t *testing.T) {
	w := inDocker(t)
	never := strings.Replace(docker, "env ", "pull = \"never\"\n  env ", 1)
	prior := applied(t, w, never, resource.Prior{})
	delete(w.Host().Engine.Images, image)
	if p, diags := w.Plan(t, never, prior); diags.HasErrors() || p.Diff.Changes() {
		t.Errorf("%v\n%s", diags, p)
	}
	w.Remove("w")
	if _, diags := w.Plan(t, never, prior); !diags.HasErrors() {
		t.Error("the plan creates a container without its image")
	}
}

func TestWordsForContainersOnly(t *testing.T) {
	w := worldtest.New(t, "h200")
	text := "host \"lab\" {}\nsession \"w\" {\n  count = 3\n  target = \"2060\"\n  image = \"debian:12\"\n}"
	p, diags := w.Plan(t, text, resource.Prior{})
	if len(diags) != 1 || diags.HasErrors() || diags[0].Subject.Start.Line != 5 {
		t.Errorf("%v; want one warning at line 5", diags)
	}
	if !p.Desired.Sessions[0].Spec.IsZero() {
		t.Error("a process session has a container spec")
	}
}

var _ apply.Images = (*worldtest.World)(nil)

// TestNamesOfOtherStates: a new session has an ID whose container has no name of another state's. One that exists keeps
// its ID.
func TestNamesOfOtherStates(t *testing.T) {
	one := resource.One("one")
	for _, c := range []struct {
		runtime, project string
		names            []string
		prior            []string
		want             string
	}{
		{"docker", "fleet", nil, nil, "one-fleet"},
		{"docker", "fleet", []string{"cosplay-one"}, nil, "one-fleet"},
		{"docker", "my fleet", nil, nil, "one-my-fleet"},
		{"docker", "fleet", []string{"cosplay-one-fleet"}, nil, "one-fleet-2"},
		{"docker", "fleet", nil, []string{"one-fleet"}, "one-fleet-2"},
		{"docker", "fleet", nil, []string{"one"}, "one-fleet"},
		{"process", "fleet", nil, nil, "one"},
		{"process", "fleet", nil, []string{"one"}, "one-2"},
		{"docker", "", []string{"cosplay-one"}, nil, "one-2"},
	} {
		live := resource.Live{Hosts: []resource.Host{{Name: "lab", Engine: &resource.Engine{Names: c.names}}}}
		prior := resource.Prior{}
		for _, id := range c.prior {
			prior.Sessions = append(prior.Sessions, resource.PriorSession{Session: resource.Session{ID: id}})
		}
		if got := resolve.SessionID(one, resource.RuntimeNamed(c.runtime), c.project, prior, live); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
