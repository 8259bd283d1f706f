package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// ReportView has the reports of sessions.
type ReportView struct {
	Sessions []resource.PriorSession
	Reports  map[resource.Address]resource.Report // of the sessions whose programs report
}

// Reports shows what the programs of sessions did.
func (v ReportView) draw(p *page) {
	if len(v.Sessions) == 0 {
		p.flow(0, 0, text("There is no session. cosplay apply creates those of the configuration."))
	}
	for _, one := range v.Sessions {
		p.gap()
		head := inked(strong, one.Address.Short())
		report, reports := v.Reports[one.Address]
		switch {
		case !reports:
			p.flow(0, 2, join(head, text(" has no report: programs report where PyTorch computes on the CPU, in sessions of a simulated host.")))
		case report.Empty():
			p.flow(0, 2, join(head, text(" has an empty report: no program has used PyTorch's GPU yet.")))
		default:
			p.flow(0, 2, join(head, text(fmt.Sprintf(" %s of %s", one.Target.ShortName(), together(mib(one.Target.MemoryMiB))))))
			p.report(report)
		}
	}
}

func (p *page) report(r resource.Report) {
	work := figureColumns("PID", "PEAK", "FLOP", "LAUNCHES", "TO GPU", "TO HOST", "BETWEEN")
	columns := slices.Concat(textColumns("PROGRAM"), work, textColumns("STARTED"), figureColumns("TIME"), proseColumn(""))
	t := &table{indent: 2, columns: columns, spare: []string{"STARTED", "PID", "TIME", "LAUNCHES"}}
	workCells := func(w resource.Work) []line {
		between := text(byteWords(w.Between))
		if r.Total.Between == 0 {
			between = nil // no column of it
		}
		return []line{text(scaled(w.FLOPs)), text(strconv.Itoa(w.Launches)), text(byteWords(w.ToDevice)), text(byteWords(w.ToHost)), between}
	}
	for _, one := range r.Programs {
		t.add(append([]line{text(programName(one)), text(strconv.Itoa(one.PID)), text(peaksWords(one.Devices))}, append(workCells(one.Work),
			text(moment(one.Start).Local().Format(time.DateTime)), text(seconds(took(one))), endCell(one))...)...)
	}
	if r.Earlier+len(r.Programs) > 1 {
		earlier := given(r.Earlier > 0, "with "+prose.Count(r.Earlier, "earlier program"))
		t.add(append([]line{text("total"), nil, nil}, append(workCells(r.Total), nil, nil, text(earlier))...)...)
	}
	p.table(t)
	for _, one := range r.Programs {
		if len(r.Programs) == 1 || one.Error != nil {
			p.programMemory(2, one)
		}
	}
	if words := collectiveWords(r.Total); words != "" {
		p.detail("collectives: " + words)
	}
	if len(r.Peaks) > 0 {
		p.detail("peak of all programs together, with contexts: " + accountWords(r.Peaks))
	}
}

// moment is a Unix time in s.
func moment(unix float64) time.Time { return time.UnixMilli(int64(unix * 1000)).UTC() }

// stamp is a Unix time in s as RFC 3339.
func stamp(unix float64) string { return moment(unix).Format(time.RFC3339) }

// took is how long a program has run.
func took(p resource.ProgramReport) time.Duration {
	return time.Duration(p.Took() * float64(time.Second))
}

func programName(p resource.ProgramReport) string {
	if p.Rank != nil {
		return fmt.Sprintf("%s (rank %d)", p.Name, *p.Rank)
	}
	return p.Name
}

func endCell(p resource.ProgramReport) line {
	switch {
	case p.RanOut():
		return inked(removed, "ran out of memory")
	case p.Failure != "":
		return join(inked(removed, "failed"), text(": "+p.Failure+": "+p.FailureText))
	case p.End == 0:
		return inked(dim, "runs, or was killed")
	case p.OutOfMemory > 0:
		return text("ended; caught " + prose.Count(p.OutOfMemory, "OutOfMemoryError"))
	}
	return text("ended")
}

// peaksWords are the peaks of a program's memory, with what the allocator caches.
func peaksWords(devices []resource.DevicePeak) string {
	return strings.Join(each(devices, func(d resource.DevicePeak) string {
		words := byteWords(d.Reserved)
		if len(devices) > 1 || d.Index > 0 {
			words = fmt.Sprintf("cuda:%d %s", d.Index, words)
		}
		return words
	}), ", ")
}

// accountWords are the peaks of the session's memory.
func accountWords(peaks []int) string {
	var all []string
	for i, peak := range peaks {
		words := mib(peak)
		if len(peaks) > 1 {
			words = fmt.Sprintf("cuda:%d %s", i, words)
		}
		all = append(all, together(words))
	}
	return strings.Join(all, ", ")
}

// reportWords sums a report up in one line.
func reportWords(r resource.Report) string {
	w := r.Total
	programs := prose.Count(r.Earlier+len(r.Programs), "PyTorch program")
	return strings.Join(present(programs+": "+scaled(w.FLOPs)+"FLOP", prose.Plural(w.Launches, "launch", "launches"),
		byteWords(w.ToDevice)+" to the GPU", byteWords(w.ToHost)+" to the host", given(w.Between > 0, byteWords(w.Between)+" between GPUs"),
		collectiveWords(w), given(len(r.Peaks) > 1, "peak "+accountWords(r.Peaks))), ", ")
}

// collectiveWords lists the collectives by kind: "12 all_reduce (1.5 MiB)".
func collectiveWords(w resource.Work) string {
	return strings.Join(each(slices.Sorted(maps.Keys(w.Collectives)), func(kind string) string {
		c := w.Collectives[kind]
		return together(fmt.Sprintf("%d %s (%s)", c.Count, kind, byteWords(c.Bytes)))
	}), ", ")
}

// scaled writes a number with the prefix that fits it: "1.23 T".
func scaled(x float64) string {
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	at := 0
	for ; x >= 999.5 && at < len(prefixes)-1; at++ {
		x /= 1000
	}
	return fmt.Sprintf("%.3g %s", x, prefixes[at])
}

// byteWords writes bytes with the unit that fits them.
func byteWords(n int) string {
	x, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	at := 0
	for ; x >= 1024 && at < len(units)-1; at++ {
		x /= 1024
	}
	if at == 0 {
		return together(fmt.Sprintf("%d B", n))
	}
	return together(fmt.Sprintf("%.1f %s", x, units[at]))
}

func (v ReportView) data() any {
	out := public.Reports{Format: public.V1, Sessions: []public.Report{}}
	for _, s := range v.Sessions {
		r, reports := v.Reports[s.Address]
		if !reports {
			continue
		}
		one := public.Report{Address: s.Address.String(), Name: s.Address.Short(), Target: s.Target.Key, MemoryMiB: s.Target.MemoryMiB, Devices: []public.ReportDevice{},
			Total: workOf(r.Total), Earlier: r.Earlier, Programs: each(r.Programs, programOf)}
		for i, peak := range r.Peaks {
			one.Devices = append(one.Devices, public.ReportDevice{Index: i, PeakMiB: peak})
		}
		out.Sessions = append(out.Sessions, one)
	}
	return out
}

func workOf(w resource.Work) public.Work {
	return public.Work{Launches: w.Launches, FLOPs: w.FLOPs, ToDevice: w.ToDevice, ToHost: w.ToHost, Between: w.Between,
		Collectives: each(slices.Sorted(maps.Keys(w.Collectives)), func(kind string) public.CollectiveWork {
			return public.CollectiveWork{Kind: kind, Count: w.Collectives[kind].Count, Bytes: w.Collectives[kind].Bytes}
		})}
}

func programOf(p resource.ProgramReport) public.ReportProgram {
	out := public.ReportProgram{Work: workOf(p.Work), PID: p.PID, Name: p.Name, Rank: p.Rank, Start: stamp(p.Start), Updated: stamp(p.Updated),
		Devices: each(p.Devices, func(d resource.DevicePeak) public.ReportProgramDevice { return public.ReportProgramDevice(d) }), OutOfMemory: p.OutOfMemory,
		Memory: some(p.Fullest, memoryUseOf), Refused: some(p.Error, memoryFailureOf), Rescued: p.Rescued, Step: (*public.StepWork)(p.Step)}
	if p.End != 0 {
		out.End = stamp(p.End)
	}
	if p.Failure != "" {
		out.Failure = &public.ReportFailure{Type: p.Failure, Text: p.FailureText}
	}
	return out
}
