package render

import (
	"fmt"
	"io"

	"cosplay/internal/fit"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// Running shows the session that cosplay run is about to create.
func Running(w io.Writer, s Style, v PlanView) {
	p := newPage(s)
	for _, one := range v.Plan.Desired.Sessions {
		p.flow(0, 2, join(inked(strong, one.Target.ShortName()), text(fmt.Sprintf(" as %s of %s: %s, FP32 %s, bandwidth %s",
			one.Slice, together(words.GPU(v.Live, one.Slice.Host, one.Slice.GPU)), together(mib(one.Target.MemoryMiB)),
			together(fit.Percent(one.Fit.FP32Ratio())), together(fit.Percent(one.Fit.BandwidthRatio()))))))
	}
	p.flush(w)
}

// NotRunning shows why the session was not created, and what is left of it.
func NotRunning(w io.Writer, s Style, v AppliedView) {
	p := newPage(s)
	for _, f := range v.Result.Failures {
		p.failure(v, f)
	}
	p.flush(w)
}

// RanView is a session that cosplay run has removed.
type RanView struct {
	AppliedView // of the run that removed it
	Target      resource.Target
	Used        map[resource.Address]resource.Use // by the session
}

// Ran shows the memory that the command used, and that the session is removed.
func Ran(w io.Writer, s Style, v RanView) {
	p := newPage(s)
	for _, j := range judge(v.Used, func(resource.Address) (resource.Target, bool) { return v.Target, true }, v.Targets) {
		p.flow(0, 2, inked(strong, prose.Stop(prose.Capital(j.verdict.String()))))
	}
	for _, f := range v.Result.Failures {
		p.failure(v.AppliedView, f)
	}
	if len(v.Result.Failures) == 0 {
		p.flow(0, 2, inked(dim, "Taken down in "+together(seconds(v.Took))+"."+p.asFound(v.AppliedView)))
	}
	p.flush(w)
}
