package render

import (
	"errors"
	"io"

	"cosplay/internal/apply"
	"cosplay/internal/resource"
)

// resetScreens are those of the way back.
func resetScreens() []screen {
	ours := one().applied()
	ours.prior.Lineage = "1f3a00c5d2b94e6f8a7b6c5d4e3f2a1b"
	former := resource.Holder{Lineage: "9c4b11d6e3ca5f70", User: "ann", State: "/home/ann/old/cosplay.state.json", Since: "2026-01-02T03:04:05Z",
		Slices: []resource.LiveSlice{{Handle: resource.Handle{UUID: "MIG-9"}}}}
	bob := resource.Holder{Lineage: "aa11", User: "bob", State: "/home/bob/cosplay.state.json"}
	shared := one().applied()
	shared.live.Hosts[0].Ledger = []resource.Page{{UUID: shared.gpu(0, 0).UUID, Holders: []resource.Holder{former, bob}}}
	status := shared.status()
	status.Lost = map[string]bool{former.Lineage: true}

	taken := one().applied().without(all)
	round := ResetRound{Holder: resource.Holder{Lineage: ours.prior.Lineage}, Own: true, Plan: taken.plan(), Prior: taken.prior, Live: taken.live}
	doubtful := round
	doubtful.Unproven = []resource.Body{{ID: "0123456789abcdef", Session: "worker-0", Runtime: "docker"}}
	doubtful.Notes = []resource.Note{{Kind: resource.SliceFromOtherBoot, Slice: resource.LiveSlice{Slice: resource.Slice{GPU: taken.gpu(0, 0).UUID, Profile: "1g.18gb", Start: 4}}}}
	doubtful.Holder, doubtful.Own = former, false
	held := one().applied().without(all).foreign(0, 0, "1g.18gb", 7)
	holding := ResetRound{Holder: round.Holder, Own: true, Plan: held.plan(), Prior: held.prior, Live: held.live}
	lost := ResetView{State: "/p/cosplay.state.json", Fault: "it ends after 812 bytes", Rounds: []ResetRound{round}}
	more := ResetView{State: lost.State, Complaint: "the configuration is not valid (cosplay validate reports why)", Rounds: []ResetRound{doubtful, holding},
		Failures: []error{errors.New("host attic: NVML: the driver is not loaded (9) from nvmlInit_v2\n  modprobe nvidia")}}
	nothing := (&world{}).host("lab", "h200")
	empty := ResetView{State: lost.State, Rounds: []ResetRound{{Own: true, Plan: nothing.plan(), Live: nothing.live}}}
	idle := empty
	idle.Idle = true
	killed := idle
	killed.Killed = []string{"run-0a1b2c", "run-3d4e5f"}
	done := ResetDoneView{ResetView: lost, Results: []ResetResult{{Round: round}}, Aside: []string{"/p/cosplay.state.json.reset-1"}}
	failed := ResetDoneView{ResetView: more, Left: true, Aside: done.Aside, Results: []ResetResult{{Round: round, Result: apply.Result{Prior: taken.prior,
		Failures: []apply.Failure{{Step: taken.plan().Steps[0], Err: errors.New("NVML: in use (19) from nvmlGpuInstanceDestroy on GPU 0")}}}}}}
	rebuilt := RebuiltView{State: lost.State, Fault: lost.Fault, Prior: ours.prior, Live: ours.live, Aside: []string{"/p/cosplay.state.json.rebuilt-1"}}
	claimed := rebuilt
	claimed.Fault, claimed.Unproven, claimed.Notes = "", doubtful.Unproven, doubtful.Notes
	return []screen{
		{"status-holders", func(w io.Writer, s Style) { Show(w, s, status) }},
		{"reset", func(w io.Writer, s Style) { Reset(w, s, lost) }},
		{"reset-more", func(w io.Writer, s Style) { Reset(w, s, more) }},
		{"reset-nothing", func(w io.Writer, s Style) { Reset(w, s, empty) }},
		{"reset-idle", func(w io.Writer, s Style) { Reset(w, s, idle) }},
		{"reset-killed", func(w io.Writer, s Style) { Reset(w, s, killed) }},
		{"reset-done", func(w io.Writer, s Style) { Show(w, s, done) }},
		{"reset-failed", func(w io.Writer, s Style) { Show(w, s, failed) }},
		{"rebuilt", func(w io.Writer, s Style) { Rebuilt(w, s, rebuilt); Show(w, s, rebuilt) }},
		{"rebuilt-claimed", func(w io.Writer, s Style) { Rebuilt(w, s, claimed) }},
	}
}
