package config_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/resource"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// options have the real catalog and a minimal simulator.
func options() config.Options {
	simulation := regexp.MustCompile(`^\d+ x [a-z0-9-]+(, \d+ x [a-z0-9-]+)*$`)
	return config.Options{
		Dir:     "/project",
		Home:    "/home/ada",
		Version: "0.1.0-dev",

		Timestamp: "2026-03-01T12:00:00Z",
		Files: fstest.MapFS{
			"project/motd.txt":        {Data: []byte("hello\n")},
			"project/greeting.tftpl":  {Data: []byte("hello ${name}%{ if loud }!%{ endif }")},
			"project/ports.tftpl":     {Data: []byte("%{ for addr in ip_addrs ~}\nbackend ${addr}:${port}\n%{ endfor ~}\n")},
			"project/wrong.tftpl":     {Data: []byte("hello ${absent}")},
			"project/again.tftpl":     {Data: []byte("${templatefile(\"again.tftpl\", {})}")},
			"project/broken.tftpl":    {Data: []byte("hello ${")},
			"project/data/a.txt":      {Data: []byte("a")},
			"project/data/sub/b.txt":  {Data: []byte("b")},
			"project/noise.bin":       {Data: []byte{0xff, 0xfe}},
			"home/ada/.config/secret": {Data: []byte("x")},
		},
		Env: func(name string) (string, bool) {
			value, set := map[string]string{"USER": "ada", "EMPTY": "", "TOKEN": "hunter2"}[name]
			return value, set
		},
		Target:  catalog.Target,
		Catalog: catalog.Targets, Derive: catalog.Derive, Capabilities: catalog.Capabilities,
		Simulate: func(spec string) error {
			if !simulation.MatchString(spec) {
				return fmt.Errorf("%q does not say which GPUs to simulate; write it like \"8 x h200\"", spec)
			}
			return nil
		},
	}
}

// loadCase reads a file of testdata, with the values of the .hclvars file beside it, if there is one.
func loadCase(t *testing.T, path string) (*config.Intent, hcl.Diagnostics, map[string][]byte) {
	t.Helper()
	sources := map[string][]byte{filepath.Base(path): read(t, path)}
	o := options()
	o.MayMiss = strings.HasPrefix(filepath.Base(path), "open-")
	o.HostsMayMiss = o.MayMiss
	values := filepath.Join(filepath.Dir(path), nameOf(path)+".hclvars")
	if data, err := os.ReadFile(values); err == nil {
		o.Inputs = []config.Input{{From: filepath.Base(values), File: data}}
	}
	intent, diags := config.Load(sources, o)
	if o.Inputs != nil {
		sources[o.Inputs[0].From] = o.Inputs[0].File
	}
	return intent, diags, sources
}

func load(t *testing.T, files map[string]string) (*config.Intent, hcl.Diagnostics) {
	t.Helper()
	contents := map[string][]byte{}
	for name, text := range files {
		contents[name] = []byte(text)
	}
	return config.Load(contents, options())
}

func TestRightConfigurations(t *testing.T) {
	for _, path := range append(glob(t, "testdata/right/*.hcl"), glob(t, "../../examples/*.hcl")...) {
		name := strings.TrimSuffix(filepath.Base(path), ".hcl")
		t.Run(name, func(t *testing.T) {
			intent, diags, _ := loadCase(t, path)
			if len(diags) > 0 {
				t.Fatalf("%s", describe(t, intent.Files, diags))
			}
			golden(t, filepath.Join("testdata/right", name+".json"), asJSON(t, intent))
		})
	}
}

// Warnings do not reject the configuration.
func TestWarnedConfigurations(t *testing.T) {
	for _, path := range glob(t, "testdata/warned/*.hcl") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".hcl"), func(t *testing.T) {
			intent, diags, sources := loadCase(t, path)
			if diags.HasErrors() || len(diags) == 0 || len(intent.Sessions) == 0 {
				t.Fatalf("%d sessions, and %v", len(intent.Sessions), diags)
			}
			checkComplete(t, diags, sources)
			golden(t, strings.TrimSuffix(path, ".hcl")+".golden", describe(t, intent.Files, diags))
		})
	}
}

// asJSON prints an intent with only the keys of its targets, and without the user, because no file states the user.
func asJSON(t *testing.T, intent *config.Intent) []byte {
	type spec struct {
		resource.ContainerSpec
		User string `json:"user,omitempty"`
	}
	type session struct {
		config.Session
		Target string `json:"target"`
		Spec   spec   `json:"box"`
	}
	view := struct {
		Hosts    []config.Host `json:"hosts"`
		Sessions []session     `json:"sessions"`

		Moves    []config.Move    `json:"moves,omitempty"`
		Removals []config.Removal `json:"removals,omitempty"`
		Imports  []config.Import  `json:"imports,omitempty"`
	}{Hosts: intent.Hosts, Moves: intent.Moves, Removals: intent.Removals, Imports: intent.Imports}
	for _, s := range intent.Sessions {
		view.Sessions = append(view.Sessions, session{s, s.Target.Key, spec{ContainerSpec: s.Spec}})
	}
	out, err := json.MarshalIndent(view, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// A project in JSON gives the same result as its equivalent in HCL's native syntax.
func TestJSONIsTheSame(t *testing.T) {
	for _, path := range glob(t, "testdata/right/*.hcl.json") {
		t.Run(nameOf(path), func(t *testing.T) {
			intent, diags := load(t, map[string]string{filepath.Base(path): string(read(t, path))})
			if len(diags) > 0 {
				t.Fatalf("%s", describe(t, intent.Files, diags))
			}
			if d := cmp.Diff(string(read(t, filepath.Join("testdata/right", nameOf(path)+".json"))), string(asJSON(t, intent))); d != "" {
				t.Errorf("HCL -, JSON +:\n%s", d)
			}
		})
	}
}

// Standard input has no file name, so its content decides the syntax.
func TestSyntaxOfStandardInput(t *testing.T) {
	for name, src := range map[string]string{"standard input": " {\"session\": {\"a\": {\"target\": \"2060\"}}}", "a": "session \"a\" {\n  target = \"2060\"\n}\n"} {
		intent, diags := load(t, map[string]string{name: src})
		if len(diags) > 0 || len(intent.Sessions) != 1 {
			t.Errorf("%s: %d sessions, %v", name, len(intent.Sessions), diags)
		}
	}
}

func TestMistakesOfAllFilesAreTold(t *testing.T) {
	intent, diags := load(t, map[string]string{
		"a.hcl": "session \"one\" {\n  target = \n}\n",
		"b.hcl": "session \"two\" {\n  target = \"2600\"\n  host   = \"behind-the-mistake\"\n}\n",
		"c.hcl": "session \"two\" {\n  target = \"2060\"\n}\nhost \"lab\" {\n  simulate = \"many\"\n}\n",
	})
	var got []string
	for _, d := range diags {
		got = append(got, fmt.Sprintf("%s:%d %s", d.Subject.Filename, d.Subject.Start.Line, d.Summary))
	}
	want := []string{
		`a.hcl:2 invalid expression`,
		`b.hcl:2 unknown target "2600"`,
		`c.hcl:1 session "two" is there twice`,
		`c.hcl:5 cannot simulate "many"`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
	if len(intent.Files) != 3 {
		t.Errorf("%d files are there for showing the source, want 3", len(intent.Files))
	}
}

func TestSessionsOfSeveralFilesAreSorted(t *testing.T) {
	intent, diags := load(t, map[string]string{
		"a.hcl": "session \"worker\" {\n  count  = 11\n  target = \"2060\"\n}\n",
		"b.hcl": "session \"alone\" {\n  target = \"3090\"\n}\n",
	})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var got []string
	for _, s := range intent.Sessions {
		got = append(got, s.Address.Short())
		if s.Host != config.LocalHost || s.Workspace != "/project" {
			t.Errorf("%s is on %q in %q", s.Address, s.Host, s.Workspace)
		}
	}
	want := "alone worker-0 worker-1 worker-2 worker-3 worker-4 worker-5 worker-6 worker-7 worker-8 worker-9 worker-10"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// Sensitive environment variables are separate from the others, whatever made them sensitive.
func TestSecrets(t *testing.T) {
	const declared = "variable \"token\" {\n  default   = \"hunter2\"\n  sensitive = true\n}\nvariable \"all\" {\n  type      = map(string)\n  default   = { A = \"1\", B = \"2\" }\n  sensitive = true\n}\n"
	for env, want := range map[string][2]map[string]string{
		`{ PLAIN = 1, TOKEN = var.token }`:                        {{"PLAIN": "1"}, {"TOKEN": "hunter2"}},
		`{ TOKEN = "x-${upper(var.token)}" }`:                     {nil, {"TOKEN": "x-HUNTER2"}},
		`var.all`:                                                 {nil, {"A": "1", "B": "2"}},
		`{ for k, v in { T = var.token, P = "p" } : k => v }`:     {{"P": "p"}, {"T": "hunter2"}},
		`{ TOKEN = nonsensitive(var.token), S = sensitive("s") }`: {{"TOKEN": "hunter2"}, {"S": "s"}},
		`{ LENGTH = length(var.token) }`:                          {nil, {"LENGTH": "7"}},
		`{ WHICH = var.token == "hunter2" ? "right" : "wrong" }`:  {nil, {"WHICH": "right"}},
	} {
		intent, diags := load(t, map[string]string{"a.hcl": declared + "session \"a\" {\n  target = \"2060\"\n  env = " + env + "\n}\n"})
		if diags.HasErrors() {
			t.Errorf("%s: %v", env, diags)
			continue
		}
		got := [2]map[string]string{intent.Sessions[0].Env, intent.Sessions[0].Secret}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: want -, got +:\n%s", env, d)
		}
	}
}

func TestRangesPointAtTheValue(t *testing.T) {
	src := "session \"worker\" {\n  target = \"2060\"\n  gpu    = 3\n  fit {\n    tolerance = \"5%\"\n  }\n}\nhost \"lab\" {\n  simulate = \"1 x h200\"\n  gpus = [0, 3]\n}\n"
	intent, diags := load(t, map[string]string{"a.hcl": src})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	session, host := intent.Sessions[0], intent.Hosts[0]
	for at, want := range map[hcl.Range]string{
		session.Ranges.At("target"):        `"2060"`,
		session.Ranges.At("fit.tolerance"): `"5%"`,
		session.Ranges.At("workspace"):     `session "worker"`,
		session.GPU.Range:                  `3`,
		host.Ranges.At("simulate"):         `"1 x h200"`,
		host.Ranges.At("nvml"):             `host "lab"`,
		host.GPUs[1].Range:                 `3`,
	} {
		if got := string(at.SliceBytes([]byte(src))); got != want {
			t.Errorf("%s is %s, want %s", at, got, want)
		}
	}
}

func TestRangesOfRepeatedBlocks(t *testing.T) {
	src := "session \"worker\" {\n  target = \"2060\"\n  volume {\n    source = \"a1\"\n    target = \"/a\"\n  }\n" +
		"  volume {\n    target = \"/b\"\n    source = \"b1\"\n  }\n  ssh {\n    port = 2200\n  }\n}\n"
	intent, diags := load(t, map[string]string{"a.hcl": src})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	ranges := intent.Sessions[0].Ranges
	for attribute, want := range map[string]string{
		"volume[0].source": `"a1"`, "volume[1].target": `"/b"`, "volume[1].source": `"b1"`,
		"volume": "volume", "ssh": "ssh", "ssh.port": "2200",
		"volume[1].read_only": `session "worker"`, "limits": `session "worker"`,
	} {
		if got := string(ranges.At(attribute).SliceBytes([]byte(src))); got != want {
			t.Errorf("%s is at %s, want %s", attribute, got, want)
		}
	}
}

func TestGPUSelectorMatches(t *testing.T) {
	gpu := resource.GPU{Index: 3, UUID: "GPU-8f2a0000-1111-2222-3333-444455556666", PCI: "00000000:8A:00.0"}
	for selector, want := range map[string]bool{
		`3`: true, `"3"`: true, `2`: false,
		`"GPU-8f2a0000"`: true, `"gpu-8F2A0000-1111-2222-3333-444455556666"`: true, `"GPU-8f2b"`: false,
		`"8a:00.0"`: true, `"0000:8A:00.0"`: true, `"00000000:8a:00.0"`: true, `"0001:8a:00.0"`: false,
	} {
		intent, diags := load(t, map[string]string{"a.hcl": "session \"a\" {\n  target = 2060\n  gpu = " + selector + "\n}\n"})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if got := intent.Sessions[0].GPU.Matches(gpu); got != want {
			t.Errorf("%s matches: %v, want %v", selector, got, want)
		}
	}
}

// A build can be called after a commit, whose hash can begin like a version.
func TestRequiredVersionOfABuildWithoutOne(t *testing.T) {
	const unchecked = "cosplay does not check required_version"
	for version, want := range map[string]string{"0d3edc2": unchecked, "9400000": unchecked, "": unchecked, "0.0.9": "this is cosplay 0.0.9", "v0.1.0-3-g9a1b2c3": "", "0.1.0-dev": ""} {
		o := options()
		o.Version = version
		_, diags := config.Load(map[string][]byte{"a.hcl": []byte("cosplay {\n  required_version = \">= 0.1, < 2\"\n}\n")}, o)
		var got string
		for _, d := range diags {
			got += d.Summary
		}
		if got != want || diags.HasErrors() != (want != "" && want != unchecked) {
			t.Errorf("%q: %v", version, diags)
		}
	}
}

func TestReadFiles(t *testing.T) {
	files, err := config.ReadFiles(fstest.MapFS{
		"a.hcl": {Data: []byte("x")}, ".#a.hcl": {}, "b.txt": {}, "sub/c.hcl": {}, "d.hcl.json": {}, "folder.hcl": {Mode: os.ModeDir},
	})
	if err != nil || len(files) != 2 || string(files["a.hcl"]) != "x" || files["d.hcl.json"] == nil {
		t.Errorf("got %q, %v; want a.hcl and d.hcl.json", files, err)
	}
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, "a.hcl")); err != nil {
		t.Fatal(err)
	}
	if _, err := config.ReadFiles(os.DirFS(dir)); err == nil || err.Error() != "a.hcl is a link that leads nowhere; remove it, or make what it leads to" {
		t.Errorf("of a link to nowhere it says %v", err)
	}
	if _, err := config.ReadFiles(fstest.MapFS{"a.hcl": {Mode: os.ModeNamedPipe}}); err == nil || !strings.Contains(err.Error(), "a.hcl is no file") {
		t.Errorf("of a pipe it says %v", err)
	}
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(names), err)
	}
	return names
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(string(read(t, path)), string(got)); d != "" {
		t.Errorf("%s: want -, got + (go test -update accepts it):\n%s", path, d)
	}
}
