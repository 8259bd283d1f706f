package disguise

import (
	"encoding/json"
	"maps"
	"slices"

	"cosplay/internal/resource"
)

// memoryEntry is the part of a program's slot that says what took the memory of a device, at its fullest moment or at an error.
type memoryEntry struct {
	Device    int            `json:"device"`
	Reserved  int            `json:"reserved"`
	Allocated int            `json:"allocated"`
	Kinds     map[string]int `json:"kinds"`
	Lines     []lineEntry    `json:"lines"`
	Stages    map[string]int `json:"stages"`
	Ranges    map[string]int `json:"ranges"`

	Requested int      `json:"requested"`
	Used      int      `json:"used"`
	At        codeLine `json:"at"`
	Stage     string   `json:"stage"`
}

// lineEntry is [file, line, code, kind, bytes], codeLine the first three.
type (
	lineEntry resource.MemoryLine
	codeLine  resource.CodeLine
)

func (l *lineEntry) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&l.File, &l.Line, &l.Code, &l.Kind, &l.Bytes})
}

func (c *codeLine) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&c.File, &c.Line, &c.Code})
}

// stages are those of a training step, in their order.
var stages = []string{"load", "forward", "backward", "step"}

func (m *memoryEntry) sound() bool {
	if m == nil {
		return true
	}
	counts := slices.Concat([]int{m.Device, m.Reserved, m.Allocated, m.Requested, m.Used, m.At.Line},
		slices.Collect(maps.Values(m.Kinds)), slices.Collect(maps.Values(m.Stages)), slices.Collect(maps.Values(m.Ranges)))
	for _, l := range m.Lines {
		counts = append(counts, l.Line, l.Bytes)
		if !slices.Contains(resource.MemoryKinds, l.Kind) {
			return false
		}
	}
	for kind := range m.Kinds {
		if !slices.Contains(resource.MemoryKinds, kind) {
			return false
		}
	}
	for stage := range m.Stages {
		if !slices.Contains(stages, stage) {
			return false
		}
	}
	return !slices.ContainsFunc(counts, outOfRange)
}

func soundStep(s *resource.StepWork) bool {
	return s == nil || soundWork(s.Least) && s.FLOPs >= 0 && s.FLOPs <= mostFLOPs && !outOfRange(s.Count) && !outOfRange(s.ToDevice)
}

func soundWork(least map[string]float64) bool {
	for _, amount := range least {
		if !(amount >= 0 && amount <= mostFLOPs) {
			return false
		}
	}
	return true
}

func outOfRange(n int) bool { return n < 0 || n > mostCount }

func (m *memoryEntry) use() resource.MemoryUse {
	u := resource.MemoryUse{Device: m.Device, Reserved: m.Reserved, Allocated: m.Allocated, Kinds: m.Kinds}
	for _, l := range m.Lines {
		u.Lines = append(u.Lines, resource.MemoryLine{CodeLine: codeLine(l.CodeLine).shown(), Kind: l.Kind, Bytes: l.Bytes})
	}
	for _, stage := range stages {
		if bytes, known := m.Stages[stage]; known {
			u.Stages = append(u.Stages, resource.NamedBytes{Name: stage, Bytes: bytes})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Ranges)) {
		u.Ranges = append(u.Ranges, resource.NamedBytes{Name: printable(name), Bytes: m.Ranges[name]})
	}
	return u
}

func (c codeLine) shown() resource.CodeLine {
	return resource.CodeLine{File: printable(c.File), Line: c.Line, Code: printable(c.Code)}
}

// addMemory adds what took the memory, and the work of a step, to a program's report.
func (e reportEntry) addMemory(p *resource.ProgramReport) {
	if e.Memory != nil {
		use := e.Memory.use()
		p.Fullest = &use
	}
	if e.Error != nil {
		p.Error = &resource.MemoryFailure{MemoryUse: e.Error.use(), Requested: e.Error.Requested, Used: e.Error.Used, At: e.Error.At.shown(), Stage: printable(e.Error.Stage)}
	}
	p.Rescued, p.Least, p.Step, p.WithoutValues = e.Rescued, e.Least, e.Step, printable(e.WithoutValues)
}
