package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cosplay/internal/config"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// drafts are the sessions of a configuration as a state has them.
func drafts(intent *config.Intent) []config.Draft {
	return prose.Each(intent.Sessions, func(s config.Session) config.Draft {
		d := config.Draft{Session: resource.Session{Address: s.Address, Target: s.Target, Program: s.Program, Spec: s.Spec, DependsOn: s.DependsOn,
			Sealed: s.Sealed, PreventDestroy: s.Lifecycle.PreventDestroy,
			Request: resource.Request{Host: s.Host, Target: s.Target.Key, Fit: s.Fit, Sharing: s.Sharing, Slice: s.Slice, Fraction: s.Fraction, GPUs: s.GPUs, Oversubscribe: s.Oversubscribe}}}
		if s.GPU != nil {
			d.Session.Request.GPU = s.GPU.String()
		}
		d.Keys = s.Keys
		return d
	})
}

// TestGenerate: a configuration that is generated from sessions gives the same sessions, and is formatted.
func TestGenerate(t *testing.T) {
	for name, src := range map[string]string{
		"one":    `session "a" { target = "2060" }`,
		"values": `session "a" { target = "3090", }`,
		"program": `session "a" {
  target = "2060"
  command = ["sh", "-c", "echo $HOME $${x} %%{ if } \"q\" \\ \n"]
  env = { A = "1", "b.c" = "$${d}", E = "" }
  workspace = "/srv/x"
  strict = true
  capability = "real"
  ttl = "1h30m"
  idle_timeout = "7d"
  stop_at = "2030-12-01T18:00:00Z"
}`,
		"container": `session "a" {
  target = "2060"
  image = "pytorch/pytorch"
  pull = "never"
  name = "abc"
  entrypoint = []
  ports = ["8888:80", "0.0.0.0:53:53/udp", "[::1]:99:98"]
  network = "net"
  restart = "no"
  sudo = false
  volume {
    source = "/a"
    target = "/b"
  }
  volume {
    source = "named"
    target = "/c"
    read_only = true
  }
  ssh {
    port = 2222
    authorized_keys = ["~/.ssh/id.pub"]
  }
  limits {
    cpus = 1.5
    memory = "3GiB"
    shm_size = "100MiB"
    pids = 12
  }
}`,
		"open": `session "a" { 
  target = "2060"
  entrypoint = "image"
  ssh {
    bind = "0.0.0.0"
  }
}`,
		"place": `host "x" { simulate = "2 x h200" }
session "a" {
  target = "3060"
  gpu = 1
  slice = "1g.18gb@2"
  fit {
    prefer = "balanced"
    tolerance = "7%"
    max_error = "33.3%"
  }
  lifecycle { prevent_destroy = true }
}
session "b" { 
  fraction = 0.33
  sharing = "mps"
  oversubscribe = true
}
session "c" { 
  target = "3060"
  sharing = "exclusive"
  gpus = 2
  depends_on = [session.a, session.b]
}`,
		"count": `session "a" {
  count = 3
  target = ["2060", "3060", "2060"][count.index]
  env = { N = count.index }
  ssh {
    port = 4000 + count.index
  }
}`,
		"each": `session "a" {
  for_each = { x = "2060", "y z" = "3060" }
  target = each.value
  command = each.key == "x" ? ["a"] : null
}`,
		"hosts": `host "x" { simulate = "1 x h200" }
host "y" { simulate = "1 x a100-80gb" }
session "a" {
  target = "2060"
  host = "y"
}`,
	} {
		t.Run(name, func(t *testing.T) {
			src = strings.ReplaceAll(src, ", }", " }")
			want, diags := load(t, map[string]string{"a.hcl": src})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			text, err := config.Generate("b.hcl", config.Generated{Drafts: drafts(want), Dir: "/project", Hosts: len(want.Hosts)})
			if err != nil {
				t.Fatal(err)
			}
			if again, _, _ := config.Format("b.hcl", text); string(again) != string(text) {
				t.Errorf("it is not formatted:\n%s", text)
			}
			hosts := src[:max(0, strings.Index(src, "session"))]
			got, diags := load(t, map[string]string{"h.hcl": hosts, "b.hcl": string(text)})
			if diags.HasErrors() {
				t.Fatalf("%v\n%s", diags, text)
			}
			ignored := cmp.Options{cmpopts.IgnoreFields(config.Session{}, "Ranges"), cmpopts.IgnoreFields(config.GPUSelector{}, "Range")}
			if diff := cmp.Diff(want.Sessions, got.Sessions, ignored, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s", diff, text)
			}
		})
	}
}

// TestGenerateIsSafe: no name or reason from outside leaves its comment or its string.
func TestGenerateIsSafe(t *testing.T) {
	evil := "x\"\n}\nsession \"evil\" { target = \"2060\" }\n# \u2028${file(\"/etc/passwd\")}"
	d := config.Draft{Import: evil, Notes: []string{evil}, Session: resource.Session{Address: resource.One("a"), Target: resource.Target{Key: "rtx-2060"},
		Program: resource.Program{Workspace: "/w", Env: map[string]string{"A": evil}, Command: []string{evil}}}}
	d.Baseline = d.Baseline.With(resource.MIGMode, resource.Off).With(resource.PersistenceMode, resource.On).With(resource.PowerLimit, 700_000).With(resource.SMClock, 3)
	text, err := config.Generate("b.hcl", config.Generated{Comments: []string{evil}, Left: []string{evil}, Drafts: []config.Draft{d}})
	if err != nil {
		t.Fatal(err)
	}
	got, diags := load(t, map[string]string{"b.hcl": string(text)})
	if diags.HasErrors() || len(got.Sessions) != 1 || got.Sessions[0].Env["A"] != evil || got.Sessions[0].Command[0] != evil {
		t.Fatalf("%v %+v\n%s", diags, got.Sessions, text)
	}
	one := got.Imports[0]
	if one.ID != evil || one.Baseline != d.Baseline.Without(resource.SMClock) {
		t.Errorf("%+v\n%s", one, text)
	}
}

// TestMissingInstances: a count whose first sessions are lost says so, and the others keep their values.
func TestMissingInstances(t *testing.T) {
	at := func(i int, target string) config.Draft {
		return config.Draft{Session: resource.Session{Address: resource.Nth("a", i), Target: resource.Target{Key: target}}}
	}
	text, err := config.Generate("b.hcl", config.Generated{Drafts: []config.Draft{at(1, "rtx-2060"), at(3, "rtx-3060")}})
	if err != nil || !strings.Contains(string(text), "# Not found: a[0], a[2].") {
		t.Fatalf("%v\n%s", err, text)
	}
	got, diags := load(t, map[string]string{"b.hcl": string(text)})
	if diags.HasErrors() || len(got.Sessions) != 4 || got.Sessions[1].Target.Key != "rtx-2060" || got.Sessions[3].Target.Key != "rtx-3060" {
		t.Errorf("%v\n%s", diags, text)
	}
}

// TestGenerateWithoutSecrets: what looks like a secret in the environment of a container is not written.
func TestGenerateWithoutSecrets(t *testing.T) {
	plain := map[string]string{"SEED": "1", "TOKENIZERS_PARALLELISM": "false", "MAX_TOKENS": "9", "MONKEY": "x", "URL": "https://user@example.org/a:b", "PATH_KEYS": "a"}
	env := map[string]string{"HF_TOKEN": "hidden", "wandb_api_key": "hidden", "OPENAI_APIKEY": "hidden", "PGPASSWORD": "hidden", "AWS_SECRET_ACCESS_KEY": "hidden",
		"SECRET2": "hidden", "DATABASE_URL": "postgres://u:hidden@db/x"}
	d := config.Draft{Session: resource.Session{Address: resource.One("a"), Target: resource.Target{Key: "rtx-2060"}}, Notes: []string{"first"}}
	secrets := len(env)
	d.Session.Env = env
	for name, value := range plain {
		env[name] = value
	}
	made := d.WithoutSecrets()
	if diff := cmp.Diff(plain, made.Session.Env); diff != "" || len(made.Notes) != 1+secrets || len(env) != len(plain)+secrets {
		t.Errorf("%s\n%v", diff, made.Notes)
	}
	text, err := config.Generate("b.hcl", config.Generated{Drafts: []config.Draft{made}})
	if err != nil || strings.Contains(string(text), "hidden") || !strings.Contains(string(text), "# env.HF_TOKEN is left out") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestGenerateWithoutWorkspace: the block of a container without a workspace can be read.
func TestGenerateWithoutWorkspace(t *testing.T) {
	d := config.Draft{Session: resource.Session{Address: resource.One("a"), Target: resource.Target{Key: "rtx-2060"}}}
	text, err := config.Generate("b.hcl", config.Generated{Drafts: []config.Draft{d}, Dir: "/srv/project"})
	if err != nil {
		t.Fatal(err)
	}
	if _, diags := load(t, map[string]string{"b.hcl": string(text)}); diags.HasErrors() || strings.Contains(string(text), "workspace") {
		t.Errorf("%v\n%s", diags, text)
	}
}
