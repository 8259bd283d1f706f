package render

import (
	"fmt"
	"io"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// Targets shows the catalog, grouped by architecture.
func Targets(w io.Writer, s Style, targets []resource.Target) {
	p := newPage(s)
	if len(targets) == 0 {
		p.flow(0, 0, text("There is no such target. cosplay ls without a filter lists all."))
		p.flush(w)
		return
	}
	t := &table{columns: []column{{title: "TARGET"}, {title: "SMs", right: true}, {title: "VRAM", right: true}, {title: "FP32 TFLOPS", right: true},
		{title: "BANDWIDTH", right: true}, {title: "TENSOR TFLOPS", right: true}, {title: "POWER", right: true}, {title: "YEAR", right: true}},
		spare: []string{"YEAR", "SMs"}}
	for _, group := range grouped(targets, func(t resource.Target) string { return t.Architecture }) {
		t.across(0, inked(strong, prose.Capital(group[0].Architecture)))
		for _, one := range group {
			t.add(text("  "+one.Key), text(fmt.Sprint(one.SMs)), text(mib(one.MemoryMiB)), text(fmt.Sprintf("%.1f", one.FP32TFLOPS)),
				text(fmt.Sprintf("%.0f GB/s", one.BandwidthGBs)), text(tensor(one.TensorFP16TFLOPS)), text(fmt.Sprintf("%d W", one.PowerW)), text(fmt.Sprint(one.Year)))
		}
	}
	p.table(t)
	p.gap()
	p.flow(0, 2, text(prose.Count(len(targets), "target")+". Tensor is dense FP16 with FP32 accumulate."))
	p.next("cosplay info " + targets[0].Key)
	p.flush(w)
}

func tensor(tflops float64) string {
	if tflops == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", tflops)
}

// TargetsJSON writes targets as data.
func TargetsJSON(w io.Writer, targets []resource.Target) error {
	return JSON(w, public.Targets{Format: public.V1, Targets: each(targets, func(t resource.Target) public.Target { return public.Target(t) })})
}

// Target shows all that the catalog knows of one target.
func Target(w io.Writer, s Style, t resource.Target) {
	p := newPage(s)
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
	rows.fact("tensor", tensorWords(t))
	rows.fact("types", strings.ToUpper(strings.Join(t.TensorTypes, ", ")))
	rows.fact("source", t.Source)
	p.table(rows)
	p.gap()
	p.next("cosplay fit " + t.Key)
	p.flush(w)
}

// tensorWords lists the dense rates of the tensor cores.
func tensorWords(t resource.Target) string {
	var rates []string
	for _, r := range []struct {
		name string
		rate float64
		unit string
	}{
		{"FP16", t.TensorFP16TFLOPS, "TFLOPS"}, {"BF16", t.TensorBF16TFLOPS, "TFLOPS"},
		{"FP8", t.TensorFP8TFLOPS, "TFLOPS"}, {"INT8", t.TensorINT8TOPS, "TOPS"},
	} {
		if r.rate > 0 {
			rates = append(rates, fmt.Sprintf("%s %s %s", r.name, number(r.rate), r.unit))
		}
	}
	if len(rates) == 0 {
		return "none"
	}
	return strings.Join(rates, ", ") + ", dense"
}

// TargetJSON writes one target as data.
func TargetJSON(w io.Writer, t resource.Target) error {
	return JSON(w, public.TargetInfo{Format: public.V1, Target: public.Target(t)})
}
