package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/machine"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
	"cosplay/internal/state"
	"cosplay/internal/terminal"
)

// Holders are the projects that the hosts' ledgers know, each once, in the order
// in which they are found.
func Holders(live resource.Live) []resource.Holder {
	var all []resource.Holder
	seen := map[string]bool{}
	for _, h := range live.Hosts {
		for _, page := range h.Ledger {
			for _, holder := range page.Holders {
				if !seen[holder.Lineage] {
					seen[holder.Lineage] = true
					all = append(all, holder)
				}
			}
		}
	}
	return all
}

// believed are the uids of the users whose holders may name the path of this state: the
// user of the command, the owners of the state and of its folder, and root. Any user of a
// host can acquire a GPU with the path of any state.
func (f *Files) believed() []int {
	uids := []int{0, *machine.UserID()}
	for _, path := range []string{f.Store.Path, filepath.Dir(f.Store.Path)} {
		if info, err := os.Stat(path); err == nil {
			uids = append(uids, int(info.Sys().(*syscall.Stat_t).Uid))
		}
	}
	return uids
}

// disown marks the path of holders of other users that claim the path of this state, so
// that it does not match. Lineages need no check: the ledger assigns each to one user.
func (f *Files) disown(live resource.Live) {
	uids := f.believed()
	for _, host := range live.Hosts {
		for _, page := range host.Ledger {
			for i := range page.Holders {
				h := &page.Holders[i]
				if h.UID != nil && !slices.Contains(uids, *h.UID) && At(*h, f.Store.Path) {
					h.State = fmt.Sprintf("%s of uid %d", h.State, *h.UID)
				}
			}
		}
	}
}

// Lost lists the projects that hold a GPU and whose state is lost, by lineage.
func (f *Files) Lost(prior resource.Prior, live resource.Live) map[string]bool {
	lost := map[string]bool{}
	for _, h := range Holders(live) {
		if ours := h.Lineage == prior.Lineage && h.State == f.Store.Path; !ours && IsLost(h) {
			lost[h.Lineage] = true
		}
	}
	return lost
}

// lostStates reports GPUs that the ledger has for a state which was at this path before.
// No plan of the present state would release them, and new sessions would use the folders
// of sessions that still run. Only a destroy of named sessions may continue.
func (f *Files) lostStates(prior resource.Prior, live resource.Live, aim Aim) hcl.Diagnostics {
	var diags hcl.Diagnostics
	severity := hcl.DiagError
	if aim.Goal == NothingLeft && aim.partial() {
		severity = hcl.DiagWarning
	}
	for _, h := range Holders(live) {
		if h.Lineage != prior.Lineage && At(h, f.Store.Path) {
			diags = append(diags, &hcl.Diagnostic{Severity: severity, Summary: "GPUs are held for a state that was lost", Subject: &hcl.Range{},
				Detail: fmt.Sprintf("The host's ledger knows this project with lineage %s, which %s does not have. Fix: cosplay state rebuild restores the lost state; cosplay reset --holder %s removes what it had and restores the GPUs.",
					h.Lineage, f.Store.Path, resource.ShortLineage(h.Lineage))})
		}
	}
	return diags
}

// Elsewhere reports whether the state of a project is on another machine, so that this one cannot tell what became of it.
func Elsewhere(h resource.Holder) bool {
	own := machine.ID()
	return h.Machine != "" && own != "" && h.Machine != own
}

// IsLost reports whether a project's state does not exist, or another project's state has
// its path. A state that is damaged or not readable still exists. IsLost does not read
// files of other users, who can make them large.
func IsLost(h resource.Holder) bool {
	if Elsewhere(h) {
		return false
	}
	if _, err := os.Lstat(h.State); err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return (h.UID == nil || *h.UID == *machine.UserID()) && IsReplaced(h)
}

// IsReplaced reports whether another project's state has the path of a project's state.
func IsReplaced(h resource.Holder) bool {
	if Elsewhere(h) {
		return false
	}
	prior, err := state.Store{Path: h.State}.Load()
	return err == nil && prior.Lineage != h.Lineage
}

// neighbour reads another project of the user, to name it where it leaves no room.
func (f *Files) neighbour(h resource.Holder) resolve.Neighbour {
	if Elsewhere(h) {
		return resolve.Neighbour{Name: "the project with state " + h.State + " on another machine"}
	}
	dir := filepath.Dir(h.State)
	runDir, once := FolderOfRun(h.State)
	switch {
	case once && !Elsewhere(h) && wasKilled(h.State):
		return resolve.Neighbour{Name: "cosplay run in " + runDir + ", which was killed,", Frees: "cosplay reset --chdir " + terminal.ShellWord(runDir)}
	case once:
		return resolve.Neighbour{Name: "cosplay run in " + runDir, Ends: true}
	}
	named := "project " + dir
	in := " --chdir " + terminal.ShellWord(dir)
	if filepath.Base(h.State) != state.FileName { // which configuration it has is unknown
		named, in = "project with state "+h.State, ""
	}
	prior, err := state.Store{Path: h.State}.Load()
	switch {
	case IsLost(h):
		return resolve.Neighbour{Name: named + ", whose state is lost,", Frees: "cosplay reset --holder " + resource.ShortLineage(h.Lineage)}
	case in == "":
		return resolve.Neighbour{Name: named, Sessions: prior.Sessions}
	case err != nil:
		return resolve.Neighbour{Name: named, Frees: "cosplay reset" + in}
	}
	return resolve.Neighbour{Name: named, Sessions: prior.Sessions, Frees: "cosplay destroy" + in}
}

// At reports whether a project's state is at a path.
func At(h resource.Holder, path string) bool {
	if Elsewhere(h) {
		return false
	}
	return h.State == path || resolved(h.State) == resolved(path)
}

// resolved is a path with the links of its folder resolved; the file may not exist.
func resolved(path string) string {
	return filepath.Join(real(filepath.Dir(path)), filepath.Base(path))
}

// MayRelease returns an error unless the user of the command may release the GPUs of
// another project: only that project's user and root may.
func MayRelease(h resource.Holder) error {
	if os.Geteuid() == 0 || h.User == machine.UserName() {
		return nil
	}
	return fmt.Errorf("the project with the state %s belongs to user %s: only %s or root can release its GPUs", h.State, h.User, h.User)
}

// Foreign is the reason why a readable state is not this project's; "" if it is.
func (f *Files) Foreign(prior resource.Prior, live resource.Live) string {
	var here []string
	for _, h := range Holders(live) {
		switch {
		case At(h, f.Store.Path):
			here = append(here, h.Lineage)
		case h.Lineage == prior.Lineage && (!IsLost(h) || MayRelease(h) != nil):
			return fmt.Sprintf("it is a copy of another project's, whose own is in %s", h.State)
		}
	}
	if len(here) > 0 && !slices.Contains(here, prior.Lineage) {
		return fmt.Sprintf("it belongs to another project: its lineage is %s, but the GPUs are held for %s", prior.Lineage, here[0])
	}
	return ""
}

// RefuseCopy refuses a copy of a state whose original still exists, as the ledgers in a snapshot show. Each of two states
// with one lineage would remove what the other has.
func (f *Files) RefuseCopy(prior resource.Prior, live resource.Live) error {
	elsewhere := map[string]resource.Holder{} // by their states, each of which holds many GPUs
	for _, host := range live.Hosts {
		for _, page := range host.Ledger {
			h, holds := page.Holder(prior.Lineage)
			if holds && At(h, f.Store.Path) {
				return nil
			}
			if holds {
				elsewhere[h.State] = h
			}
		}
	}
	for _, original := range slices.Sorted(maps.Keys(elsewhere)) {
		if isOriginal(elsewhere[original], f.Store.Path) {
			return fmt.Errorf("the state %s is a copy of another project's, whose own is in %s. Use that state, or remove this one", f.Store.Path, original)
		}
	}
	return nil
}

// Ledgers is a snapshot of the ledgers alone.
func (l *Fleet) Ledgers(ctx context.Context) (live resource.Live, err error) {
	l.Machine.Greet(l.Intent.Hosts)
	for _, c := range l.Intent.Hosts {
		host := resource.Host{Name: c.Name}
		if l.Machine.Elsewhere(c) && !l.Machine.IsOpen(c) {
			live.Hosts = append(live.Hosts, host) // it cannot be reached
			continue
		}
		if host.Ledger, _, err = l.Machine.Records(c).Ledger(ctx, ""); err != nil {
			return live, fmt.Errorf("host %s: %w", c.Name, err)
		}
		live.Hosts = append(live.Hosts, host)
	}
	return live, nil
}

// isOriginal reports whether a holder's state exists, beside another file with the same
// lineage. One file under two paths, as in a container, is no copy.
func isOriginal(h resource.Holder, path string) bool {
	if _, err := os.Stat(path); err != nil || sameFile(path, h.State) {
		return false
	}
	prior, err := state.Store{Path: h.State}.Load()
	return err == nil && prior.Lineage == h.Lineage
}

// Holder describes this project for the ledgers.
func (f *Files) Holder(lineage string) resource.Holder {
	return resource.Holder{Lineage: lineage, State: f.Store.Path, Machine: machine.ID(), User: machine.UserName(), UID: machine.UserID(), Since: time.Now().UTC().Format(time.RFC3339)}
}

// Lineage is an identity of a project in the ledgers. Recovery searches the hosts by it
// and does not rely on the state. A project whose state was lost may have several.
type Lineage struct {
	Holder resource.Holder
	Dir    string         // the project's folder
	Known  resource.Prior // its state, if that can be read
	Own    bool           // it belongs to the project of the command
	Main   bool           // it is the project's present lineage
}

// HostOf is an open host with the name and the folders that a lineage has for it.
func (p *Project) HostOf(l Lineage, live resource.Live, name string) *machine.Host {
	h := p.Machine.Hosts()[name]
	known := h.Config.Name
	if !l.Own || name == p.Unnamed {
		known = theirName(l.Holder.Lineage, live, name)
	}
	statePath := l.Holder.State
	if l.Own {
		statePath = p.Store.Path // it may have been moved
	}
	return h.As(known, l.Dir, statePath)
}

// theirName is a project's name of a host, as far as its slices show it.
func theirName(lineage string, live resource.Live, name string) string {
	host, _ := live.Host(name)
	for _, page := range host.Ledger {
		holder, _ := page.Holder(lineage)
		for _, s := range holder.Slices {
			if s.Host != "" {
				return s.Host
			}
		}
	}
	return name
}

// Remains are the objects of a lineage's sessions on the hosts, with what a key proves.
func (p *Project) Remains(ctx context.Context, l Lineage, live resource.Live, key string) (all []resource.Remains, failures []error) {
	owner := resource.Owner{Lineage: l.Holder.Lineage, Key: key}
	for _, host := range live.Hosts {
		if host.Unreachable != "" {
			continue
		}
		found, failed := p.Machine.Remains(ctx, p.HostOf(l, live, host.Name), l.Known, owner, !l.Own || l.Main)
		for i := range found {
			found[i].Body.Host = host.Name
		}
		all, failures = append(all, found...), append(failures, failed...)
	}
	slices.SortFunc(all, func(a, b resource.Remains) int { return a.Body.Compare(b.Body) })
	return all, failures
}
