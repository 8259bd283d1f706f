package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// linesShown is the number of lines of a program that a screen shows.
const linesShown = 5

// programMemory shows what took the memory of a program: at its peak, and at its last error.
func (p *page) programMemory(indent int, one resource.ProgramReport) {
	if one.Error != nil {
		p.memoryFailure(indent, programName(one), *one.Error)
	}
	if one.Fullest != nil && !one.RanOut() {
		p.memoryUse(indent, programName(one)+" at its peak", *one.Fullest)
	}
}

// reasons show what had the memory when programs ended because it was not enough.
func (p *page) reasons(r resource.Report) {
	for _, one := range r.Programs {
		if one.RanOut() && one.Error != nil {
			p.memoryFailure(0, programName(one), *one.Error)
		}
	}
}

// memoryUse shows what had the memory of a device: what it was for, and the lines of the program that allocated most.
func (p *page) memoryUse(indent int, head string, u resource.MemoryUse) {
	where := given(u.Device > 0, fmt.Sprintf(" on cuda:%d", u.Device))
	p.flow(indent, indent+2, join(text(head+": "), inked(strong, byteWords(u.Reserved)), text(" reserved"+where+": "+kindWords(u))))
	p.memoryLines(indent+2, u)
	if peaks := slices.Concat(u.Stages, u.Ranges); len(peaks) > 1 {
		p.flow(indent+2, indent+4, inked(dim, "peaks of the stages: "+strings.Join(each(peaks, func(n resource.NamedBytes) string {
			return together(n.Name + " " + byteWords(n.Bytes))
		}), ", ")))
	}
}

// memoryFailure shows a request that could not be served.
func (p *page) memoryFailure(indent int, program string, f resource.MemoryFailure) {
	p.flow(indent, indent+2, join(inked(removed, "Out of memory"), text(" in "+requestWords(program, f))))
	p.memoryLines(indent+2, f.MemoryUse)
}

// requestWords say where a request could not be served, and what had the memory.
func requestWords(program string, f resource.MemoryFailure) string {
	words := fmt.Sprintf("%s, in %s: it asked for %s when %s were reserved", cmp.Or(placeWords(f.At), program), stageWords(f.Stage), byteWords(f.Requested), byteWords(f.Reserved))
	if f.Reserved == 0 {
		return words
	}
	return words + ": " + kindWords(f.MemoryUse)
}

func (p *page) memoryLines(indent int, u resource.MemoryUse) {
	t := &table{indent: indent, gap: 2, columns: []column{{right: true}, {}, {}, {prose: true}}}
	for _, l := range u.Lines[:min(linesShown, len(u.Lines))] {
		t.add(text(byteWords(l.Bytes)), text(kindName(l.Kind)), text(placeWords(l.CodeLine)), inked(dim, l.Code))
	}
	p.table(t)
}

// kindWords are the parts of the memory of a device, the largest first.
func kindWords(u resource.MemoryUse) string {
	all := each(kindsOf(u), func(k public.MemoryKind) string { return together(kindName(k.Kind) + " " + byteWords(k.Bytes)) })
	if unused := u.Reserved - u.Allocated; unused > 0 {
		all = append(all, together("unused cache "+byteWords(unused)))
	}
	return strings.Join(all, ", ")
}

func kindsOf(u resource.MemoryUse) []public.MemoryKind {
	used := prose.Only(resource.MemoryKinds, func(kind string) bool { return u.Kinds[kind] > 0 })
	kinds := each(used, func(kind string) public.MemoryKind { return public.MemoryKind{Kind: kind, Bytes: u.Kinds[kind]} })
	slices.SortStableFunc(kinds, func(a, b public.MemoryKind) int { return b.Bytes - a.Bytes })
	return kinds
}

func kindName(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

func placeWords(c resource.CodeLine) string {
	if c.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", c.File, c.Line)
}

// stageWords name a stage in a sentence.
func stageWords(stage string) string {
	return map[string]string{"load": "the load stage", "forward": "the forward pass", "backward": "the backward pass", "step": "the optimizer's step"}[stage]
}

func memoryUseOf(u resource.MemoryUse) public.MemoryUse {
	return public.MemoryUse{Device: u.Device, Reserved: u.Reserved, Allocated: u.Allocated, Unused: u.Reserved - u.Allocated, Kinds: kindsOf(u),
		Lines: each(u.Lines, func(l resource.MemoryLine) public.MemoryLine {
			return public.MemoryLine{CodeLine: public.CodeLine(l.CodeLine), Kind: l.Kind, Bytes: l.Bytes}
		}),
		Stages: each(slices.Concat(u.Stages, u.Ranges), func(n resource.NamedBytes) public.MemoryStage { return public.MemoryStage(n) })}
}

func memoryFailureOf(f resource.MemoryFailure) public.MemoryFailure {
	return public.MemoryFailure{MemoryUse: memoryUseOf(f.MemoryUse), Requested: f.Requested, Used: f.Used, At: public.CodeLine(f.At), Stage: f.Stage}
}
