package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cosplay/internal/need"
	"cosplay/internal/public"
	"cosplay/internal/public/publictest"
)

// reported returns the report of a session, and holds its JSON to the schema.
func (p project) reported(session string) public.Report {
	p.t.Helper()
	text := p.run("report", session, "--json")
	if err := publictest.Check("report", []byte(text)); err != nil {
		p.t.Error(err)
	}
	var all public.Reports
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all.Sessions) != 1 {
		p.t.Fatalf("%v: %s", err, text)
	}
	return all.Sessions[0]
}

// TestTorchCollectives: the bytes of the collectives of DistributedDataParallel are those of its parameters.
func TestTorchCollectives(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	program, err := filepath.Abs("../../scripts/torch/ddp.py")
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, fmt.Sprintf(withTorch, "3060"))
	p.run("apply", "--auto-approve")
	if r := p.reported("pair"); len(r.Programs) != 0 || len(r.Devices) != 2 {
		t.Errorf("before any program: %+v", r)
	}
	p.run("exec", "pair", "--", python, program, "2")
	r := p.reported("pair")
	// Each of 2 ranks reduces 5 times the gradients of all parameters in one bucket, and a loss.
	const ranks, steps, parameters = 2, 5, 32*64 + 64 + 64*4 + 4
	got := map[string]public.CollectiveWork{}
	for _, c := range r.Total.Collectives {
		got[c.Kind] = c
	}
	if c := got["all_reduce"]; c.Count != ranks*steps*2 || c.Bytes != ranks*steps*(4*parameters+4) {
		t.Errorf("all_reduce: %+v, want %d bytes", c, ranks*steps*(4*parameters+4))
	}
	if got["barrier"].Count != ranks || got["broadcast"].Bytes < ranks*4*parameters {
		t.Errorf("%+v", r.Total.Collectives)
	}
	// Two layers forward, the gradients of both weights, and that of the second layer's input; 8 rows in each step.
	const flops = ranks * steps * 2 * 8 * (2*(32*64+64*4) + 64*4)
	seen := map[int]int{}
	for _, one := range r.Programs {
		seen[*one.Rank] = one.Devices[0].Index
	}
	if r.Total.FLOPs != flops || len(r.Programs) != ranks || seen[0] != 0 || seen[1] != 1 {
		t.Errorf("%v operations, want %d; %+v", r.Total.FLOPs, flops, r.Programs)
	}
	for _, words := range []string{"ddp.py (rank 1)", "20 all_reduce"} {
		if text := p.run("report"); !strings.Contains(text, words) {
			t.Errorf("no %q in %s", words, text)
		}
	}
	if text := p.run("status"); !strings.Contains(text, "2 PyTorch programs: ") {
		t.Error(text)
	}
	p.run("destroy", "--auto-approve")
}

// TestLaptop runs the commands of the recipes for CI, whose job fails when the program does not fit.
func TestLaptop(t *testing.T) {
	python := need.Torch(t)
	const folder = "../../examples/laptop"
	document, err := os.ReadFile("../../docs/without-a-gpu.md")
	if err != nil {
		t.Fatal(err)
	}
	step := regexp.MustCompile(`(?m)^ *- (?:run: )?\S*bin/cosplay (fits .*)$`)
	for _, recipe := range []string{"github.yml", "gitlab.yml"} {
		text, err := os.ReadFile(filepath.Join(folder, recipe))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(document), "(../examples/laptop/"+recipe+")") {
			t.Errorf("docs/without-a-gpu.md does not lead to %s", recipe)
		}
		found := step.FindAllSubmatch(text, -1)
		if len(found) != 1 {
			t.Fatalf("%s runs cosplay %d times", recipe, len(found))
		}
		command := strings.Replace(string(found[0][1]), "python3", python, 1)
		for more, want := range map[string]struct {
			code    int
			failure string
		}{"": {0, ""}, " --batch 300000": {1, "capacity"}} {
			p := project{t: t, dir: t.TempDir()}
			if err := os.CopyFS(p.dir, os.DirFS(folder)); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(p.dir, "fleet.hcl")); err != nil { // the recipe needs none
				t.Fatal(err)
			}
			t.Setenv("GITHUB_STEP_SUMMARY", "summary.md")
			code, printed := p.shell(strings.Replace(command, "train.py", "train.py"+more, 1))
			summary, _ := os.ReadFile(filepath.Join(p.dir, "summary.md"))
			printed += string(summary)
			if code != want.code {
				t.Errorf("%s%s: exit code %d\n%s", command, more, code, printed)
			}
			if !strings.Contains(printed, "The smallest GPU that runs ") {
				t.Errorf("%s%s: it prints\n%s", command, more, printed)
			}
			if name, failure := p.junit("report.xml"); name != "RTX 2060 (6144 MiB)" || failure != want.failure {
				t.Errorf("%s%s: the test case %s has the failure %q", command, more, name, failure)
			}
		}
	}
}

// shell runs a cosplay command as a shell would, and returns its exit code and all of its output.
func (p project) shell(command string) (int, string) {
	p.t.Helper()
	base := p.command()
	c := bounded(p.t, "sh", "-c", `cosplay=$0; "$cosplay" `+command, base.Path)
	c.Dir, c.Env = base.Dir, base.Env
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

// junit reads the one test case of a file.
func (p project) junit(file string) (name, failure string) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		p.t.Fatal(err)
	}
	var suites struct {
		Cases []struct {
			Name    string `xml:"name,attr"`
			Failure struct {
				Type string `xml:"type,attr"`
			} `xml:"failure"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(text, &suites); err != nil || len(suites.Cases) != 1 {
		p.t.Fatalf("%v: %s", err, text)
	}
	return suites.Cases[0].Name, suites.Cases[0].Failure.Type
}
