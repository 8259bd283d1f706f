package config

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// LiveSession is the present or planned outcome of a session. Fields that are unknown before it is created are empty.
type LiveSession struct {
	resource.Session
	GPUIndex  *int
	SliceUUID string // of its MIG device
	State     string // resource.Running, resource.Stopped
	Container string // its container's name
	SSHPort   int    // on the host
}

// Lives finds the outcome of a session; false for one that does not exist.
type Lives func(resource.Address) (LiveSession, bool)

// LiveAttribute is an attribute of a session that output and check blocks can use.
type LiveAttribute struct {
	Name        string // "fit.fp32_error"
	Type        string // "text", "number"
	Unit        string
	Description string // one line

	value func(LiveSession) cty.Value
}

// LiveAttributes returns all of them, in the order of the reference.
func LiveAttributes() []LiveAttribute { return liveAttributes }

var liveAttributes = []LiveAttribute{
	liveText("address", "Its address: session.worker[3].", func(s LiveSession) cty.Value { return cty.StringVal(s.Address.String()) }),
	liveText("name", "Its short address for the command line: worker-3.", func(s LiveSession) cty.Value { return cty.StringVal(s.Address.Short()) }),
	liveText("container", "The name of its container: cosplay-worker-3; null without one.", func(s LiveSession) cty.Value { return nullIf(s.Spec.IsZero(), cty.StringVal(s.Container)) }),
	liveText("device", "The name of its CDI device: cosplay.dev/session=worker-3-lab; null without one.", func(s LiveSession) cty.Value { return nullIf(s.Device() == "", cty.StringVal(s.Device())) }),
	liveText("state", "Whether it runs: running, stopped, paused or restarting.", func(s LiveSession) cty.Value { return textOrUnknown(s.State) }),
	liveText("host", "Its host.", func(s LiveSession) cty.Value { return cty.StringVal(s.Slice.Host) }),
	liveText("runtime", "Where it runs: docker, cdi or process.", func(s LiveSession) cty.Value { return cty.StringVal(s.Runtime) }),
	liveText("target", "The catalog key of its target.", func(s LiveSession) cty.Value { return cty.StringVal(s.Target.Key) }),
	liveNumber("vram_mib", "MiB", "The GPU memory that programs see.", func(s LiveSession) cty.Value { return number(s.Target.MemoryMiB) }),
	liveText("gpu", "The UUID of its physical GPU, of several the first.", func(s LiveSession) cty.Value { return cty.StringVal(s.Slice.GPU) }),
	liveNumber("gpus", "GPUs", "How many GPUs it has: devices that programs see.", func(s LiveSession) cty.Value { return number(len(s.Slices())) }),
	liveNumber("gpu_index", "", "The index of that GPU in nvidia-smi.", func(s LiveSession) cty.Value {
		if s.GPUIndex == nil {
			return cty.UnknownVal(cty.Number)
		}
		return number(*s.GPUIndex)
	}),
	liveText("slice", "The profile of its MIG slice: 1g.18gb; null for a whole GPU.", func(s LiveSession) cty.Value { return nullIf(s.Slice.Whole(), cty.StringVal(s.Slice.Profile)) }),
	liveNumber("slot", "", "The first slot of its slice on the GPU; null for a whole GPU.", func(s LiveSession) cty.Value { return nullIf(s.Slice.Whole(), number(s.Slice.Start)) }),
	liveText("slice_uuid", "The UUID of its MIG device, or of the whole GPU.", func(s LiveSession) cty.Value {
		if s.Slice.Whole() {
			return cty.StringVal(s.Slice.GPU)
		}
		return textOrUnknown(s.SliceUUID)
	}),
	liveText("image", "The image of its container; null without one.", func(s LiveSession) cty.Value { return nullIf(s.Spec.IsZero(), cty.StringVal(s.Spec.Image)) }),
	liveText("workspace", "The folder on the host that is its workspace.", func(s LiveSession) cty.Value { return cty.StringVal(s.Workspace) }),
	liveText("user", "Its user in the container; null without one.", func(s LiveSession) cty.Value { return nullIf(s.Spec.IsZero(), cty.StringVal(s.Spec.User.Name)) }),
	liveNumber("port", "", "The port on the host where ssh listens; null without ssh.", portOf),
	liveText("ssh_command", "How to log in from the host: ssh -p 32801 ada@127.0.0.1; null without ssh.", func(s LiveSession) cty.Value {
		port := portOf(s)
		if port.IsNull() {
			return cty.NullVal(cty.String)
		}
		if !port.IsKnown() {
			return cty.UnknownVal(cty.String)
		}
		return cty.StringVal(fmt.Sprintf("ssh -p %s %s@%s", port.AsBigFloat().Text('f', -1), s.Spec.User.Name, s.Spec.SSH.Bind))
	}),
	liveNumber("fit.clock_mhz", "MHz", "The SM clock of the fit.", func(s LiveSession) cty.Value { return number(s.Fit.ClockMHz) }),
	liveNumber("fit.fp32_error", "", "The error of its FP32 rate, |ln(rate / target's rate)|: 0.05 is about 5 %.", func(s LiveSession) cty.Value { return figure(s.Fit.Error(resource.PreferFP32)) }),
	liveNumber("fit.bandwidth_error", "", "The error of its memory bandwidth, computed likewise.", func(s LiveSession) cty.Value { return figure(s.Fit.Error(resource.PreferBandwidth)) }),
	liveNumber("fit.fp32_tflops", "TFLOPS", "Its FP32 rate.", func(s LiveSession) cty.Value { return figure(s.Fit.Got.FP32TFLOPS) }),
	liveNumber("fit.bandwidth_gbs", "GB/s", "Its memory bandwidth.", func(s LiveSession) cty.Value { return figure(s.Fit.Got.BandwidthGBs) }),
	liveNumber("fit.tensor_ratio", "", "Its tensor rate divided by the target's; 0 if the target has no tensor cores.", func(s LiveSession) cty.Value { return figure(s.Fit.TensorRatio()) }),
}

func liveText(name, description string, value func(LiveSession) cty.Value) LiveAttribute {
	return LiveAttribute{Name: name, Type: "text", Description: description, value: value}
}

func liveNumber(name, unit, description string, value func(LiveSession) cty.Value) LiveAttribute {
	return LiveAttribute{Name: name, Type: "number", Unit: unit, Description: description, value: value}
}

func number(n int) cty.Value { return cty.NumberIntVal(int64(n)) }

// figure converts a number; it gives null if there is none, for example for a session whose fit is unknown.
func figure(f float64) cty.Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return cty.NullVal(cty.Number)
	}
	return cty.NumberFloatVal(f)
}

func textOrUnknown(s string) cty.Value {
	if s == "" {
		return cty.UnknownVal(cty.String)
	}
	return cty.StringVal(s)
}

// nullIf returns null for a value that a session does not have.
func nullIf(missing bool, v cty.Value) cty.Value {
	if missing {
		return cty.NullVal(v.Type())
	}
	return v
}

func portOf(s LiveSession) cty.Value {
	switch {
	case !s.Spec.SSH.Enabled:
		return cty.NullVal(cty.Number)
	case s.SSHPort != 0:
		return number(s.SSHPort)
	case s.Spec.SSH.Port != 0:
		return number(s.Spec.SSH.Port)
	}
	return cty.UnknownVal(cty.Number)
}

// liveValue converts a session to the value that output and check blocks see, with the attributes that are mentioned.
func liveValue(s LiveSession, mentioned map[string]bool) cty.Value {
	flat, fit := map[string]cty.Value{}, map[string]cty.Value{}
	for _, a := range liveAttributes {
		first, inside, _ := strings.Cut(a.Name, ".")
		switch {
		case !mentioned[""] && !mentioned[first]:
		case inside != "": // "fit."
			fit[inside] = a.value(s)
		default:
			flat[first] = a.value(s)
		}
	}
	if len(fit) > 0 {
		flat["fit"] = cty.ObjectVal(fit)
	}
	return cty.ObjectVal(flat)
}

// liveScope has the sessions as values for expressions, by block. A block is converted when an expression refers to it
// first, because many outputs can refer to one session each.
type liveScope struct {
	l      *loader
	lives  Lives // nil before there are sessions
	values map[string]cty.Value
}

func (l *loader) newLiveScope(lives Lives) *liveScope {
	return &liveScope{l, lives, map[string]cty.Value{}}
}

// of returns the scope of an expression, with the sessions of the blocks that it refers to.
func (s *liveScope) of(a attribute) *hcl.EvalContext {
	scope := s.l.scopeOf(a.mentions)
	if !mentionsSession(a.mentions) {
		return scope
	}
	blocks := map[string]cty.Value{}
	for _, mention := range a.mentions {
		name, is := strings.CutPrefix(variableName(mention), "session.")
		if !is {
			continue
		}
		if _, known := s.values[name]; !known {
			s.values[name] = s.block(name)
		}
		blocks[name] = s.values[name]
	}
	inner := scope.NewChild()
	inner.Variables = map[string]cty.Value{"session": cty.ObjectVal(blocks)}
	return inner
}

// block converts the sessions of a block: one object, or a list or a map of them.
func (s *liveScope) block(name string) cty.Value {
	block := s.l.blocks[name]
	if block.guessed {
		return cty.DynamicVal.Mark(reported)
	}
	value := func(one instance) cty.Value {
		if s.lives != nil {
			if live, known := s.lives(one.address); known {
				return liveValue(live, block.mentioned)
			}
		}
		return unknownSession()
	}
	switch {
	case block.count:
		return cty.TupleVal(prose.Each(block.list, value))
	case block.each:
		each := map[string]cty.Value{}
		for _, one := range block.list {
			each[one.address.Key.Each] = value(one)
		}
		return cty.ObjectVal(each)
	}
	return value(block.list[0])
}

// unknownSession is the value of each session that does not exist yet.
var unknownSession = sync.OnceValue(func() cty.Value {
	return cty.UnknownVal(liveValue(LiveSession{}, map[string]bool{"": true}).Type())
})

// mention records what an expression refers to of a block's sessions, since to convert all of it is expensive: an attribute,
// or "" for the whole of them.
func (l *loader) mention(block string, steps hcl.Traversal) {
	if len(steps) > 0 {
		if _, indexed := steps[0].(hcl.TraverseIndex); indexed {
			steps = steps[1:]
		}
	}
	attribute := ""
	if len(steps) > 0 {
		attribute = nameIn(steps[0])
	}
	l.blocks[block].mentioned[attribute] = true
}

// checkLive checks that a session that an expression refers to exists.
func (l *loader) checkLive(mention hcl.Traversal) bool {
	full := variableName(mention)
	name := strings.TrimPrefix(full, "session.")
	block, declared := l.blocks[name]
	switch {
	case full == "session":
		l.complain(mention.SourceRange(), `"session" is not a value by itself`, "Write a dot and the name of a session block behind it, like session.worker.")
	case !declared:
		l.complain(mention.SourceRange(), fmt.Sprintf("unknown session %q", name), "No block declares it.%s Name one that is there, or add: session %q { target = \"2060\" }", l.suggest(name, l.sessionNames), name)
	case len(mention) > 2 && !l.checkInstance(mention, full, block):
	default:
		l.mention(name, mention[2:])
		return true
	}
	return false
}

// checkInstance checks that a reference has an index exactly if its block has several instances.
func (r *reporter) checkInstance(mention hcl.Traversal, full string, block instances) bool {
	attr, named := mention[2].(hcl.TraverseAttr)
	_, indexed := mention[2].(hcl.TraverseIndex)
	at := mention[2].SourceRange()
	switch {
	case named && block.count:
		r.complain(at, fmt.Sprintf("%s has count, so it is a list", full), "Write %s[0].%s for the first of its sessions, or %s[*].%s for all.", full, attr.Name, full, attr.Name)
	case indexed && !block.count && !block.each:
		r.complain(at, fmt.Sprintf("%s is one session", full), "It has neither count nor for_each, so there is no index to it. Leave the brackets out.")
	default:
		return true
	}
	return false
}
