package project

import (
	"context"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/ledger"
	"cosplay/internal/machine"
	"cosplay/internal/resource"
)

// blame adds to drift who caused it, as far as the histories of the ledgers know it, and reports sessions of the project
// that another user has removed together with their records.
func (p *Project) blame(ctx context.Context, found []diff.Drift, prior resource.Prior, live resource.Live) []diff.Drift {
	for _, host := range p.Intent.Hosts {
		shown, _ := live.Host(host.Name)
		of := func(d diff.Drift) bool { return d.Host == host.Name && !d.Informational }
		removable := len(prior.Sessions) == 0 && len(p.Intent.Sessions) > 0
		if shown.Unreachable != "" || !removable && !slices.ContainsFunc(found, of) {
			continue
		}
		history, err := p.Machine.Records(host).History(ctx)
		if err != nil {
			continue // who it was stays unknown
		}
		for i := range found {
			if d := &found[i]; of(*d) {
				d.By = culprit(*d, prior, shown, history)
			}
		}
		if by, removed := p.remover(prior, history); removable && removed {
			found = append(found, diff.Drift{Class: diff.ProjectRemoved, Host: host.Name, From: diff.IsUp, To: diff.IsMissing, By: by})
		}
	}
	return found
}

// culprit is who last made the change that a drift shows; empty if the history does not have it.
func culprit(d diff.Drift, prior resource.Prior, host resource.Host, history []ledger.Attempted) (by diff.Culprit) {
	gpu, uuid := d.GPU, ""
	if d.Session != nil {
		s, _ := prior.Session(*d.Session)
		gpu = s.Slice.GPU
		if s.Handle != nil {
			uuid = s.Handle.UUID
		}
	}
	setting, sets := d.Class.Setting()
	for _, a := range slices.Backward(history) {
		if a.GPU != gpu || a.Refused != "" {
			continue
		}
		switch {
		case sets && a.Op == "set-"+setting.String():
			if explains(d, a, valueNow(host, gpu, setting), setting) {
				by = diff.Culprit{User: a.User, At: a.At}
			}
			return by // an older one is not the cause
		case uuid != "" && a.Op == "destroy-slice" && strings.HasSuffix(a.Value, uuid) && (d.Class == diff.SliceMissing || d.Class == diff.BodyMissing):
			return diff.Culprit{User: a.User, At: a.At}
		}
	}
	return by
}

// explains reports whether the last attempt at a setting is the cause of a drift. A clock lock has no getter: an attempt at another
// lock than the recorded one is its cause.
func explains(d diff.Drift, a ledger.Attempted, now string, setting resource.Setting) bool {
	if locked, is := d.From.(diff.Clock); is {
		return a.Value != setting.Text(locked.MHz)
	}
	return a.Value == now
}

// valueNow is a setting of a GPU, as the history writes it.
func valueNow(host resource.Host, uuid string, setting resource.Setting) string {
	for _, g := range host.GPUs {
		if value, known := g.Now(setting); g.UUID == uuid && known {
			return ledger.Exact(resource.Settings{}.With(setting, value), setting)
		}
	}
	return ""
}

// remover is another user who was the last to release a GPU of this project.
func (f *Files) remover(prior resource.Prior, history []ledger.Attempted) (by diff.Culprit, removed bool) {
	for _, a := range slices.Backward(history) {
		ours := a.Lineage == prior.Lineage || prior.Lineage == "" && a.State == f.Store.Path
		switch {
		case !ours || a.Refused != "":
			continue
		case a.Op == "release" && a.UID != *machine.UserID():
			return diff.Culprit{User: a.User, At: a.At}, true
		}
		return by, false
	}
	return by, false
}
