package project

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cosplay/internal/apply"
	"cosplay/internal/durable"
	"cosplay/internal/ledger"
	"cosplay/internal/machine"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// AuditFile is the audit log of a project, in its scratch folder: a JSON line for each change that cosplay made or tried
// to make to a GPU or a session. The user of the project writes it; root's record of changes to GPUs is the history of
// the host's ledger.
const AuditFile = "audit.jsonl"

// AuditLine is a line of the audit log.
type AuditLine struct {
	Time    string `json:"time"` // RFC 3339
	User    string `json:"user"`
	UID     int    `json:"uid"`
	Command string `json:"command"` // of cosplay: "apply", "watch"
	Project string `json:"project"` // the lineage of its state
	State   string `json:"state"`   // path
	Op      string `json:"op"`      // the kind of the operation
	apply.Change
	Outcome string `json:"outcome"` // "done", "failed", or "interrupted": it may be done or not
}

const (
	maxAudit  = 1 << 20 // bytes of a file; four older ones are kept
	auditWait = time.Second
)

// Audit returns what writes the effects of a run to the audit log. The change counts more than its line: if the log
// cannot be written, Options.Unaudited gets the reason and the run continues.
func (p *Project) Audit(lineage string) func(apply.Effect) {
	return func(e apply.Effect) {
		outcome := "done"
		if e.Err != nil {
			outcome = "failed"
		}
		p.audit(lineage, e, outcome)
	}
}

func (p *Project) audit(lineage string, e apply.Effect, outcome string) {
	line := AuditLine{Time: ledger.Stamp(time.Now()), User: machine.UserName(), UID: os.Getuid(), Command: p.command,
		Project: lineage, State: p.Store.Path, Op: plan.OpJSON{Op: e.Op}.Kind(), Change: e.Change(), Outcome: outcome}
	if uid := machine.UserID(); uid != nil {
		line.UID = *uid
	}
	if err := p.appendAudit(line); err != nil && p.options.Unaudited != nil {
		p.options.Unaudited(fmt.Errorf("the audit log %s lacks lines: %w", p.auditPath(), err))
	}
}

// auditPath is the path of the audit log. A run that describes its simulated host removes its log with the host.
func (p *Project) auditPath() string {
	if p.Machine.Sims != "" {
		return filepath.Join(filepath.Dir(p.Machine.Sims), AuditFile)
	}
	return filepath.Join(p.Dir, machine.ScratchDir, AuditFile)
}

func (p *Project) appendAudit(line AuditLine) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	path := p.auditPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), auditWait)
	defer cancel()
	lock, err := durable.LockByte(ctx, path+".lock", 0)
	if err != nil {
		return err
	}
	defer lock.Close()
	return durable.Lines{Path: path, Max: maxAudit, Mode: 0o600, Older: olderAudits(path)}.Append(data)
}

// olderAudits are the paths of the older files of an audit log, the newest first.
func olderAudits(path string) []string {
	return []string{path + ".1", path + ".2", path + ".3", path + ".4"}
}

// changedSince says which commands have changed the project after a second in RFC 3339, as far as the newest file of the
// audit log has it.
func (p *Project) changedSince(begin string, live resource.Live) []string {
	file, err := os.Open(p.auditPath())
	if err != nil {
		return nil
	}
	defer file.Close()
	var commands []string
	changed := map[string][]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line AuditLine
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.State != p.Store.Path || line.Time <= begin {
			continue
		}
		by, what := fmt.Sprintf("cosplay %s of user %s", line.Command, line.User), cmp.Or(line.Address, words.GPU(live, line.Host, line.GPU))
		if !slices.Contains(commands, by) {
			commands = append(commands, by)
		}
		if !slices.Contains(changed[by], what) {
			changed[by] = append(changed[by], what)
		}
	}
	return prose.Each(commands, func(by string) string { return by + " has changed " + prose.And(prose.Few(changed[by], 4)) })
}
