package project

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"cosplay/internal/agent"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/ledger"
	"cosplay/internal/machine"
	"cosplay/internal/public"
	"cosplay/internal/sim"
)

// History is what happened on this machine and on the hosts of the project, oldest first: the histories of their ledgers,
// with the turns of the queue that passed, and the audit logs that the user may read of the projects that these name.
// What both have is one event: the ledger cannot be forged, and the audit log knows the session.
func (p *Project) History(ctx context.Context) ([]public.Event, error) {
	p.Intent.Hosts = slices.DeleteFunc(p.Intent.Hosts, func(c config.Host) bool { // to read a simulated host creates it
		return c.Simulate != "" && !sim.Is(p.Machine.SimDir(c.Name))
	})
	books := map[ledger.Book]string{{Dir: ledger.SystemDir}: config.LocalHost}
	for _, c := range p.Intent.Hosts {
		books[p.Machine.Book(c)] = c.Name
	}
	var all []public.Event
	logs := map[string]bool{p.auditPath(): true}
	for book, host := range books {
		attempts, err := book.History()
		if err != nil {
			return nil, err
		}
		for _, a := range attempts {
			e := ofLedger(a, host)
			if all = append(all, e); a.State != "" {
				logs[filepath.Join(e.Project, machine.ScratchDir, AuditFile)] = true
			}
		}
	}
	merged := newMerge(all)
	for left := int64(mostAudited); len(logs) > 0; {
		path := slices.Min(slices.Collect(maps.Keys(logs)))
		delete(logs, path)
		for _, line := range readAudit(path, &left) {
			merged.add(line)
		}
	}
	live, _ := p.Survey(ctx) // a GPU that cannot be read keeps its UUID
	for i := range merged.all {
		e := &merged.all[i]
		for _, h := range live.Hosts {
			if g, is := live.GPU(h.Name, e.GPU); is {
				e.Index = new(g.Index)
			}
		}
	}
	slices.SortStableFunc(merged.all, func(a, b public.Event) int { return EventTime(a).Compare(EventTime(b)) })
	return merged.all, nil
}

// EventTime is when an event happened; the zero time where its log does not say.
func EventTime(e public.Event) time.Time {
	at, _ := time.Parse(time.RFC3339, e.Time)
	return at
}

func ofLedger(a ledger.Attempted, host string) public.Event {
	e := public.Event{Time: a.At, User: a.User, UID: a.UID, For: a.For, Project: folderOf(a.State), Lineage: a.Lineage, State: a.State, Host: host, GPU: a.GPU,
		Op: a.Op, Old: a.Was, New: strings.TrimSpace(a.Value), Outcome: "done", Why: strings.Join(strings.Fields(a.Refused), " "), Log: "ledger"}
	switch {
	case strings.HasPrefix(e.Why, "NVML:"):
		e.Outcome = "failed"
	case e.Why != "":
		e.Outcome = "refused"
	}
	if e.Op == "destroy-slice" {
		e.Old, e.New = e.New, ""
	}
	return e
}

// folderOf is the folder of a state or, of a run, the folder in which it was started; "" without a state.
func folderOf(statePath string) string {
	if dir, once := FolderOfRun(statePath); once {
		return dir
	}
	if statePath == "" {
		return ""
	}
	return filepath.Dir(statePath)
}

// inLedger are the names that the ledger has for kinds of operations; set-gpu has one for each setting.
var inLedger = map[string]string{"take-gpu": "take", "leave-gpu": "leave", "release-gpu": "release", "create-slice": "create-slice", "destroy-slice": "destroy-slice"}

func ofAudit(line AuditLine) public.Event {
	op := cmp.Or(inLedger[line.Op], line.Op)
	if line.Setting != "" {
		op = "set-" + line.Setting
	}
	return public.Event{Time: line.Time, User: line.User, UID: line.UID, Project: folderOf(line.State), Lineage: line.Project, State: line.State, Command: line.Command,
		Host: line.Host, GPU: line.GPU, Session: line.Address, Op: op, Old: line.Old, New: line.New, Outcome: line.Outcome, Log: "project"}
}

// merge has the events of all logs.
type merge struct {
	all   []public.Event
	alone map[[4]string][]int // indexes of the events of ledgers that no audit log has named yet
}

// nearby is the longest time between an event in the ledger and its line in the audit log, whose times once had no
// fractions.
const nearby = 3 * time.Second

func newMerge(ofLedgers []public.Event) *merge {
	m := &merge{all: ofLedgers, alone: map[[4]string][]int{}}
	for i, e := range ofLedgers {
		m.alone[keyOf(e)] = append(m.alone[keyOf(e)], i)
	}
	return m
}

// keyOf is equal for an event in the ledger and its line in an audit log.
func keyOf(e public.Event) [4]string {
	slice := ""
	if strings.HasSuffix(e.Op, "-slice") {
		slice, _, _ = strings.Cut(e.Old+e.New, " MIG-")
	}
	return [4]string{e.Lineage, e.GPU, e.Op, slice}
}

// add adds a line of an audit log, or names the event of the ledger that it is about.
func (m *merge) add(line AuditLine) {
	e := ofAudit(line)
	alone := m.alone[keyOf(e)]
	i := slices.IndexFunc(alone, func(i int) bool { return EventTime(m.all[i]).Sub(EventTime(e)).Abs() <= nearby })
	if i < 0 || e.Outcome == "interrupted" {
		m.all = append(m.all, e)
		return
	}
	known := &m.all[alone[i]]
	known.Session, known.Command, known.Host = e.Session, e.Command, e.Host
	m.alone[keyOf(e)] = slices.Delete(alone, i, i+1)
}

// mostAudited bounds the audit logs that are read, in bytes: any user can name many in the ledger.
const mostAudited = 64 << 20

// readAudit reads an audit log with its older files, as far as the user may and as there are bytes left. Its owner can
// write any line into it: one about another user says so.
func readAudit(path string, left *int64) (all []AuditLine) {
	for _, path := range slices.Backward(append([]string{path}, olderAudits(path)...)) {
		info, err := os.Stat(path)
		if err != nil || info.Size() > *left || info.Size() > 2*maxAudit {
			continue
		}
		data, err := durable.ReadFile(path)
		if err != nil {
			continue // another user's
		}
		*left -= int64(len(data))
		owner := int(info.Sys().(*syscall.Stat_t).Uid)
		for text := range strings.Lines(string(data)) {
			var line AuditLine
			if json.Unmarshal([]byte(text), &line) != nil {
				continue
			}
			if owner != 0 && line.UID != owner {
				line.User = fmt.Sprintf("%s (by the log of %s)", line.User, agent.SubjectOf(owner).Name)
			}
			all = append(all, line)
		}
	}
	return all
}

// GPUOf finds the UUID of a GPU that the user names by its index or the start of its UUID, among those of events.
func GPUOf(events []public.Event, typed string) (uuid string, err error) {
	found := map[string]bool{}
	for _, e := range events {
		if e.GPU != "" && (e.Index != nil && fmt.Sprint(*e.Index) == typed || strings.HasPrefix(strings.ToLower(e.GPU), strings.ToLower(typed)) && len(typed) > len("GPU-")) {
			found[e.GPU] = true
		}
	}
	switch names := slices.Sorted(maps.Keys(found)); len(names) {
	case 0:
		return "", fmt.Errorf("--gpu %s: nothing is known of such a GPU. Fix: write an index that cosplay status shows, or the start of a UUID", typed)
	case 1:
		return names[0], nil
	default:
		return "", fmt.Errorf("--gpu %s could be %s. Fix: write more of the UUID", typed, strings.Join(names, " or "))
	}
}
