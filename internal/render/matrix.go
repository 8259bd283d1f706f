package render

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

	"cosplay/internal/fit"
	"cosplay/internal/hostfile"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// MatrixView is one kind of GPU as each target.
type MatrixView struct {
	Model   resource.Model
	Where   string // "from the catalog", "GPU 0 of host lab"
	Options resource.FitOptions
	Choices []Choice // grouped by architecture
}

// Choice is the slice that cosplay would choose for a target.
type Choice struct {
	Target resource.Target
	Fit    resource.Fit
	Err    error // why it would choose none; Fit has no values then
}

// Matrix shows what a GPU is worth as each target.
func (v MatrixView) draw(p *page) {
	p.flow(0, 2, join(inked(strong, v.Model.Name), text(", "+optionWords(v.Options)), inked(dim, "  ("+v.Where+")")))
	p.gap()
	t := &table{gap: 2, columns: slices.Concat(textColumns("TARGET"), figureColumns("VRAM"), textColumns("SLICE"), fitColumns()),
		spare: []string{"SHARE", "SMs", "GB/s", "TFLOPS", "VRAM"}}
	for _, group := range grouped(v.Choices, func(c Choice) string { return c.Target.Architecture }) {
		t.across(0, inked(strong, prose.Capital(group[0].Target.Architecture)))
		for _, c := range group {
			t.add(v.cells(c)...)
		}
	}
	p.table(t)
	p.gap()
	p.say(v.summary())
}

func (v MatrixView) cells(c Choice) []line {
	key, memory := text("  "+c.Target.Key), text(mib(c.Target.MemoryMiB))
	if c.Err != nil {
		return []line{key, memory, inked(dim, "too small")}
	}
	return append([]line{key, memory, text(cmp.Or(c.Fit.Profile, "whole GPU"))}, fitCells(v.Model, c.Fit)...)
}

// summary states how many targets fit and how well.
func (v MatrixView) summary() string {
	fits := prose.Only(v.Choices, func(c Choice) bool { return c.Err == nil })
	errors := each(fits, func(c Choice) float64 { return c.Fit.Error(v.Options.Prefer) })
	n := len(errors)
	count := fmt.Sprintf("%d of %s fit", n, prose.Count(len(v.Choices), "target"))
	if n == 0 {
		return count + "."
	}
	slices.Sort(errors)
	median := 100 * (errors[(n-1)/2] + errors[n/2]) / 2
	return fmt.Sprintf("%s; the error in %s is %.1f %% in the median, and at most %.1f %%.", count, fit.Figures(v.Options.Prefer), median, 100*errors[n-1])
}

func (v MatrixView) data() any {
	return public.FitMatrix{Format: public.V1, Model: hostfile.Model(v.Model), Where: v.Where, Options: fitOptionsOf(v.Options), Choices: each(v.Choices, choiceOf)}
}

func choiceOf(c Choice) public.Choice {
	out := public.Choice{Target: c.Target.Key, Name: c.Target.Name, MemoryMiB: c.Target.MemoryMiB, Error: errorText(c.Err)}
	if c.Err == nil {
		out.Fit = new(figuresOf(c.Fit))
	}
	return out
}

// MatrixCSV writes the choices as comma-separated values. The columns have the names of the JSON output.
func MatrixCSV(w io.Writer, v MatrixView) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"target", "name", "memory_mib", "profile", "sms", "clock_mhz", "fp32_tflops", "fp32_ratio", "fp32_error",
		"bandwidth_gbs", "bandwidth_ratio", "bandwidth_error", "tensor_tflops", "tensor_ratio", "error"}}
	for _, c := range v.Choices {
		row := []string{c.Target.Key, c.Target.Name, strconv.Itoa(c.Target.MemoryMiB)}
		if c.Err != nil {
			row = append(row, slices.Repeat([]string{""}, 11)...)
			rows = append(rows, append(row, c.Err.Error()))
			continue
		}
		f := figuresOf(c.Fit)
		row = append(row, f.Profile, strconv.Itoa(f.Got.SMs), strconv.Itoa(f.ClockMHz))
		for _, x := range []*float64{figure(f.Got.FP32TFLOPS), f.FP32Ratio, f.FP32Error, figure(f.Got.BandwidthGBs), f.BandwidthRatio, f.BandwidthError, figure(f.Got.TensorTFLOPS), f.TensorRatio} {
			row = append(row, decimal(x))
		}
		rows = append(rows, append(row, ""))
	}
	return out.WriteAll(rows)
}

// decimal writes a figure that may be missing.
func decimal(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}
