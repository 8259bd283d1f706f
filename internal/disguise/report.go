package disguise

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// ReportFile is the name of the file in which programs report what they did, beside the usage file. report.py of the
// Python part describes its layout, and writes it. All users of the session may write to it, so any content is possible.
const ReportFile = "report"

const (
	reportSlot    = 4096 // bytes
	reportSlots   = 33   // the first one has sums
	reportVersion = 1
)

// Limits of what is believed. The sums of all slots stay in range.
const (
	mostCount = 1 << 56
	mostFLOPs = 1e30
	mostTime  = 1e11 // Unix time, s
	mostText  = 640  // characters
)

// grown reports whether programs have made a report larger than its slots, which nothing prevents.
func grown(in durable.Folder, name string) bool {
	var now unix.Stat_t
	return in.Stat(name, &now) == nil && now.Size > reportSlot*reportSlots
}

// MakeReport creates the report of a session whose programs write one, or truncates one that exceeds its slots.
func MakeReport(path string, s resource.Session) error {
	if !s.Emulates() {
		return nil
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() {
		if info.Size() > reportSlot*reportSlots {
			return os.Truncate(path, reportSlot*reportSlots)
		}
		return nil
	}
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("making the session's report: %w", err)
	}
	if err := durable.ReplaceFile(path, nil, countedMode); err != nil {
		return fmt.Errorf("making the session's report: %w", err)
	}
	return os.Chmod(path, countedMode)
}

// ReadReports reads the reports of sessions from the path in each session's folder, by the index of each session that
// has one. base is the folder of the session folders.
func ReadReports(base, path string, sessions []string) iter.Seq2[int, resource.Report] {
	return func(yield func(int, resource.Report) bool) {
		folder, err := durable.OpenFolder(base)
		if err != nil {
			return
		}
		defer folder.Close()
		for i, session := range sessions {
			if r, err := readReport(folder, session+"/"+path); err == nil && !yield(i, r) {
				return
			}
		}
	}
}

// ReadReport reads the report in a folder. A slot whose content is not sound counts as empty: a program may be writing
// it. For a session without a report the error is fs.ErrNotExist.
func ReadReport(dir string) (resource.Report, error) {
	return readReport(durable.WorkingFolder, filepath.Join(dir, ReportFile))
}

func readReport(in durable.Folder, name string) (resource.Report, error) {
	content, err := readSlots(in, name)
	if err != nil {
		return resource.Report{}, fmt.Errorf("reading the session's report: %w", err)
	}
	var r resource.Report
	var sums reportEntry
	for at := 0; at+reportSlot <= len(content); at += reportSlot {
		e, ok := parseEntry(content[at : at+reportSlot])
		switch {
		case !ok:
		case at == 0:
			sums = e
			r.Earlier, r.Total = e.Programs, e.work()
		case e.ID != sums.ID: // that one is in the sums
			p := e.program()
			r.Programs = append(r.Programs, p)
			r.Total.Add(p.Work)
		}
	}
	slices.SortFunc(r.Programs, func(a, b resource.ProgramReport) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
	})
	return r, nil
}

// readSlots reads at most the slots of a report. It follows no link and waits for no writer of a pipe.
func readSlots(in durable.Folder, name string) ([]byte, error) {
	var now unix.Stat_t
	if err := in.Stat(name, &now); err == nil && now.Mode&unix.S_IFMT == unix.S_IFREG && now.Blocks == 0 {
		return nil, nil // no program has reported
	}
	fd, err := in.Open(name, unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, err
	}
	content := make([]byte, min(info.Size(), reportSlot*reportSlots))
	n, err := io.ReadFull(file, content)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // it has been made shorter
		err = nil
	}
	return content[:n], err
}

// reportEntry is the JSON of a slot: a program's, or the sums of programs.
type reportEntry struct {
	Version int     `json:"v"`
	ID      string  `json:"id"` // of the program; in the sums, of the last one that they include
	PID     int     `json:"pid"`
	Name    string  `json:"name"`
	Rank    *int    `json:"rank"`
	Start   float64 `json:"start"` // Unix time, s
	At      float64 `json:"at"`
	End     float64 `json:"end"`

	Launches    int               `json:"launches"`
	FLOPs       float64           `json:"flops"`
	ToDevice    int               `json:"to_device"`
	ToHost      int               `json:"to_host"`
	Between     int               `json:"between"`
	Collectives map[string][2]int `json:"collectives"` // count, bytes
	Devices     map[string][2]int `json:"devices"`     // peak allocated, peak reserved

	Memory        *memoryEntry       `json:"memory"` // at the fullest moment
	Error         *memoryEntry       `json:"error"`
	Rescued       int                `json:"rescued"`
	Least         map[string]float64 `json:"least"`
	Step          *resource.StepWork `json:"step"`
	WithoutValues string             `json:"without_values"`

	OutOfMemory *refusals  `json:"out_of_memory"`
	Failed      *[2]string `json:"failed"` // type, text
	Programs    int        `json:"programs"`
}

type refusals struct {
	count int
	text  string
}

// UnmarshalJSON reads [count, text].
func (r *refusals) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&r.count, &r.text})
}

// parseEntry returns false for a slot that is empty or not sound.
func parseEntry(slot []byte) (e reportEntry, ok bool) {
	text := strings.TrimRight(string(slot), " ")
	sum, text, found := strings.Cut(text, " ")
	want, err := strconv.ParseUint(sum, 16, 32)
	if !found || err != nil || uint32(want) != crc32.ChecksumIEEE([]byte(text)) {
		return e, false
	}
	err = json.Unmarshal([]byte(text), &e)
	return e, err == nil && e.sound()
}

func (e reportEntry) sound() bool {
	counts := []int{e.PID, e.Programs, e.Rescued, e.Launches, e.ToDevice, e.ToHost, e.Between}
	for kind, c := range e.Collectives {
		if !slices.Contains(collectives, kind) {
			return false
		}
		counts = append(counts, c[0], c[1])
	}
	for device, peaks := range e.Devices {
		if n, err := strconv.Atoi(device); err != nil || n < 0 || n >= mostDevices || strconv.Itoa(n) != device {
			return false
		}
		counts = append(counts, peaks[0], peaks[1])
	}
	if e.Rank != nil {
		counts = append(counts, *e.Rank)
	}
	if e.OutOfMemory != nil {
		counts = append(counts, e.OutOfMemory.count)
	}
	if min(e.Start, e.At, e.End) < 0 || max(e.Start, e.At, e.End) > mostTime {
		return false
	}
	return e.Version == reportVersion && e.FLOPs >= 0 && e.FLOPs <= mostFLOPs &&
		e.Memory.sound() && e.Error.sound() && soundStep(e.Step) && soundWork(e.Least) && !slices.ContainsFunc(counts, outOfRange)
}

// collectives are the kinds that programs report.
var collectives = []string{"all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "gather", "recv", "reduce", "reduce_scatter", "scatter", "send"}

func (e reportEntry) work() resource.Work {
	w := resource.Work{Launches: e.Launches, FLOPs: e.FLOPs, ToDevice: e.ToDevice, ToHost: e.ToHost, Between: e.Between}
	for kind, c := range e.Collectives {
		w.Add(resource.Work{Collectives: map[string]resource.Collective{kind: {Count: c[0], Bytes: c[1]}}})
	}
	return w
}

func (e reportEntry) program() resource.ProgramReport {
	p := resource.ProgramReport{Work: e.work(), PID: e.PID, Name: printable(e.Name), Rank: e.Rank, Start: e.Start, Updated: e.At, End: e.End}
	for device, peaks := range e.Devices {
		n, _ := strconv.Atoi(device) // sound
		p.Devices = append(p.Devices, resource.DevicePeak{Index: n, Allocated: peaks[0], Reserved: peaks[1]})
	}
	slices.SortFunc(p.Devices, func(a, b resource.DevicePeak) int { return a.Index - b.Index })
	if e.OutOfMemory != nil {
		p.OutOfMemory, p.Refusal = e.OutOfMemory.count, printable(e.OutOfMemory.text)
	}
	if e.Failed != nil {
		p.Failure, p.FailureText = printable(e.Failed[0]), printable(e.Failed[1])
	}
	e.addMemory(&p)
	return p
}

// printable is a text of a program on one line, without what a terminal would interpret.
func printable(text string) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if runes := []rune(line); len(runes) > mostText {
		line = string(runes[:mostText]) + "..."
	}
	return strings.TrimSpace(line)
}
