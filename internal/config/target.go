package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// maxProduct is the space that NVML has for a GPU's name, without the final NUL.
const maxProduct = 95

// figures are the numbers that a target block can set, each with its field and its bounds.
var figures = map[string]struct {
	of        func(*resource.Target) any // *int or *float64
	low, high float64
	what      string
}{
	"sms":                {func(t *resource.Target) any { return &t.SMs }, 1, 1024, "a number of SMs"},
	"boost_mhz":          {func(t *resource.Target) any { return &t.BoostMHz }, 100, 10_000, "a clock in MHz"},
	"l2_mib":             {func(t *resource.Target) any { return &t.L2MiB }, 0.125, 4096, "a size in MiB"},
	"bandwidth_gbs":      {func(t *resource.Target) any { return &t.BandwidthGBs }, 1, 100_000, "a bandwidth in GB/s"},
	"bus_bits":           {func(t *resource.Target) any { return &t.BusBits }, 32, 16_384, "a width in bits"},
	"pcie_generation":    {func(t *resource.Target) any { return &t.PCIeGeneration }, 1, 7, "a generation"},
	"power_w":            {func(t *resource.Target) any { return &t.PowerW }, 1, 10_000, "a power in W"},
	"fp32_tflops":        {func(t *resource.Target) any { return &t.FP32TFLOPS }, 0.1, 10_000, "a rate in TFLOPS"},
	"tensor_fp16_tflops": {func(t *resource.Target) any { return &t.TensorFP16TFLOPS }, 0, 100_000, "a rate in TFLOPS"},
	"tensor_bf16_tflops": {func(t *resource.Target) any { return &t.TensorBF16TFLOPS }, 0, 100_000, "a rate in TFLOPS"},
	"tensor_fp8_tflops":  {func(t *resource.Target) any { return &t.TensorFP8TFLOPS }, 0, 100_000, "a rate in TFLOPS"},
	"tensor_int8_tops":   {func(t *resource.Target) any { return &t.TensorINT8TOPS }, 0, 100_000, "a rate in TOPS"},
}

// ownTarget is a target block.
type ownTarget struct {
	name string
	node *node
	is   resource.Target // set once its node is evaluated
}

// readTarget registers a target block. It is evaluated when it is needed.
func (l *loader) readTarget(b *hcl.Block) {
	name, named := l.declare(b)
	mistakes := len(l.diags)
	said := l.read(b, &targetSchema)
	if !named {
		return
	}
	if known, err := l.Target(name); err == nil {
		l.complain(b.LabelRanges[0], fmt.Sprintf("the catalog has a GPU %q", name),
			"It is %s, and its figures stay. Give this one another name, like %q.", known.Key, "my-"+known.Key)
		return
	}
	sound := mistakes == len(l.diags)
	own := &ownTarget{name: name}
	own.node = &node{name: "target." + name, at: b.DefRange, work: func() (cty.Value, bool) {
		is, ok := l.makeTarget(name, b, said)
		own.is = is
		return targetValue(is), ok && sound
	}}
	l.nodes[own.node.name] = own.node
	l.own[folded(name)] = own
}

var separators = strings.NewReplacer("-", "", "_", "", " ", "")

// folded returns a name without the parts that users spell in different ways.
func folded(name string) string {
	return separators.Replace(strings.ToLower(name))
}

// rates are the figures that follow from SMs, clock and compute capability where a block omits them.
var rates = []string{"fp32_tflops", "tensor_fp16_tflops", "tensor_bf16_tflops", "tensor_fp8_tflops", "tensor_int8_tops"}

// makeTarget builds a target: the GPU in base, changed by the attributes of the block, or one that the block describes
// as a whole.
func (l *loader) makeTarget(name string, b *hcl.Block, said content) (is resource.Target, ok bool) {
	ok = true
	values, sound := map[string]value{}, map[string]bool{} // by attribute, without those that are null
	for i := range said.attributes {
		a := &said.attributes[i]
		v, evaluated := l.work(a)
		ok = ok && evaluated
		if !evaluated || !v.leftOut() {
			values[a.path], sound[a.path] = v, evaluated
		}
	}
	base, based := values["base"]
	switch {
	case !based:
		is.Source = "a target block"
		ok = l.describesAll(b, said, values) && ok
	case sound["base"]:
		var found bool
		is, found = base.target()
		is.Source = fmt.Sprintf("a target block, from %s", is.Key)
		ok = ok && found
	}
	is.Key, is.Aliases = name, nil
	from := is
	for i := range said.attributes {
		if path := said.attributes[i].path; path != "base" && sound[path] {
			ok = setFigure(&is, values[path], based) && ok
		}
	}
	switch {
	case !ok:
		return is, false
	case based:
		return scaled(is, from, values), true
	}
	return l.derived(is, values)
}

// describesAll checks that a block without base has all that nothing else says.
func (r *reporter) describesAll(b *hcl.Block, said content, values map[string]value) bool {
	var missing []string
	for _, a := range targetSchema.Attributes {
		if _, set := values[a.Name]; a.Unless == "base" && !set && !slices.Contains(said.meant, a.Name) {
			missing = append(missing, a.Name)
		}
	}
	if missing == nil {
		return !slices.Contains(said.meant, "base")
	}
	if !slices.Contains(said.meant, "base") {
		r.complain(b.DefRange, "the target is incomplete",
			"Without base, a target block describes a whole GPU, and this one lacks %s. Add what is missing, or start from a GPU of the catalog with a line like: base = \"rtx-3090\"", prose.And(missing))
	}
	return false
}

// scaled computes the rates that a block omits from those of its base, by SMs and clock, as in a real GPU.
func scaled(is, base resource.Target, values map[string]value) resource.Target {
	scale := float64(is.SMs*is.BoostMHz) / math.Max(1, float64(base.SMs*base.BoostMHz))
	for _, path := range rates {
		if _, set := values[path]; !set {
			*figures[path].of(&is).(*float64) *= scale
		}
	}
	return is
}

// derived computes what a block without base omits. Tensor rates keep their ratio to that of FP16, if the block has
// that one. The tensor cores have the number formats of the compute capability, apart from those with a rate of 0.
func (o Options) derived(is resource.Target, values map[string]value) (resource.Target, bool) {
	all, known := o.Derive(is)
	if !known {
		values["compute_capability"].wrong(fmt.Sprintf("unknown compute capability %q", is.ComputeCapability), "Write one of %s.", prose.Or(prose.Each(o.Capabilities(), strconv.Quote)))
		return is, false
	}
	scale := 1.0
	if _, set := values["tensor_fp16_tflops"]; set && all.TensorFP16TFLOPS > 0 {
		scale = is.TensorFP16TFLOPS / all.TensorFP16TFLOPS
	}
	for i, path := range rates {
		to := figures[path].of(&all).(*float64)
		if _, set := values[path]; set {
			*to = *figures[path].of(&is).(*float64)
		} else if i > 0 {
			*to *= scale
		}
	}
	of := map[string]float64{"fp16": all.TensorFP16TFLOPS, "bf16": all.TensorBF16TFLOPS, "fp8": all.TensorFP8TFLOPS, "int8": all.TensorINT8TOPS}
	types := slices.DeleteFunc(slices.Clone(all.TensorTypes), func(format string) bool {
		rate, rated := of[format]
		return rated && rate == 0
	})
	for _, format := range sortedKeys(of) {
		if of[format] > 0 && !slices.Contains(types, format) {
			types = append(types, format)
		}
	}
	if all.TensorTypes = types; all.TensorFP16TFLOPS+all.TensorBF16TFLOPS+all.TensorFP8TFLOPS+all.TensorINT8TOPS == 0 {
		all.TensorTypes = nil
	}
	return all, true
}

// setFigure reads one attribute of a target block.
func setFigure(t *resource.Target, v value, based bool) bool {
	path := v.attribute.path
	switch path {
	case "compute_capability":
		typed, ok := v.text()
		if ok && based {
			v.wrong("the compute capability is the base's", "It is %s. Remove this line, or remove base and describe the whole GPU.", t.ComputeCapability)
			return false
		}
		if !strings.Contains(typed, ".") {
			typed += ".0" // HCL reads 8.0 as the number 8
		}
		t.ComputeCapability = typed
		return ok
	case "vram":
		mib, ok := v.size(256)
		t.MemoryMiB = mib
		return ok
	case "name":
		typed, ok := v.text()
		if ok && (typed == "" || len(typed) > maxProduct || strings.ContainsFunc(typed, func(r rune) bool { return r < ' ' || r > '~' })) {
			v.wrong(fmt.Sprintf("%q cannot be the name of a GPU", typed), "NVML has room for %d letters, digits and signs of ASCII. Write one like \"NVIDIA GeForce RTX 3090\".", maxProduct)
			return false
		}
		t.Name = typed
		return ok
	}
	figure, ok := figures[path], false
	switch to := figure.of(t).(type) {
	case *float64:
		*to, ok = v.between(figure.low, figure.high, fmt.Sprintf("Write %s from %s to %s.", figure.what, plain(figure.low), plain(figure.high)))
	case *int:
		*to, ok = v.whole(int(figure.low), int(figure.high), figure.what)
	}
	return ok
}

// targetAnswer is the target that a name means, or what is wrong with the name.
type targetAnswer struct {
	target          resource.Target
	summary, detail string
}

func (a targetAnswer) unknown() bool { return a.summary != "" }

// find searches a GPU by any common spelling, among the project's target blocks and in the catalog.
func (l *loader) find(typed string) (answer targetAnswer, ok bool) {
	if own := l.own[folded(typed)]; own != nil {
		ok := l.settle(own.node)
		return targetAnswer{target: own.is}, ok
	}
	answer, asked := l.targets[typed]
	if !asked {
		var err error
		if answer.target, err = l.Target(typed); err != nil {
			answer.summary, answer.detail = l.explainTarget(typed, err)
		}
		l.targets[typed] = answer
	}
	return answer, true
}

// target reads the name of a GPU.
func (v value) target() (resource.Target, bool) {
	typed, ok := v.text()
	if !ok {
		return resource.Target{}, false
	}
	answer, ok := v.l.find(typed)
	if answer.unknown() {
		v.wrong(answer.summary, "%s", answer.detail)
	}
	return answer.target, ok && !answer.unknown()
}

// explainTarget reports why no target matches a name. It checks the project's own targets first.
func (l *loader) explainTarget(typed string, err error) (summary, detail string) {
	summary, detail = explain(err, fmt.Sprintf("unknown target %q", typed))
	names := prose.Each(sortedKeys(l.own), func(key string) string { return l.own[key].name })
	if suggestion := didYouMean(typed, names); suggestion != "" {
		return summary, "Neither the catalog nor a target block has it." + suggestion
	}
	return summary, detail
}
