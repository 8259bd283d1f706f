package render

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"

	"cosplay/catalog"
	"cosplay/internal/apply"
	"cosplay/internal/fit"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// screen is one thing that a person reads.
type screen struct {
	name string
	show func(w io.Writer, s Style)
}

func one() *world  { return (&world{}).host("lab", "h200").seven(0, 0, 0) }
func rack() *world { return wide(8, 6) }

// wide is a host with GPUs of which some get seven workers each.
func wide(gpus, used int) *world {
	var models []string
	for range gpus {
		models = append(models, "h200")
	}
	w := (&world{}).host("lab", models...)
	for i := range used {
		w.seven(0, i, 7*i)
	}
	return w
}

// idle is a world in which no GPU has anything to do.
func idle(w *world) *world {
	for h := range w.live.Hosts {
		for g := range w.live.Hosts[h].GPUs {
			w.live.Hosts[h].GPUs[g].LowClockReason = true
		}
	}
	return w
}

// mixed has two hosts, wide slices, a whole GPU, a card without MIG and blocks
// of all kinds.
func mixed() *world {
	return (&world{}).host("lab", "h200", "h200").host("attic", "a100-80gb", "l40s").
		place(resource.One("big"), "3090", 0, 0, "4g.71gb", 0).
		place(resource.Each("basic", "ann"), "3060", 0, 0, "1g.35gb", 4).
		place(resource.Each("basic", "bob of the long name"), "1660", 0, 0, "1g.18gb", 6).
		place(resource.One("rest"), "4090", 0, 1, "", 0).
		place(resource.Nth("worker", 0), "2060", 1, 0, "2g.20gb", 0).
		place(resource.Nth("worker", 1), "2060", 1, 0, "1g.10gb", 2).
		place(resource.One("web"), "1080-ti", 1, 1, "", 0)
}

func screens() []screen {
	return slices.Concat(planScreens(), runScreens(), liveScreens(), topScreens(), catalogScreens(), containerScreens(), resetScreens(), verifyScreens(), reportScreens())
}

func planScreens() []screen {
	show := func(name string, v PlanView) screen {
		return screen{name, func(w io.Writer, s Style) { Show(w, s, v) }}
	}
	saved := one().view()
	saved.Saved = "my fleet.plan"
	stale := saved
	stale.Stale = "the state has moved from serial 3 to 4 since it was made"
	applying := one().view()
	applying.Applying = true
	stdin := one().applied().view()
	stdin.Config, stdin.Flags = "standard input", []string{"--file", "-"}
	recovered := one().applied().view()
	recovered.Notes = []resource.Note{{Step: "session.worker[3]/slice", Kind: resource.SliceTaken}, {Step: one().gpu(0, 0).UUID + "/clock", Kind: resource.LockUnsure}}
	warned := one().view()
	warned.Warnings, warned.Files = mistakes()
	warned.Warnings = append(warned.Warnings[3:], &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "session.big has GPU 1, which processes of others use too", Subject: &hcl.Range{}})
	drifted := one().applied().lose("worker-3", false).foreign(0, 0, "1g.18gb", 7)
	drifted.gpu(0, 0).SMClockMHz = 1980
	rebooted := one().applied()
	rebooted.live.Hosts[0].BootID, rebooted.live.Hosts[0].Bodies = "boot-2", nil
	*rebooted.gpu(0, 0) = *one().gpu(0, 0)
	changed := one().applied().env(resource.Nth("worker", 2), "SEED", "13").env(resource.Nth("worker", 2), "LR", "0.1").without(func(s resource.Session) bool { return s.Address.Key.Index > 4 })
	changed.place(resource.One("big"), "3060", 0, 0, "2g.35gb", 4)
	moved := wide(2, 1).applied().without(func(s resource.Session) bool { return s.Address.Key.Index == 6 })
	moved.place(resource.Nth("worker", 6), "3060", 0, 1, "2g.35gb", 0)
	destroyed := one().applied().without(all)
	destroyed.gpu(0, 0).PowerMW = 500_000
	destroyed.foreign(0, 0, "1g.18gb", 7)
	undone := destroyed.view()
	undone.Destroy = true
	nothing := (&world{}).host("lab", "h200").view()
	nothing.Destroy = true
	givenBack := wide(2, 2).applied().without(all).applied()
	givenBack.live.Hosts[0].Bodies, givenBack.prior.Sessions = nil, nil
	back := wide(2, 2).applied()
	back.prior.Sessions, back.live.Hosts[0].Bodies = nil, nil
	back.gpu(0, 0).Slices, back.gpu(0, 1).Slices = nil, nil
	without := wide(2, 2).applied()
	without.live.Hosts[0].GPUs = without.live.Hosts[0].GPUs[:1]
	without.without(func(s resource.Session) bool { return s.Address.Key.Index > 6 })
	return []screen{
		show("plan-first", one().view()),
		show("plan-saved", saved),
		show("plan-stale", stale),
		show("plan-applying", applying),
		show("plan-nothing", one().applied().view()),
		show("plan-nothing-stdin", stdin),
		show("plan-nothing-idle", idle(one().applied()).view()), show("plan-drift-idle", idle(one().applied().lose("worker-3", false)).view()),
		show("plan-nothing-foreign", wide(2, 2).applied().foreign(0, 0, "1g.18gb", 7).foreign(0, 1, "1g.18gb", 7).view()),
		show("plan-recovered", recovered),
		show("plan-warned", warned),
		show("plan-drift", drifted.view()),
		show("plan-reboot", rebooted.view()),
		show("plan-change", changed.view()),
		show("plan-move", moved.view()),
		show("plan-fleet", rack().view()),
		show("plan-fleet-grows", wideGrown().view()),
		show("plan-mixed", mixed().view()),
		show("plan-destroy", undone),
		show("plan-destroy-nothing", nothing),
		show("plan-give-back", back.without(all).view()),
		show("plan-gpu-gone", without.view()),
		{"plan-verbose", func(w io.Writer, s Style) { s.Verbose = true; Show(w, s, changed.view()) }},
		{"drift-idle", func(w io.Writer, s Style) { Information(w, s, idle(wide(2, 2).applied()).view()) }},
		{"drift-none", func(w io.Writer, s Style) { NoDrift(w, s, one().applied().view()) }},
		{"drift-foreign", func(w io.Writer, s Style) { NoDrift(w, s, one().applied().foreign(0, 0, "1g.18gb", 7).view()) }},
		{"drift", func(w io.Writer, s Style) { Drift(w, s, drifted.view()) }},
		{"drift-reboot", func(w io.Writer, s Style) { Drift(w, s, rebooted.view()) }},
	}
}

// wideGrown has two GPUs in use and one more wanted.
func wideGrown() *world { return wide(4, 2).applied().seven(0, 2, 14) }

func runScreens() []screen {
	w := one()
	planned, before := w.plan(), w.live
	var done []string
	for _, s := range planned.Steps {
		done = append(done, s.ID)
	}
	after := one().applied().prior
	good := AppliedView{NvidiaSMI: true, Result: apply.Result{Prior: after, Done: done}, Plan: planned, Live: before, Took: 3120 * time.Millisecond}
	blind := good
	blind.NvidiaSMI = false
	failedAt := len(planned.Steps) - 4
	failed, kept, stopped, journal := good, good, good, good
	short := after.Clone()
	short.Sessions = short.Sessions[:5]
	failed.Result = apply.Result{Prior: short, Done: done[:failedAt], NotTried: planned.Steps[failedAt+1:], Failures: []apply.Failure{
		{Step: planned.Steps[failedAt], Err: errors.New("NVML: Insufficient Resources (23) on GPU 0"), Undone: true}}}
	kept.Result = failed.Result
	kept.Result.Failures = []apply.Failure{
		{Step: planned.Steps[failedAt], Err: errors.New("NVML: Insufficient Resources (23) on GPU 0\n  it has 0 compute slices left"), Left: &apply.UndoError{Step: planned.Steps[failedAt], Err: errors.New("NVML: In Use (19)")}},
		{Step: planned.Steps[5], Err: errors.New("NVML: No Permission (4): the SM clock needs root; cosplay doctor prints the line that gives it")}}
	stopped.Result = apply.Result{Prior: short, Done: done[:failedAt+1], NotTried: planned.Steps[failedAt+1:], Interrupted: true}
	journal.Err, journal.Result = errors.New("write /srv/exp/cosplay.state.json.journal: no space left on device; the run was stopped. What it did is found and taken over by the next command"), failed.Result
	journal.Result.Failures = nil
	down := one().applied().without(all)
	undo := AppliedView{Result: apply.Result{}, Plan: down.plan(), Live: down.live, Took: 71 * time.Second, Destroy: true}
	for _, s := range undo.Plan.Steps {
		undo.Result.Done = append(undo.Result.Done, s.ID)
	}
	judged := undo
	judged.Targets = catalog.Targets
	judged.Result.Used = map[resource.Address]resource.Use{resource.Nth("worker", 0): {PeakMiB: 5812}, resource.Nth("worker", 1): {PeakMiB: 6144, OutOfMemory: 3}, resource.Nth("worker", 2): {PeakMiB: 3000}, resource.Nth("worker", 3): {}}
	down.foreign(0, 0, "1g.18gb", 7)
	left := undo
	left.Plan = down.plan()
	show := func(name string, v AppliedView) screen {
		return screen{name, func(w io.Writer, s Style) { Show(w, s, v) }}
	}
	return []screen{
		show("applied", good), show("applied-no-smi", blind), show("applied-failed", failed), show("applied-left", kept), show("applied-interrupted", stopped),
		show("applied-stopped", journal), show("destroyed", undo), show("destroyed-left", left), show("destroyed-judged", judged),
		{"progress", func(w io.Writer, s Style) {
			p := NewProgress(w, s)
			for i, step := range planned.Steps[2:] {
				e := apply.Event{Live: good.Live, Step: step, Number: i + 1, Total: planned.Effects(), Took: time.Duration(i*137) * time.Millisecond}
				p.Event(e)
				if e.Kind = apply.StepDone; i == 9 {
					e.Kind, e.Err = apply.StepFailed, errors.New("NVML: Insufficient Resources (23)")
				}
				p.Event(e)
			}
			p.Event(apply.Event{Live: good.Live, Kind: apply.UndoDone, Step: planned.Steps[10]})
			p.Event(apply.Event{Live: good.Live, Kind: apply.UndoFailed, Step: planned.Steps[9], Err: errors.New("NVML: In Use (19)")})
		}},
		{"mistakes", func(w io.Writer, s Style) { diags, files := mistakes(); Diagnostics(w, s, diags, files) }},
		{"error", func(w io.Writer, s Style) {
			Error(w, s, errors.New("the journal cosplay.state.json.journal belongs to another state (lineage 6f3c1e0a, serial 4) than cosplay.state.json:\n    lineage 77aa, serial 2\n\nBring back the state that it belongs to."))
		}},
	}
}

// mistakes are two errors in a file, one without a place, and two warnings.
func mistakes() (hcl.Diagnostics, map[string]*hcl.File) {
	source := "host \"lab\" {\n  simulate = \"1 x h200\"\n}\n\nsession \"worker\" {\n\tcount = 7\n  target = \"2600\"\n  env = { A = 1, B = " +
		"\"a value that is far longer than the screen is wide, so that only a piece of it can be shown around what is wrong with it\", CC = 5, DD = 6 }\n}\n"
	parser := hclparse.NewParser()
	if _, diags := parser.ParseHCL([]byte(source), "fleet.hcl"); diags.HasErrors() {
		panic(diags)
	}
	find := func(line int, what string) *hcl.Range {
		at, n := 0, 1
		for ; n < line; at++ {
			if source[at] == '\n' {
				n++
			}
		}
		for source[at:at+len(what)] != what {
			at++
		}
		return &hcl.Range{Filename: "fleet.hcl", Start: hcl.Pos{Line: line, Column: 1, Byte: at}, End: hcl.Pos{Line: line, Column: 1, Byte: at + len(what)}}
	}
	return hcl.Diagnostics{
		{Severity: hcl.DiagError, Summary: `unknown target "2600"`, Subject: find(7, `"2600"`), Detail: "The catalog has no such GPU. Did you mean \"2060\"? `cosplay ls` lists all 123."},
		{Severity: hcl.DiagError, Summary: "no such variable", Subject: find(8, "CC"), Detail: "There is no variable of that name. Variables are declared by a variable block:\n\n    variable \"image\" {\n    }\n\nand used as var.image."},
		{Severity: hcl.DiagError, Summary: "no file", Detail: "The folder has no *.hcl file. cosplay init writes one."},
		{Severity: hcl.DiagWarning, Summary: `GPU 0 of host "lab" may have a clock lock already`, Subject: find(6, "7"), Detail: "Its SM clock is 1200 MHz, neither idle nor full. NVML cannot read a lock, so destroy would lift it. If there is one, tell it: baseline_clock = 1200 in the host block."},
		{Severity: hcl.DiagWarning, Summary: "session.worker[0], session.worker[1] and 5 more: RTX 2060 as 1g.18gb on GPU 0 at 1575 MHz is off by FP32 +12 %; alone it would be FP32 +0.0 %", Subject: &hcl.Range{}},
	}, parser.Files()
}

func liveScreens() []screen {
	good := one().applied().status()
	w := one().applied().lose("worker-3", false).lose("worker-5", true).foreign(0, 0, "1g.18gb", 7)
	w.live.Hosts[0].Bodies[0].State = resource.Stopped
	w.container("lab", "left-over-2", "")
	w.gpu(0, 0).SMClockMHz, w.gpu(0, 0).MIGPending = 1980, false
	many := mixed().applied()
	wideMap := wide(24, 20).applied()
	unsure := one().applied()
	unsure.prior.GPUs[0].ClockUnsure, unsure.prior.Sessions[6].Body, unsure.prior.Sessions[6].Handle = true, nil, &resource.Handle{GPUInstance: 3}
	halfway := one().applied()
	halfway.prior.Sessions[5].Body, halfway.prior.Sessions[6].Body = nil, nil
	halfway.live.Hosts[0].Bodies = halfway.live.Hosts[0].Bodies[:5]
	named := (&world{}).host("lab", "l40s").place(resource.One("a_name_that_somebody_thought_would_tell_everything_about_it_"), "3090", 0, 0, "", 0)
	used, much := one().applied().status(), wide(2, 2).applied().status()
	used.Targets, used.Used = catalog.Targets, map[resource.Address]resource.Use{resource.Nth("worker", 0): {PeakMiB: 5812}, resource.Nth("worker", 3): {PeakMiB: 6144, OutOfMemory: 3}, resource.Nth("worker", 4): {}}
	much.Targets, much.Used = catalog.Targets, map[resource.Address]resource.Use{}
	for _, s := range much.Prior.Sessions {
		much.Used[s.Address] = resource.Use{PeakMiB: 300}
	}
	much.Used[resource.Nth("worker", 12)] = resource.Use{PeakMiB: 6000, OutOfMemory: 1}
	status := func(name string, v StatusView) screen {
		return screen{name, func(w io.Writer, s Style) { Show(w, s, v) }}
	}
	return []screen{
		status("status", good), status("status-unsure", unsure.status()), status("status-unfinished", halfway.status()), status("status-drift", w.status()), status("status-mixed", many.status()), status("status-empty", (&world{}).host("lab", "h200", "l40s").status()),
		status("status-used", used), status("status-much-used", much), {"ps-used", func(w io.Writer, s Style) { Show(w, s, SessionsView{used}) }},
		status("status-long-name", named.applied().status()),
		{"plan-long-name", func(w io.Writer, s Style) { Show(w, s, (&world{desired: named.desired, live: named.live}).view()) }},
		{"map", func(w io.Writer, s Style) { Show(w, s, MapView{many.status()}) }},
		{"map-fleet", func(w io.Writer, s Style) { Show(w, s, MapView{wideMap.status()}) }},
		{"map-empty", func(w io.Writer, s Style) { Show(w, s, MapView{StatusView{}}) }},
		{"ps", func(w io.Writer, s Style) { Show(w, s, SessionsView{many.status()}) }},
		{"ps-empty", func(w io.Writer, s Style) { Show(w, s, SessionsView{StatusView{}}) }},
		{"show", func(w io.Writer, s Style) { Show(w, s, StateView{many.prior}) }},
		{"show-unsure", func(w io.Writer, s Style) { Show(w, s, StateView{unsure.prior}) }},
		{"show-empty", func(w io.Writer, s Style) { Show(w, s, StateView{resource.Prior{}}) }},
	}
}

func someTargets() []resource.Target {
	return append(catalog.Targets()[:6:6], catalog.Targets()[40:46]...)
}

// matrixOf is a host of the catalog as some targets, of which one is too large.
func matrixOf(host string) MatrixView {
	v := MatrixView{Model: modelOf(host), Where: "from the catalog", Options: resource.DefaultFit()}
	for _, t := range append(someTargets(), targetOf("b200")) {
		best, err := fit.Best(v.Model, t, v.Options)
		v.Choices = append(v.Choices, Choice{Target: t, Fit: best, Err: err})
	}
	return v
}

func catalogScreens() []screen {
	view := func(target, model string, o resource.FitOptions) FitView {
		v := FitView{Target: targetOf(target), Model: modelOf(model), Options: o, Where: "from the catalog"}
		best, err := fit.Best(v.Model, v.Target, o)
		v.Candidates, v.Limits, v.Err = fit.Candidates(v.Model, v.Target, o), fit.Limits(v.Model, best.Profile, v.Target, false), err
		return v
	}
	show := func(name string, v FitView) screen {
		return screen{name, func(w io.Writer, s Style) { Show(w, s, v) }}
	}
	few := someTargets()
	tight := resource.FitOptions{Prefer: resource.PreferBalanced, Tolerance: 0.07, MaxError: new(0.02)}
	return []screen{
		show("fit", view("3090", "h200", resource.DefaultFit())),
		show("fit-whole", view("gtx-1080-ti", "l40s", resource.DefaultFit())),
		show("fit-too-far", view("3090", "h200", tight)),
		show("fit-no-room", view("b200", "a100-40gb", resource.DefaultFit())),
		{"ls", func(w io.Writer, s Style) { Show(w, s, TargetsView{Targets: few}) }},
		{"ls-on", func(w io.Writer, s Style) {
			Show(w, s, TargetsView{Targets: few, Model: "NVIDIA H200", Where: "from the catalog", On: "h200", MaxError: new(0.05)})
		}},
		{"ls-live", func(w io.Writer, s Style) {
			Show(w, s, TargetsView{Targets: few, Model: "NVIDIA H200", Where: "GPU 0 of host lab"})
		}},
		{"fit-matrix", func(w io.Writer, s Style) { Show(w, s, matrixOf("a100-40gb")) }},
		{"ls-none", func(w io.Writer, s Style) { Show(w, s, TargetsView{}) }},
		{"info", func(w io.Writer, s Style) { Show(w, s, TargetView{targetOf("2060")}) }},
		{"info-pascal", func(w io.Writer, s Style) { Show(w, s, TargetView{targetOf("1080-ti")}) }},
		{"version", func(w io.Writer, s Style) {
			Show(w, s, VersionView{public.Version{Version: "0.1.0", Go: "go1.26.0", Revision: "e1913ed"}})
		}},
		{"version-lacking", func(w io.Writer, s Style) {
			Show(w, s, VersionView{public.Version{Version: "0.1.0", Go: "go1.26.0", Lacks: []string{"libnvidia-ml.so.1"}}})
		}},
		{"fit-all", func(w io.Writer, s Style) {
			for _, h := range catalog.Hosts() {
				fmt.Fprintln(w, h.Key)
				Show(w, s, view("2060", h.Key, resource.DefaultFit()))
			}
		}},
	}
}
