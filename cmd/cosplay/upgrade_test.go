package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cosplay/internal/public"
	"cosplay/internal/state"
)

// upgradeRoot is where scripts/upgrade-data made its cases: hashes of sessions contain
// absolute paths.
const upgradeRoot = "/tmp/cosplay-upgrade"

// eachVersion unpacks what each earlier version left on a machine and runs a test on it.
func eachVersion(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	archives, err := filepath.Glob("testdata/upgrade/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no data of an earlier version: %v", err)
	}
	lock, err := os.OpenFile(upgradeRoot+".lock", os.O_CREATE|os.O_RDONLY, 0o644)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
			if err := os.RemoveAll(upgradeRoot); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(upgradeRoot, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(upgradeRoot) })
			if out, err := bounded(t, "tar", "-xzf", archive, "-C", upgradeRoot, "--no-same-owner", "-p").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			test(t)
		})
	}
}

// upgradeCase is the project of a case, which the current user owns.
func upgradeCase(t *testing.T, name string) project {
	t.Helper()
	p := project{t: t, dir: filepath.Join(upgradeRoot, name)}
	p.write("token.auto.hclvars", []byte(`token = "hunter2"`))
	uid := strconv.Itoa(os.Getuid())
	for _, file := range []string{"lineages/0", "history/0.jsonl"} {
		own := strings.Replace(file, "0", uid, 1)
		if err := os.Rename(p.ledger(file), p.ledger(own)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	pages, _ := filepath.Glob(p.ledger("ledger/*"))
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(page, bytes.ReplaceAll(text, []byte(`"uid": 0`), []byte(`"uid": `+uid)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p project) ledger(file string) string { return filepath.Join(p.dir, ".cosplay/sim/lab", file) }

func (p project) write(name string, text []byte) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), text, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// TestUpgrade: this cosplay continues what an earlier version left on a machine: a fleet,
// a run that was killed, a saved plan.
func TestUpgrade(t *testing.T) {
	eachVersion(t, func(t *testing.T) {
		fresh := newProject(t, `host "lab" { simulate = "2 x h200" }`)
		fresh.run("plan")
		released := fresh.shown()
		cases, err := filepath.Glob(upgradeRoot + "/*")
		if err != nil || len(cases) < 15 {
			t.Fatalf("%d cases, %v", len(cases), err)
		}
		for _, dir := range cases {
			name := filepath.Base(dir)
			if name == "docker" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := upgradeCase(t, name)
				switch kind, _, _ := strings.Cut(name, "-"); kind {
				case "killed":
					p.upgradeKilled(released)
				case "plan":
					p.upgradePlan(released)
				default:
					if name == "fleet" { // the other one has forgotten a slice, which stays
						p.rebuilds()
						defer p.ends(released)
					}
					p.upgradeFleet()
				}
			})
		}
	})
}

var (
	counted = regexp.MustCompile(`Plan: (\d+) to create, \d+ to change, (\d+) to destroy`)
	details = regexp.MustCompile(`(?m)^      .*\w.*$|^.* (->|→) .*$`) // of a change, below its line
	renews  = regexp.MustCompile(`^ +(each: )?(facades|driver) `)     // brought up to date in place
	drawing = regexp.MustCompile(`^ *│|^    SESSION`)
)

// keepsAll plans, and applies, without drift and without a change other than new facades.
func (p project) keepsAll() {
	p.t.Helper()
	if out, err := p.command("drift").Output(); err != nil || len(out) > 0 {
		p.t.Errorf("false drift: %v\n%s", err, out)
	}
	planned := p.run("plan")
	changes := slices.DeleteFunc(details.FindAllString(planned, -1), func(line string) bool {
		return renews.MatchString(line) || drawing.MatchString(line)
	})
	if m := counted.FindStringSubmatch(planned); m != nil && (m[1] != "0" || m[2] != "0") || len(changes) > 0 {
		p.t.Errorf("the plan changes something: %q\n%s", changes, planned)
	}
	before := p.shown()
	p.run("apply", "--auto-approve")
	if d := cmp.Diff(before.GPUs, p.shown().GPUs); d != "" {
		p.t.Errorf("the GPUs changed: %s", d)
	}
	p.run("plan", "--detailed-exitcode")
}

// upgradeFleet also enters a session before apply, and reads an output.
func (p project) upgradeFleet() {
	p.t.Helper()
	first := "worker-0"
	if strings.Contains(p.run("state", "list"), "spare") {
		first = "spare"
	}
	for range 2 {
		if out := p.run("exec", first); out != "0 hunter2\n" {
			p.t.Errorf("the session has %q", out)
		}
		if out := p.run("output", "--raw", "token"); strings.TrimSpace(out) != "hunter2" {
			p.t.Errorf("the output is %q", out)
		}
		p.keepsAll()
	}
}

// rebuilds loses the state and rebuilds it, without a change of a session. The folder stays, since containers have
// mounted it.
func (p project) rebuilds() {
	p.t.Helper()
	path := filepath.Join(p.dir, state.FileName)
	kept, err := os.ReadFile(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	defer p.write(state.FileName, kept)
	p.run("state", "rebuild", "--auto-approve")
	if m := counted.FindStringSubmatch(p.run("plan")); m != nil && (m[1] != "0" || m[2] != "0") {
		p.t.Errorf("after state rebuild: %s", m[0])
	}
}

// upgradeKilled brings a run to its end, without losing a slice that it had created;
// and takes all of it back.
func (p project) upgradeKilled(released public.Simulated) {
	p.t.Helper()
	if journals(p.t, p.dir) != 1 {
		p.t.Fatal("there is no journal")
	}
	killed := p.copyOf()
	p.run("plan")
	before := p.sliceUUIDs()
	p.run("apply", "--auto-approve")
	after := p.sliceUUIDs()
	if len(after) != 3 {
		p.t.Errorf("there are %d slices, not 3", len(after))
	}
	for _, uuid := range before {
		if !slices.Contains(after, uuid) {
			p.t.Errorf("the slice %s was replaced", uuid)
		}
	}
	p.keepsAll()
	p.ends(released)
	killed()
	p.ends(released)
}

// upgradePlan applies a saved plan, or is refused with words that say what to do and
// without an effect.
func (p project) upgradePlan(released public.Simulated) {
	p.t.Helper()
	destroys := strings.HasSuffix(p.dir, "destroy")
	goal := []string{"apply", "--auto-approve"}
	if destroys {
		goal[0] = "destroy"
	}
	path := filepath.Join(p.dir, state.FileName)
	before, beforeState := p.shown(), readIf(path)
	if out, err := p.command("apply", "saved.plan").CombinedOutput(); err != nil {
		if !regexp.MustCompile(`saved\.plan has format version|plan is stale`).Match(out) || !strings.Contains(string(out), "cosplay plan") {
			p.t.Errorf("refused without advice: %s", out)
		}
		if d := cmp.Diff(before, p.shown()) + cmp.Diff(beforeState, readIf(path)); d != "" {
			p.t.Errorf("a refused plan had an effect: %s", d)
		}
		p.t.Logf("refused: %s", out)
		p.run(goal...)
	}
	if !destroys {
		p.keepsAll()
	}
	p.ends(released)
}

func readIf(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// ends destroys everything and leaves the host as it was found.
func (p project) ends(released public.Simulated) {
	p.t.Helper()
	p.run("destroy", "--auto-approve")
	if d := cmp.Diff(released.GPUs, p.shown().GPUs); d != "" {
		p.t.Errorf("the host is not as it was: %s", d)
	}
	if left := p.traces(p.hardware()); len(left) > 0 {
		p.t.Errorf("left: %s", strings.Join(left, "\n"))
	}
}

// sliceUUIDs are those of the slices on all GPUs.
func (p project) sliceUUIDs() []string {
	p.t.Helper()
	var all []string
	for _, g := range p.shown().GPUs {
		for _, s := range g.Slices {
			for _, c := range s.Compute {
				all = append(all, c.UUID)
			}
		}
	}
	return all
}
