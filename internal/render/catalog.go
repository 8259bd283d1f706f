package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/fit"
	"cosplay/internal/hostfile"
	"cosplay/internal/place"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// TargetsView is the targets of the catalog, or those that a GPU can present.
type TargetsView struct {
	Targets   []resource.Target
	Model     string   // of the GPU; "" if all targets are wanted
	Where, On string   // where the model is from; On is its name on the command line
	MaxError  *float64 // in FP32, a ratio; nil if only the memory counts
}

func (v TargetsView) draw(p *page) {
	targets := v.Targets
	if len(targets) == 0 {
		p.flow(0, 0, text("There is no such target. cosplay ls without a filter lists all."))
		return
	}
	rates := figureColumns("SMs", "VRAM", "FP32 TFLOPS", "BANDWIDTH", "TENSOR TFLOPS", "POWER", "YEAR")
	t := &table{columns: append(textColumns("TARGET"), rates...), spare: []string{"YEAR", "SMs"}}
	for _, group := range grouped(targets, func(t resource.Target) string { return t.Architecture }) {
		t.across(0, inked(strong, prose.Capital(group[0].Architecture)))
		for _, one := range group {
			t.texts("  "+one.Key, fmt.Sprint(one.SMs), mib(one.MemoryMiB), fmt.Sprintf("%.1f", one.FP32TFLOPS),
				fmt.Sprintf("%.0f GB/s", one.BandwidthGBs), tensor(one.TensorFP16TFLOPS), fmt.Sprintf("%d W", one.PowerW), fmt.Sprint(one.Year))
		}
	}
	p.table(t)
	p.gap()
	p.say(v.count() + ". Tensor is dense FP16 with FP32 accumulate.")
	shown := "fit " + targets[0].Key + given(v.On, " --on "+v.On)
	p.next("cosplay " + either(v.Model == "", "info "+targets[0].Key, shown))
}

// count states how many targets there are, and what they have in common.
func (v TargetsView) count() string {
	count, gpu := prose.Count(len(v.Targets), "target"), v.Model
	if v.On == "" {
		gpu += " (" + v.Where + ")"
	}
	switch {
	case v.Model == "":
		return count
	case v.MaxError == nil:
		return fmt.Sprintf("%s that %s has the memory for", count, gpu)
	}
	return fmt.Sprintf("%s that %s can present with an FP32 error of at most %s %%", count, gpu, hundredths(*v.MaxError))
}

func tensor(tflops float64) string {
	if tflops == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", tflops)
}

func (v TargetsView) data() any {
	return public.Targets{Format: public.V1, Model: v.Model, MaxError: v.MaxError, Targets: each(v.Targets, func(t resource.Target) public.Target { return public.Target(t) })}
}

// TargetView is one target, with all that the catalog knows of it.
type TargetView struct{ resource.Target }

func (t TargetView) draw(p *page) {
	p.print(0, join(inked(strong, t.Name), inked(dim, "  "+t.Key)))
	p.gap()
	rows := &table{indent: 2, columns: []column{{}, {prose: true}}}
	rows.fact("also", strings.Join(t.Aliases, ", "))
	rows.fact("architecture", fmt.Sprintf("%s, compute capability %s, %d", prose.Capital(t.Architecture), t.ComputeCapability, t.Year))
	rows.fact("SMs", fmt.Sprintf("%d at %d MHz boost", t.SMs, t.BoostMHz))
	rows.fact("VRAM", fmt.Sprintf("%s, %d bit", mib(t.MemoryMiB), t.BusBits))
	rows.fact("bandwidth", number(t.BandwidthGBs)+" GB/s")
	rows.fact("L2 cache", number(t.L2MiB)+" MiB")
	rows.fact("board power", fmt.Sprintf("%d W", t.PowerW))
	rows.fact("PCIe", fmt.Sprintf("generation %d", t.PCIeGeneration))
	rows.fact("FP32", number(t.FP32TFLOPS)+" TFLOPS")
	rows.fact("tensor", tensorWords(t.Target))
	rows.fact("types", strings.ToUpper(strings.Join(t.TensorTypes, ", ")))
	rows.fact("source", t.Source)
	p.table(rows)
	p.gap()
	p.next("cosplay fit " + t.Key)
}

// tensorWords lists the dense rates of the tensor cores.
func tensorWords(t resource.Target) string {
	rate := func(name string, rate float64, unit string) string {
		return given(rate > 0, name+" "+number(rate)+" "+unit)
	}
	rates := strings.Join(present(rate("FP16", t.TensorFP16TFLOPS, "TFLOPS"), rate("BF16", t.TensorBF16TFLOPS, "TFLOPS"),
		rate("FP8", t.TensorFP8TFLOPS, "TFLOPS"), rate("INT8", t.TensorINT8TOPS, "TOPS")), ", ")
	return either(rates == "", "none", rates+", dense")
}

func (t TargetView) data() any {
	return public.TargetInfo{Format: public.V1, Target: public.Target(t.Target)}
}

// FitView is one target on one kind of GPU.
type FitView struct {
	Target     resource.Target
	Model      resource.Model
	Options    resource.FitOptions
	Candidates []resource.Fit // the best first
	Err        error          // why cosplay would take none
	Limits     []string       // what cannot be hidden
	Shares     []place.Share  // by kind of sharing; none where they were not asked for
	Where      string         // "from the catalog", "GPU 0 of this machine"
}

func (v FitView) draw(p *page) {
	title := " on " + v.Model.Name + ", " + optionWords(v.Options)
	if v.Options.MaxError != nil {
		title += fmt.Sprintf(", at most %s %% off", hundredths(*v.Options.MaxError))
	}
	p.flow(0, 2, join(inked(strong, v.Target.ShortName()), text(title), inked(dim, given(v.Where, "  ("+v.Where+")"))))
	p.gap()
	p.fitTable(v)
	if small := tooSmall(v); len(small) > 0 && len(v.Candidates) > 0 {
		p.flow(2, 4, inked(dim, "too small: "+strings.Join(small, ", ")))
	}
	p.shareTable(v)
	p.gap()
	if len(v.Limits) > 0 {
		p.lead(0, strong, "Cannot be hidden:", prose.Stop(strings.Join(v.Limits, "; ")))
	}
	if v.Err != nil {
		p.problem(0, 0, inked(removed, "Error:"), v.Err.Error())
	} else if len(v.Candidates) > 0 {
		p.lead(0, added, ">", "is what cosplay would take; fit.tolerance and fit.prefer choose another row.")
	}
}

// shareTable shows how many sessions of the target each kind of sharing gives, and what they get.
func (p *page) shareTable(v FitView) {
	if len(v.Shares) == 0 {
		return
	}
	p.gap()
	p.say("How many such sessions one GPU holds, and what the one with the worst fit gets while the others are idle:")
	titles := figureColumns("FP32", "BANDWIDTH", "TENSOR")
	idle := &table{gap: 2, indent: 2, columns: slices.Concat(textColumns("SHARING", "EACH"), figureColumns("COUNT"), titles)}
	busy := &table{gap: 2, indent: 2, columns: append(textColumns("SHARING"), titles...)}
	for _, s := range v.Shares {
		each := cmp.Or(s.Slice.Profile, "whole GPU")
		switch {
		case s.Slice.Percent > 0 && s.Slice.Whole():
			each = s.Slice.String()
		case s.Slice.Percent > 0:
			each = fmt.Sprintf("%d %% of %s", s.Slice.Percent, each)
		}
		sharing := text(string(s.Sharing))
		idle.add(append([]line{sharing, text(each), text(fmt.Sprint(s.Sessions))}, rates(plain, s.Alone)...)...)
		busy.add(append([]line{sharing}, rates(plain, s.Busy)...)...)
	}
	p.table(idle)
	p.gap()
	p.say("What it gets while all are busy:")
	p.table(busy)
}

// tooSmall lists the slices that do not hold the target's memory: "1g.18gb (16384 MiB)". Variants of a profile are
// left out, as they are in the table.
func tooSmall(v FitView) []string {
	small := prose.Only(v.Model.Profiles, func(p resource.Profile) bool {
		return p.MemoryMiB < v.Target.MemoryMiB && !resource.Variant(p.Name)
	})
	return each(small, func(p resource.Profile) string { return together(p.Name + " (" + mib(p.MemoryMiB) + ")") })
}

// hundredths writes a ratio in percent, without the noise of binary fractions.
func hundredths(ratio float64) string { return fmt.Sprintf("%.4g", 100*ratio) }

var preferWords = map[resource.Preference]string{
	resource.PreferFP32: "FP32 first", resource.PreferBandwidth: "bandwidth first", resource.PreferBalanced: "FP32 and bandwidth alike",
}

// optionWords are the preferences that choose a fit.
func optionWords(o resource.FitOptions) string {
	prefer := cmp.Or(o.Prefer, resource.PreferFP32)
	return fmt.Sprintf("tolerance %s %%, %s", hundredths(o.Tolerance), preferWords[prefer])
}

func (p *page) fitTable(v FitView) {
	t := &table{gap: 2, columns: slices.Concat([]column{{}, {title: "SLICE", tight: true}}, fitColumns(), []column{{prose: true, brief: leastBrief}}),
		spare: []string{"SHARE", "SMs", "TENSOR"}}
	fp32, bandwidth := leastError(v.Candidates, resource.PreferFP32), leastError(v.Candidates, resource.PreferBandwidth)
	for i, f := range v.Candidates {
		chosen := i == 0 && v.Err == nil
		ink := either(chosen, strong, plain)
		t.add(slices.Concat([]line{inked(added, given(chosen, ">")), inked(ink, cmp.Or(f.Profile, "whole GPU"))}, fitCells(v.Model, f),
			[]line{inked(dim, leastWords(i == fp32, i == bandwidth))})...)
	}
	want := v.Target.Envelope()
	t.add(nil, inked(dim, "target"), nil, text(fmt.Sprint(want.SMs)), nil, text(fmt.Sprintf("%.1f", want.FP32TFLOPS)), nil,
		text(fmt.Sprintf("%.0f", want.BandwidthGBs)), nil, text(tensor(want.TensorTFLOPS)), nil)
	p.table(t)
}

// fitColumns are those of what a fit gives, which fitCells fills.
func fitColumns() []column {
	return append(textColumns("SHARE"), figureColumns("SMs", "CLOCK", "TFLOPS", "FP32", "GB/s", "BANDWIDTH", "TENSOR")...)
}

func fitCells(m resource.Model, f resource.Fit) []line {
	return []line{text(share(m, f)), text(fmt.Sprint(f.Got.SMs)), text(clockWord(m, f)), text(fmt.Sprintf("%.1f", f.Got.FP32TFLOPS)),
		text(fit.Percent(f.FP32Ratio())), text(fmt.Sprintf("%.0f", f.Got.BandwidthGBs)), text(fit.Percent(f.BandwidthRatio())),
		text(times(f.TensorRatio()))}
}

// leastWords marks the fits that are closest in one figure or in both.
func leastWords(fp32, bandwidth bool) string {
	switch {
	case fp32 && bandwidth:
		return "least error in both"
	case fp32:
		return "least error"
	case bandwidth:
		return "least bandwidth error"
	}
	return ""
}

// leastBrief is the mark for a narrow screen.
func leastBrief(words string) string { return strings.Replace(words, " error", "", 1) }

// share is the part of the GPU that a slice takes: compute slices of a MIG profile.
func share(m resource.Model, f resource.Fit) string {
	if p, ok := m.Profile(f.Profile); ok && m.ComputeSlices > 0 {
		return fmt.Sprintf("%d/%d", p.ComputeSlices, m.ComputeSlices)
	}
	return "all"
}

// clockWord names the clock of a fit; the highest needs no lock.
func clockWord(m resource.Model, f resource.Fit) string {
	if f.ClockMHz == m.MaxClockMHz() {
		return "unlocked"
	}
	return resource.Clock(f.ClockMHz)
}

// leastError returns the index of the fit with the least error, the first of equals; -1 for no fits.
func leastError(fits []resource.Fit, prefer resource.Preference) int {
	best := -1
	for i, f := range fits {
		if best < 0 || f.Error(prefer) < fits[best].Error(prefer) {
			best = i
		}
	}
	return best
}

func figuresOf(f resource.Fit) public.Figures {
	return public.Figures{
		Profile: f.Profile, ClockMHz: f.ClockMHz, Got: public.Envelope(f.Got), Want: public.Envelope(f.Want),
		FP32Ratio: figure(f.FP32Ratio()), FP32Error: figure(f.Error(resource.PreferFP32)),
		BandwidthRatio: figure(f.BandwidthRatio()), BandwidthError: figure(f.Error(resource.PreferBandwidth)),
		TensorRatio: figure(f.TensorRatio()),
	}
}

func (v FitView) data() any {
	return public.Fits{Format: public.V1, Target: public.Target(v.Target), Model: hostfile.Model(v.Model), Where: v.Where, Options: fitOptionsOf(v.Options),
		Error:      errorText(v.Err),
		Candidates: each(v.Candidates, figuresOf), Limits: list(v.Limits),
		Shares: each(v.Shares, func(s place.Share) public.Share {
			return public.Share{Sharing: string(s.Sharing), Sessions: s.Sessions, Profile: s.Slice.Profile, Percent: s.Slice.Percent, Alone: figuresOf(s.Alone), Busy: figuresOf(s.Busy)}
		})}
}
