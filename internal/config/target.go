package config

import (
	"fmt"
	"math"
	"strings"

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
func (l *loader) readTarget(b block) {
	name, named := l.declare(b)
	mistakes := len(l.diags)
	said := l.read(b, &targetSchema)
	for _, a := range targetSchema.required() {
		if said.lacks(a.Name) {
			l.complain(b.header, b.header, fmt.Sprintf("%q is missing", a.Name), "A target changes a GPU of the catalog. Add a line like: %s = %s", a.Name, a.Example)
		}
	}
	if !named {
		return
	}
	if known, err := l.Target(name); err == nil {
		l.complain(b.labelRanges[0], b.header, fmt.Sprintf("the catalog has a GPU %q", name),
			"It is %s, and its figures stay. Give this one another name, like %q.", known.Key, "my-"+known.Key)
		return
	}
	sound := mistakes == len(l.diags)
	own := &ownTarget{name: name}
	own.node = &node{name: "target." + name, at: b.header, work: func() (cty.Value, bool) {
		is, ok := l.makeTarget(name, said)
		own.is = is
		return targetValue(is), ok && sound
	}}
	l.nodes[own.node.name] = own.node
	l.own[folded(name)] = own
}

// folded returns a name without the parts that users spell in different ways.
func folded(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// makeTarget builds a target: the GPU in base, changed by the attributes of the block.
func (l *loader) makeTarget(name string, said content) (resource.Target, bool) {
	ok := true
	var base resource.Target
	if a := said.find("base"); a != nil {
		if v, evaluated := l.work(a); evaluated {
			base, ok = l.target(v)
		} else {
			ok = false
		}
	}
	is := base
	is.Key, is.Aliases = name, nil
	is.Source = fmt.Sprintf("a target block, from %s", base.Key)
	set := map[string]bool{}
	for i := range said.attributes {
		a := &said.attributes[i]
		if a.path == "base" {
			continue
		}
		v, evaluated := l.work(a)
		if evaluated && v.leftOut() {
			continue
		}
		set[a.path] = true
		ok = evaluated && l.setFigure(&is, v) && ok
	}
	// Figures that the block leaves out are computed from SMs and clock, as in a real GPU.
	scale := float64(is.SMs*is.BoostMHz) / math.Max(1, float64(base.SMs*base.BoostMHz))
	for path, rate := range map[string]*float64{"fp32_tflops": &is.FP32TFLOPS, "tensor_fp16_tflops": &is.TensorFP16TFLOPS,
		"tensor_bf16_tflops": &is.TensorBF16TFLOPS, "tensor_fp8_tflops": &is.TensorFP8TFLOPS, "tensor_int8_tops": &is.TensorINT8TOPS} {
		if !set[path] {
			*rate *= scale
		}
	}
	return is, ok
}

// setFigure reads one attribute of a target block.
func (l *loader) setFigure(t *resource.Target, v value) bool {
	path := v.attribute.path
	switch path {
	case "vram":
		mib, ok := l.size(v, 256)
		t.MemoryMiB = mib
		return ok
	case "name":
		typed, ok := l.text(v)
		if ok && (typed == "" || len(typed) > maxProduct || strings.ContainsFunc(typed, func(r rune) bool { return r < ' ' || r > '~' })) {
			l.wrong(v, fmt.Sprintf("%q cannot be the name of a GPU", typed), "NVML has room for %d letters, digits and signs of ASCII. Write one like \"NVIDIA GeForce RTX 3090\".", maxProduct)
			return false
		}
		t.Name = typed
		return ok
	}
	figure := figures[path]
	advice := fmt.Sprintf("Write %s from %s to %s.", figure.what, plain(figure.low), plain(figure.high))
	n, ok := l.number(v, fmt.Sprintf("%s must be a number", v.name()), advice)
	if !ok || !l.between(v, n, figure.low, figure.high, advice) {
		return false
	}
	switch to := figure.of(t).(type) {
	case *float64:
		*to, _ = n.Float64()
	case *int:
		if !n.IsInt() {
			l.wrong(v, fmt.Sprintf("%s must be a whole number", v.name()), "%s is not one. %s", n.Text('g', 10), advice)
			return false
		}
		whole, _ := n.Int64()
		*to = int(whole)
	}
	return true
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
func (l *loader) target(v value) (resource.Target, bool) {
	typed, ok := l.text(v)
	if !ok {
		return resource.Target{}, false
	}
	answer, ok := l.find(typed)
	if answer.unknown() {
		l.wrong(v, answer.summary, "%s", answer.detail)
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
