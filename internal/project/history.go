package project

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cosplay/driver"
	"cosplay/internal/agent"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/ledger"
	"cosplay/internal/machine"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// Past is what happened on this machine and on the hosts of the project.
type Past struct {
	Events  []public.Event // oldest first
	Skipped []error        // audit logs, and hosts on other machines, that are left out, and why
	live    resource.Live
}

// History reads the histories of the ledgers, with the turns of the queue that passed, and the audit logs that the user
// may read of the projects that these name. What both have is one event: the ledger cannot be forged, and the audit log
// knows the session.
func (p *Project) History(ctx context.Context) (past Past, err error) {
	p.Intent.Hosts = slices.DeleteFunc(p.Intent.Hosts, func(c config.Host) bool { // to read a simulated host creates it
		return c.Simulate != "" && c.Connect == "" && !sim.Is(p.Machine.SimDir(c.Name))
	})
	var all []public.Event
	logs := map[string]bool{}
	read := map[string]bool{} // by the folder of the ledger
	hosts := slices.Clone(p.Intent.Hosts)
	if driver.Here { // else this machine has no ledger
		hosts = append(hosts, machine.System)
	}
	for _, c := range hosts {
		folder := p.Machine.Ledger(c)
		if read[folder] {
			continue
		}
		read[folder] = true
		attempts, err := p.Machine.Records(c).History(ctx)
		if err != nil && p.Machine.Elsewhere(c) {
			past.Skipped = append(past.Skipped, fmt.Errorf("host %s: %w", c.Name, err))
			continue
		}
		if err != nil {
			return past, err
		}
		for _, a := range attempts {
			e := ofLedger(a, cmp.Or(c.Name, config.LocalHost))
			if all = append(all, e); a.State != "" && c.Connect == "" { // this machine has no log of another's projects
				logs[auditOf(e)] = true
			}
		}
	}
	delete(logs, p.auditPath())
	merged, audits := newMerge(all), audits{bytes: map[int]int64{}}
	for _, path := range append([]string{p.auditPath()}, slices.Sorted(maps.Keys(logs))...) {
		for _, log := range audits.read(path) {
			merged.add(log)
		}
	}
	past.Events, past.Skipped = merged.all, append(past.Skipped, audits.skipped...)
	past.live, _ = p.ReadHosts(ctx) // a GPU that cannot be read keeps its UUID
	for i := range past.Events {
		e := &past.Events[i]
		for _, h := range past.live.Hosts {
			if g, is := past.live.GPU(h.Name, e.GPU); is {
				e.Index = new(g.Index)
			}
		}
	}
	slices.SortStableFunc(past.Events, func(a, b public.Event) int { return EventTime(a).Compare(EventTime(b)) })
	return past, nil
}

// auditOf is the audit log of the project of an event of the ledger.
func auditOf(e public.Event) string { return filepath.Join(e.Project, machine.ScratchDir, AuditFile) }

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

// add adds the lines of an audit log, or names the events of the ledger that they are about. Its owner can write any line
// into it: it names only events of its owner's project that its owner made, or root for them.
func (m *merge) add(log auditLog) {
	for _, line := range log.lines {
		e := ofAudit(line)
		if of := filepath.Dir(filepath.Dir(log.path)); e.Project != of {
			e.Project, e.State = of, "" // whatever the line says
		}
		alone := m.alone[keyOf(e)]
		i := slices.IndexFunc(alone, func(i int) bool {
			known := m.all[i]
			return log.of(known) && EventTime(known).Sub(EventTime(e)).Abs() <= nearby
		})
		if i < 0 || e.Outcome == "interrupted" {
			m.all = append(m.all, e)
			continue
		}
		known := &m.all[alone[i]]
		known.Session, known.Command = e.Session, e.Command
		m.alone[keyOf(e)] = slices.Delete(alone, i, i+1)
	}
}

// auditLog is a file of an audit log.
type auditLog struct {
	path  string // of its newest file
	owner agent.Subject
	lines []AuditLine
}

// of reports whether an event of the ledger is one that the log is about.
func (l auditLog) of(e public.Event) bool {
	return auditOf(e) == l.path && (l.owner.UID == 0 || l.owner.UID == e.UID || l.owner.Name == e.For)
}

// audits are the audit logs that were read.
type audits struct {
	bytes   map[int]int64 // by the UID of their owners
	skipped []error
}

// mostAudited bounds the audit logs of one user, in bytes: any user can name many in the ledger.
const mostAudited = 64 << 20

// read reads an audit log with its older files, as far as the user may. A line about another user than the owner says so.
func (a *audits) read(path string) (all []auditLog) {
	for _, file := range slices.Backward(append([]string{path}, olderAudits(path)...)) {
		data, uid, err := durable.ReadOwned(file, 2*maxAudit)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission): // another user's
			continue
		case err == nil && a.bytes[uid]+int64(len(data)) > mostAudited:
			err = fmt.Errorf("%s: more than %d MiB of logs of one user", file, mostAudited>>20)
		}
		if err != nil {
			a.skipped = append(a.skipped, err)
			continue
		}
		a.bytes[uid] += int64(len(data))
		log := auditLog{path: path, owner: agent.SubjectOf(uid)}
		for text := range strings.Lines(string(data)) {
			var line AuditLine
			if json.Unmarshal([]byte(text), &line) != nil {
				continue
			}
			switch {
			case uid == 0:
			case line.UID == uid:
				line.User = log.owner.Name
			default:
				line.User = fmt.Sprintf("%s (by the log of %s)", line.User, log.owner.Name)
			}
			log.lines = append(log.lines, line)
		}
		all = append(all, log)
	}
	return all
}

// GPU finds the UUID of a GPU that the user names by its index or the start of its UUID, among those that can be read and
// those of events.
func (p Past) GPU(typed string) (uuid string, err error) {
	found := map[string]bool{}
	add := func(uuid string, index *int) {
		if uuid != "" && (index != nil && fmt.Sprint(*index) == typed || strings.HasPrefix(strings.ToLower(uuid), strings.ToLower(typed)) && len(typed) > len("GPU-")) {
			found[uuid] = true
		}
	}
	for _, h := range p.live.Hosts {
		for _, g := range h.GPUs {
			add(g.UUID, &g.Index)
		}
	}
	for _, e := range p.Events {
		add(e.GPU, e.Index)
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
