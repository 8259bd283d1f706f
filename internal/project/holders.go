package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// holders are the projects that the hosts' ledgers know, each once, in the order
// in which they are found.
func holders(live resource.Live) []resource.Holder {
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
func (p *Project) believed() []int {
	uids := []int{0, *userID()}
	for _, path := range []string{p.Store.Path, filepath.Dir(p.Store.Path)} {
		if info, err := os.Stat(path); err == nil {
			uids = append(uids, int(info.Sys().(*syscall.Stat_t).Uid))
		}
	}
	return uids
}

// disown marks the path of holders of other users that claim the path of this state, so
// that it does not match. Lineages need no check: the ledger assigns each to one user.
func (p *Project) disown(live resource.Live) {
	uids := p.believed()
	for _, host := range live.Hosts {
		for _, page := range host.Ledger {
			for i := range page.Holders {
				h := &page.Holders[i]
				if h.UID != nil && !slices.Contains(uids, *h.UID) && at(*h, p.Store.Path) {
					h.State = fmt.Sprintf("%s of uid %d", h.State, *h.UID)
				}
			}
		}
	}
}

// Gone lists the projects that hold a GPU and are no more, by lineage.
func (p *Project) Gone(live resource.Live) map[string]bool {
	gone := map[string]bool{}
	for _, h := range holders(live) {
		if isGone(h) {
			gone[h.Lineage] = true
		}
	}
	return gone
}

// lostStates reports GPUs that are held for a state which was in the place of this
// one: nothing that follows from this state would ever give them back, and new
// sessions would use the folders of those that still run. Only a destroy of named
// sessions goes on.
func (p *Project) lostStates(prior resource.Prior, live resource.Live, aim Aim) hcl.Diagnostics {
	var diags hcl.Diagnostics
	severity := hcl.DiagError
	if aim.Goal == NothingLeft && aim.partial() {
		severity = hcl.DiagWarning
	}
	for _, h := range holders(live) {
		if h.Lineage != prior.Lineage && at(h, p.Store.Path) {
			diags = append(diags, &hcl.Diagnostic{Severity: severity, Summary: "GPUs are held for a state that was lost", Subject: &hcl.Range{},
				Detail: fmt.Sprintf("The host's ledger knows this project with lineage %s, which %s does not have. Fix: cosplay state rebuild restores the lost state; cosplay reset --holder %s removes what it had and restores the GPUs.",
					h.Lineage, p.Store.Path, resource.ShortLineage(h.Lineage))})
		}
	}
	return diags
}

// isGone reports whether a project's state is not where it was, or another's is
// there. A state that cannot be read, or is damaged, is not gone. Files of other users
// are not read: a user can make them large.
func isGone(h resource.Holder) bool {
	if _, err := os.Lstat(h.State); err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return (h.UID == nil || *h.UID == *userID()) && isReplaced(h)
}

// isReplaced reports whether another project's state is where a project's was.
func isReplaced(h resource.Holder) bool {
	prior, err := state.Store{Path: h.State}.Load()
	return err == nil && prior.Lineage != h.Lineage
}

// at reports whether a project's state is at a path.
func at(h resource.Holder, path string) bool {
	if h.State == path {
		return true
	}
	return resolved(h.State) == resolved(path)
}

// resolved follows the links of the folder; the file itself may be gone.
func resolved(path string) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return path
	}
	return filepath.Join(dir, filepath.Base(path))
}

// mayRelease tells whether who typed the command may take away what another
// project holds: its own user may, and root.
func mayRelease(h resource.Holder) error {
	if os.Geteuid() == 0 || h.User == userName() {
		return nil
	}
	return fmt.Errorf("the project with its state in %s is %s's: %s or root can take it off the GPUs", h.State, h.User, h.User)
}

// pickHolder finds a project by the beginning of its lineage.
func pickHolder(all []resource.Holder, prefix string) (resource.Holder, error) {
	var found []resource.Holder
	for _, h := range all {
		if prefix != "" && strings.HasPrefix(h.Lineage, prefix) {
			found = append(found, h)
		}
	}
	switch len(found) {
	case 0:
		return resource.Holder{}, fmt.Errorf("no project %q holds a GPU; cosplay status lists who does", prefix)
	case 1:
		return found[0], nil
	}
	return resource.Holder{}, fmt.Errorf("%q could be %s or %s; write more of it", prefix, found[0].Lineage, found[1].Lineage)
}
