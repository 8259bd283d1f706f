package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"cosplay/catalog"
	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/fit"
	"cosplay/internal/public"
	"cosplay/internal/public/publictest"
	"cosplay/internal/resource"
)

// twins are the JSON screens, full and empty.
func twins() map[string]func(io.Writer) error {
	drifted := one().applied().lose("worker-3", true).foreign(0, 0, "1g.18gb", 7)
	w := mixed()
	diags, sources := mistakes()
	view := FitView{Target: targetOf("3090"), Model: modelOf("h200"), Options: resource.DefaultFit()}
	view.Candidates = fit.Candidates(view.Model, view.Target, view.Options)
	empty := (&world{}).host("lab", "l40s")
	docker := blocks().applied().keepPorts()
	_, broken := verifiedViews()
	used, ended := w.applied().status(), AppliedView{Plan: one().applied().without(all).plan(), Targets: catalog.Targets}
	used.Targets, used.Used = catalog.Targets, usedByTwo
	taken := one().applied().without(all).foreign(0, 0, "1g.18gb", 7)
	round := ResetRound{Holder: resource.Holder{Lineage: "1f3a", User: "ann", State: "/p/cosplay.state.json"}, Own: true, Plan: taken.plan(), Prior: taken.prior, Live: taken.live,
		Unproven: []resource.Body{{ID: "0123456789abcdef", Session: "worker-0", Runtime: "docker"}}}
	reset := ResetDoneView{ResetView: ResetView{State: "/p/cosplay.state.json", Fault: "it ends early", Failures: []error{errors.New("refused")}}, Results: []ResetResult{{Round: round}}}
	rebuilt := RebuiltView{State: "/p/cosplay.state.json", Prior: docker.prior, Live: docker.live, Unproven: round.Unproven, Aside: []string{"/p/old"}}
	user := resource.Process{PID: 7, Name: "python", MemoryMiB: 12, GPUInstance: new(3)}
	imported := ImportedView{Session: docker.prior.Sessions[0], Foreign: true, Users: []resource.Process{user}, State: "/p/cosplay.state.json", Serial: 2, Live: docker.live}
	note := durable.Holder{Command: "apply", PID: 7, User: "ann", Since: time.Unix(0, 0).UTC()}
	unlock := UnlockView{State: "/p/cosplay.state.json", Note: &note, Interrupted: &InterruptedRun{Begun: time.Unix(0, 0).UTC(), Done: 2, Open: 1}}
	ended.Result.Used = usedByTwo
	used.Reports = reported()
	report := ReportView{Sessions: used.Prior.Sessions, Reports: reported()}
	return map[string]func(io.Writer) error{
		"status-used":     func(o io.Writer) error { return JSON(o, used) },
		"applied-ended":   func(o io.Writer) error { return JSON(o, ended) },
		"report":          func(o io.Writer) error { return JSON(o, report) },
		"report-none":     func(o io.Writer) error { return JSON(o, ReportView{}) },
		"plan":            func(o io.Writer) error { return JSON(o, w.view()) },
		"plan-drift":      func(o io.Writer) error { return JSON(o, drifted.view()) },
		"plan-empty":      func(o io.Writer) error { return JSON(o, empty.view()) },
		"drift":           func(o io.Writer) error { return DriftJSON(o, drifted.view()) },
		"drift-none":      func(o io.Writer) error { return DriftJSON(o, empty.view()) },
		"applied":         func(o io.Writer) error { return JSON(o, AppliedView{Plan: w.plan(), Took: time.Second}) },
		"diagnostics":     func(o io.Writer) error { return DiagnosticsJSON(o, diags, sources) },
		"no-diagnostics":  func(o io.Writer) error { return DiagnosticsJSON(o, nil, nil) },
		"status":          func(o io.Writer) error { return JSON(o, drifted.status()) },
		"status-empty":    func(o io.Writer) error { return JSON(o, StatusView{}) },
		"sessions":        func(o io.Writer) error { return JSON(o, SessionsView{drifted.status()}) },
		"state":           func(o io.Writer) error { return JSON(o, StateView{drifted.prior}) },
		"state-empty":     func(o io.Writer) error { return JSON(o, StateView{resource.Prior{}}) },
		"plan-docker":     func(o io.Writer) error { return JSON(o, blocks().view()) },
		"applied-docker":  func(o io.Writer) error { return JSON(o, run(blocks(), no, no)) },
		"status-docker":   func(o io.Writer) error { return JSON(o, docker.status()) },
		"sessions-docker": func(o io.Writer) error { return JSON(o, SessionsView{docker.status()}) },
		"state-docker":    func(o io.Writer) error { return JSON(o, StateView{docker.prior}) },
		"ssh-config":      func(o io.Writer) error { return SSHConfigJSON(o, hostBlocks()) },
		"graph":           func(o io.Writer) error { return GraphJSON(o, StepGraph(w.plan(), w.live)) },
		"reset":           func(o io.Writer) error { return JSON(o, reset) },
		"rebuilt":         func(o io.Writer) error { return JSON(o, rebuilt) },
		"imported":        func(o io.Writer) error { return JSON(o, imported) },
		"unlock":          func(o io.Writer) error { return JSON(o, unlock) },
		"moved": func(o io.Writer) error {
			return JSON(o, MovedView{Moves: []resource.Renamed{{From: resource.One("a"), To: resource.One("b")}}})
		},
		"forgotten":     func(o io.Writer) error { return JSON(o, ForgottenView{StatePart: partOf(docker, 0)}) },
		"state-list":    func(o io.Writer) error { return JSON(o, partOf(docker, 0)) },
		"state-session": func(o io.Writer) error { return JSON(o, StateItem{StatePart: partOf(docker, 0)}) },
		"state-gpu":     func(o io.Writer) error { return JSON(o, StateItem{StatePart: StatePart{GPUs: docker.prior.GPUs}}) },
		"doctor": func(o io.Writer) error {
			return JSON(o, DoctorView{[]public.Finding{{Thing: "NVML", Found: "none", Grade: "missing", Fix: "install it"}}})
		},
		"outputs": func(o io.Writer) error {
			return JSON(o, OutputsView([]config.Output{{Name: "a", Value: cty.StringVal("b")}, {Name: "c", Sensitive: true}}))
		},
		"targets":     func(o io.Writer) error { return JSON(o, TargetsView{Targets: catalog.Targets()}) },
		"targets-on":  func(o io.Writer) error { return JSON(o, TargetsView{Model: "NVIDIA H200", MaxError: new(0.05)}) },
		"fit-matrix":  func(o io.Writer) error { return JSON(o, matrixOf("a100-40gb")) },
		"target":      func(o io.Writer) error { return JSON(o, TargetView{targetOf("2060")}) },
		"fit":         func(o io.Writer) error { return JSON(o, view) },
		"verify":      func(o io.Writer) error { return JSON(o, broken) },
		"verify-none": func(o io.Writer) error { return JSON(o, VerifyView{}) },
		"version":     func(o io.Writer) error { return JSON(o, VersionView{public.Version{Version: "0.1.0", Go: "go1.26"}}) },
	}
}

// commandOf is the command that writes a screen.
func commandOf(name string) string {
	for _, c := range [][2]string{{"applied", "apply"}, {"diagnostics", "validate"}, {"no-", "validate"}, {"sessions", "ps"}, {"state-list", "state list"}, {"state-session", "state show"},
		{"state-gpu", "state show"}, {"state", "show"}, {"ssh-config", "ssh-config"}, {"targets", "ls"}, {"target", "info"}, {"rebuilt", "state rebuild"}, {"imported", "import"},
		{"unlock", "force-unlock"}, {"moved", "state mv"}, {"forgotten", "state rm"}, {"outputs", "output"}} {
		if strings.HasPrefix(name, c[0]) && !strings.HasPrefix(name, "status") {
			return c[1]
		}
	}
	command, _, _ := strings.Cut(name, "-")
	return command
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// TestTwins holds every JSON screen to its version, to names in snake_case and
// to the same bytes for the same inputs.
func TestTwins(t *testing.T) {
	again := twins()
	for name, write := range twins() {
		var a, b bytes.Buffer
		if err := write(&a); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := again[name](&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s: not the same bytes again (%v)", name, err)
		}
		var value map[string]any
		if err := json.Unmarshal(a.Bytes(), &value); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if value["format_version"] != 1.0 {
			t.Errorf("%s: format_version is %v", name, value["format_version"])
		}
		if err := publictest.Check(commandOf(name), a.Bytes()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkNames(t, name, value)
		for key, v := range value {
			if list, ok := v.([]any); v == nil && !slices.Contains([]string{"error", "sessions", "session", "gpu"}, key) || ok && list == nil {
				t.Errorf("%s: %s is null", name, key)
			}
		}
	}
}

// checkNames walks a value; the names of environment variables are the user's.
func checkNames(t *testing.T, at string, value any) {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == "env" || key == "boot_ids" {
				continue
			}
			if !snakeCase.MatchString(key) {
				t.Errorf("%s: the name %q is not in snake_case", at, key)
			}
			checkNames(t, at+"."+key, inner)
		}
	case []any:
		for _, inner := range v {
			checkNames(t, at, inner)
		}
	}
}

// TestStatusJSON compares what the screen says with the world that it was
// given, field by field, as a test against nvidia-smi would.
func TestStatusJSON(t *testing.T) {
	w := one().applied().lose("worker-3", true).foreign(0, 0, "1g.18gb", 7)
	w.container("lab", "left-over", "")
	var b bytes.Buffer
	if err := JSON(&b, w.status()); err != nil {
		t.Fatal(err)
	}
	var got public.Status
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	shown, real := got.Hosts[0].GPUs[0], w.gpu(0, 0)
	if shown.UUID != real.UUID || shown.Name != "NVIDIA H200" || !shown.MIG || shown.PowerLimitW != 700 || *shown.ClockLockMHz != 1575 || !shown.Acquired {
		t.Errorf("the GPU is shown as %+v", shown)
	}
	if len(shown.Slices) != len(real.Slices) {
		t.Fatalf("%d slices, want %d", len(shown.Slices), len(real.Slices))
	}
	ours := 0
	for i, s := range shown.Slices {
		if s.UUID != real.Slices[i].UUID || s.GPUInstance != real.Slices[i].GPUInstance || s.Start != real.Slices[i].Start || s.Profile != "1g.18gb" {
			t.Errorf("slice %d is shown as %+v, and is %+v", i, s, real.Slices[i])
		}
		if s.Ours != (s.Session != nil) || s.Ours != (s.Start != 7) {
			t.Errorf("slice at slot %d: ours %t, session %v", s.Start, s.Ours, s.Session)
		}
		if s.Ours {
			ours++
		}
	}
	if ours != 6 || got.Sessions[3].State != "slice missing" || got.Sessions[0].State != resource.Running || !got.HasDrift {
		t.Errorf("%d slices are ours; worker[3] is %q, worker[0] %q, drift %t", ours, got.Sessions[3].State, got.Sessions[0].State, got.HasDrift)
	}
	if len(got.Orphans) != 1 || got.Orphans[0].Session != "left-over" {
		t.Errorf("orphans: %+v", got.Orphans)
	}
}

// TestSettingsArePublic: JSON has each setting that a GPU can have.
func TestSettingsArePublic(t *testing.T) {
	for _, which := range resource.AllSettings {
		if settingsOf(resource.Settings{}.With(which, resource.On)) == (public.Settings{}) {
			t.Errorf("public.Settings has no %s", which.Words())
		}
	}
}

// TestLockIsBelieved keeps apart what is known of a clock lock and what is not.
func TestLockIsBelieved(t *testing.T) {
	for _, c := range []struct {
		change func(w *world)
		want   lock
		mhz    int
	}{
		{func(*world) {}, lockHeld, 1575},
		{func(w *world) { w.prior.GPUs[0].ClockUnsure = true }, lockUnknown, 0},
		{func(w *world) { w.gpu(0, 0).SMClockMHz = 1980 }, lockLifted, 0},
		{func(w *world) { w.prior.GPUs[0].Applied = w.prior.GPUs[0].Applied.With(resource.SMClock, 0) }, lockUnlocked, 0},
		{func(w *world) { w.prior.GPUs[0].Applied = w.prior.GPUs[0].Applied.Without(resource.SMClock) }, noLock, 0},
		{func(w *world) { w.prior.GPUs = nil }, noLock, 0},
	} {
		w := one().applied()
		c.change(w)
		if state, mhz := w.status().lock(*w.gpu(0, 0)); state != c.want || mhz != c.mhz {
			t.Errorf("the lock is %s at %d MHz, want %s at %d", state, mhz, c.want, c.mhz)
		}
	}
}

// TestPlanJSONFigures checks the ratios of an exact fit.
func TestPlanJSONFigures(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, one().view()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Changes bool             `json:"has_changes"`
		Summary map[string]int   `json:"summary"`
		Steps   []map[string]any `json:"steps"`
		Fits    []struct {
			Session string  `json:"session"`
			Profile string  `json:"profile"`
			Ratio   float64 `json:"fp32_ratio"`
			Error   float64 `json:"fp32_error"`
			Tensor  float64 `json:"tensor_ratio"`
		} `json:"fits"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	first := got.Fits[0]
	if !got.Changes || got.Summary["create"] != 7 || got.Summary["gpus_to_set_up"] != 1 || len(got.Steps) != 19 || len(got.Fits) != 7 {
		t.Errorf("has_changes %t, summary %v, %d steps, %d fits", got.Changes, got.Summary, len(got.Steps), len(got.Fits))
	}
	if first.Session != "session.worker[0]" || first.Profile != "1g.18gb" || first.Ratio < 0.999 || first.Ratio > 1.001 || first.Error > 0.001 || first.Tensor < 3.9 {
		t.Errorf("the first fit is %+v", first)
	}
}

// TestNothingCounts keeps drift silent where nothing counts: cron mails output.
func TestNothingCounts(t *testing.T) {
	var b bytes.Buffer
	Drift(&b, Style{}, one().applied().foreign(0, 0, "1g.18gb", 7).view())
	if b.Len() > 0 {
		t.Errorf("a foreign slice alone is no drift, and yet:\n%s", &b)
	}
}

// TestAchieved counts only what was done to the end.
func TestAchieved(t *testing.T) {
	p := one().plan()
	v := AppliedView{Plan: p}
	for n := range len(p.Steps) + 1 {
		var done []string
		for _, s := range p.Steps[:n] {
			done = append(done, s.ID)
		}
		v.Result = apply.Result{Done: done, NotTried: p.Steps[n:]}
		got := achieved(v)
		created := max(0, (n-5)/2) // one notes the boot, four set the GPU up, two make a session
		if got.Create != created || (got.SetUp == 1) != (n >= 5) {
			t.Errorf("after %d of %d steps: %+v", n, len(p.Steps), got)
		}
	}
}

var usedByTwo = map[resource.Address]resource.Use{resource.Nth("worker", 0): {PeakMiB: 5812}, resource.Nth("worker", 1): {PeakMiB: 6144, OutOfMemory: 3}}

// TestUsedJSON: what a session used, and what would have been enough, are reported for
// sessions that are there and of those that ended.
func TestUsedJSON(t *testing.T) {
	w, down := one().applied(), one().applied().without(all)
	there := w.status()
	there.Used, there.Targets = usedByTwo, catalog.Targets
	var status, applied bytes.Buffer
	if err := errors.Join(JSON(&status, there), JSON(&applied, AppliedView{Plan: down.plan(), Result: apply.Result{Used: usedByTwo}, Targets: catalog.Targets})); err != nil {
		t.Fatal(err)
	}
	const first = `"peak_mib":5812,"out_of_memory":0,"fits":"rtx-2060","does_not_fit":"gtx-1650-super","words":"peaked at 5812 of 6144 MiB; would fit an RTX 2060 or larger, not a GTX 1650 SUPER (4096 MiB)"}`
	const second = `"peak_mib":6144,"out_of_memory":3,"does_not_fit":"rtx-2060","next_larger":"rtx-2060-super","words":"ran out of memory 3 times: 6144 MiB are not enough; cosplay fits -- COMMAND finds the card"}`
	for _, test := range []struct {
		json string
		want []string
	}{
		{status.String(), []string{`"used":{` + first, `"used":{` + second, `"used":null`}},
		{applied.String(), []string{`"ended":[{"address":"session.worker[0]","name":"worker-0",` + first + `,{"address":"session.worker[1]","name":"worker-1",` + second + `]`}},
	} {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(test.json)); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(compact.String(), want) {
				t.Errorf("no %s in\n%s", want, compact.String())
			}
		}
	}
}
