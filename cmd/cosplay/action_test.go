package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
)

// action is action.yml, as far as its steps need it.
type action struct {
	Inputs map[string]struct{ Default string }
	Runs   struct {
		Using string
		Steps []struct {
			Name, Uses, Shell, Run string
			Directory              string `yaml:"working-directory"`
			Env                    map[string]string
		}
	}
}

// runner runs the steps of the action as GitHub does: with its files and variables, and a PATH that steps extend.
type runner struct {
	project
	action
	source, temp string // the action's checkout, and the folder for files
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{project: project{t: t, dir: t.TempDir()}, source: t.TempDir(), temp: t.TempDir()}
	if err := yaml.Unmarshal(text, &r.action); err != nil || r.Runs.Using != "composite" || len(r.Runs.Steps) != 3 {
		t.Fatalf("%v in action.yml: %+v", err, r.action)
	}
	script, err := os.ReadFile("../../scripts/action")
	if err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(r.source, "scripts", "action"), string(script))
	r.write(filepath.Join(r.source, "cosplay"), "#!/bin/sh\nexec "+r.command().Path+` "$@"`)
	r.write(filepath.Join(r.source, "Makefile"), "build:\n\tmkdir -p bin && cp cosplay bin/cosplay\n")
	return r
}

func (r *runner) write(path, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// compile makes the program of the story fits, which allocates as many MiB as its argument says.
func (r *runner) compile(folder string) {
	r.t.Helper()
	story, err := txtar.ParseFile("testdata/script/fits.txtar")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range story.Files {
		if f.Name == "cuda.c" {
			r.write(filepath.Join(folder, f.Name), string(f.Data))
		}
	}
	c := bounded(r.t, "cc", "-O", "-o", "cuda", "cuda.c", "-ldl")
	c.Dir = folder
	if out, err := c.CombinedOutput(); err != nil {
		r.t.Fatal(string(out))
	}
}

// file is what the steps wrote to a file of the runner.
func (r *runner) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(r.temp, name))
	return string(text)
}

var expression = regexp.MustCompile(`\$\{\{ *(.*?) *\}\}`)

// steps runs the steps with inputs, until one fails. It returns what they print and whether all succeed.
func (r *runner) steps(inputs map[string]string) (printed string, ok bool) {
	r.t.Helper()
	value := func(text string) string {
		return expression.ReplaceAllStringFunc(text, func(e string) string {
			name := expression.FindStringSubmatch(e)[1]
			if input, is := strings.CutPrefix(name, "inputs."); is {
				declared, known := r.Inputs[input]
				if !known {
					r.t.Errorf("action.yml has no input %s", input)
				}
				if given, is := inputs[input]; is {
					return given
				}
				return declared.Default
			}
			known, is := map[string]string{"github.action_path": r.source, "github.server_url": "file://" + r.temp,
				"github.action_repository || github.repository": "ann/cosplay"}[name]
			if !is {
				r.t.Errorf("the test does not know %s", name)
			}
			return known
		})
	}
	for _, step := range r.Runs.Steps {
		if step.Uses != "" {
			continue
		}
		base := r.command()
		c := bounded(r.t, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		c.Dir = filepath.Join(r.dir, value(step.Directory))
		path := strings.ReplaceAll(strings.TrimSpace(r.file("path")), "\n", ":")
		c.Env = append(base.Env, "PATH="+path+":"+os.Getenv("PATH"), "RUNNER_TEMP="+r.temp, "GITHUB_PATH="+filepath.Join(r.temp, "path"),
			"GITHUB_OUTPUT="+filepath.Join(r.temp, "output"), "GITHUB_STEP_SUMMARY="+filepath.Join(r.temp, "summary"))
		for name, text := range step.Env {
			c.Env = append(c.Env, name+"="+value(text))
		}
		out, err := c.CombinedOutput()
		printed += string(out)
		if err != nil {
			return printed, false
		}
	}
	return printed, true
}

// TestAction: the action builds cosplay from its source, the step ends as cosplay fits does, and the summary has the answer.
func TestAction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		run, need, says string
		ok              bool
	}{
		{"./cuda 3500", "2060, 3060", "**The smallest GPU that runs ./cuda 3500 is an RTX 2060", true},
		{"./cuda 7000", "2060, 3060", "does not run on RTX 2060", false},
		{"exit 3", "2060", "exit 3", false},
		{"test -x cuda && \\\n  ./cuda $((3000 + 500))", "", "**The smallest GPU that runs bash ", true},
		{"./cuda 1", "no-such-gpu", "no-such-gpu", false},
		{" ", "", "::error::the input run is empty", false},
	} {
		r := newRunner(t)
		r.compile(filepath.Join(r.dir, "sub"))
		printed, ok := r.steps(map[string]string{"run": c.run, "need": c.need, "on": "2060,3060", "junit": "report.xml", "working-directory": "sub"})
		if ok != c.ok || !strings.Contains(printed, c.says) {
			t.Errorf("%q: it succeeds: %t, and prints\n%s", c.run, ok, printed)
		}
		if summary := r.file("summary"); ok && !strings.Contains(printed, summary) || ok && summary == "" {
			t.Errorf("%q: the summary is %s", c.run, summary)
		}
		if output := r.file("output"); ok && output != "fits=true\n" {
			t.Errorf("%q: the output is %q", c.run, output)
		}
	}
}

// TestActionRelease: the action installs a release that has its checksum, and no other.
func TestActionRelease(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.compile(r.dir)
	name := "cosplay-0.1.0-linux-" + runtime.GOARCH
	release := filepath.Join(r.temp, "ann", "cosplay", "releases", "download", "v0.1.0")
	r.write(filepath.Join(r.source, name, "bin", "cosplay"), "#!/bin/sh\nexec "+r.command().Path+` "$@"`)
	r.write(filepath.Join(release, "README"), "")
	archive := filepath.Join(release, name+".tar.gz")
	if out, err := bounded(t, "tar", "-C", r.source, "-czf", archive, name).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]string{"run": "./cuda 3500", "on": "2060", "version": "0.1.0"}
	for sums, want := range map[string]string{
		fmt.Sprintf("%064d  other.tar.gz\n%x  %s.tar.gz\n", 0, sha256.Sum256(content), name): "**The smallest GPU that runs ./cuda 3500 is an RTX 2060",
		fmt.Sprintf("%064d  %s.tar.gz\n", 0, name):                                           "does not have the checksum",
		"": "does not have the checksum",
	} {
		r.write(filepath.Join(release, "SHA256SUMS"), sums)
		if printed, ok := r.steps(inputs); ok != strings.HasPrefix(want, "**") || !strings.Contains(printed, want) {
			t.Errorf("%s: it succeeds: %t, and prints\n%s", sums, ok, printed)
		}
	}
	inputs["version"] = "0.9.9"
	if printed, ok := r.steps(inputs); ok || !strings.Contains(printed, "v0.9.9/SHA256SUMS cannot be downloaded") {
		t.Errorf("it prints\n%s", printed)
	}
}
