package recovery

import (
	"fmt"
	"strconv"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/project"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// kept imports a container together with the slice or the whole GPU that it was given. It stays as it is until its
// session's block changes.
func (f *finder) kept(c *resource.Body, name, lineage string) (*project.Import, error) {
	if f.prior.Key == "" { // before the first apply: the hash needs the key that the state gets
		f.prior.Key = state.NewKey()
	}
	gpu, whole := f.givenGPU(c.SliceID)
	var (
		found *project.Import
		err   error
	)
	if whole {
		found, err = f.wholeGPU(gpu, lineage)
	} else {
		of := *f
		of.id = c.SliceID
		found, err = of.slice(lineage)
	}
	if err != nil {
		return nil, fmt.Errorf("the container %s: %w", name, err)
	}
	if found == nil {
		return nil, fmt.Errorf("the container %s was given %s, which host %q does not have: its programs have no GPU. Fix: remove the container, and cosplay apply creates the session again", name, c.SliceID, f.wanted.Host)
	}
	s := found.Session.Session
	c.Session, c.SliceID, c.Hash = s.ID, found.Session.SliceID(), s.Hash(f.live.KeyOn(s.Slice.Host, f.prior.Key))
	found.ID, found.Name, found.Kept, found.Session.Body = f.id, name, true, c
	for i := range found.Steps {
		if adopt, is := found.Steps[i].Do.Op.(plan.Adopt); is {
			adopt.Session = found.Session
			found.Steps[i].Do = plan.OpJSON{Op: adopt}
		}
	}
	return found, nil
}

// givenGPU finds a whole GPU of the host by its UUID or its index.
func (f *finder) givenGPU(id string) (resource.GPU, bool) {
	host, _ := f.live.Host(f.wanted.Host)
	index, err := strconv.Atoi(id)
	for _, g := range host.GPUs {
		if strings.EqualFold(g.UUID, id) || err == nil && g.Index == index {
			return g, true
		}
	}
	return resource.GPU{}, false
}

// wholeGPU imports a whole GPU for a container that has it.
func (f *finder) wholeGPU(g resource.GPU, lineage string) (*project.Import, error) {
	host := f.wanted.Host
	if err := f.onItsHost(host, g.UUID); err != nil {
		return nil, err
	}
	if g.MIG {
		return nil, fmt.Errorf("it was given GPU %d as a whole, where MIG mode is on, so that its programs have no GPU", g.Index)
	}
	if page, _ := f.live.Page(host, g.UUID); len(page.Others(lineage)) > 0 {
		return nil, fmt.Errorf("another project of cosplay holds GPU %d", g.Index)
	}
	if err := f.onlyRoot(host, "GPU"); err != nil {
		return nil, err
	}
	slice := resource.Slice{Host: host, GPU: g.UUID}
	session, err := f.resolved("", slice, nil)
	if err != nil {
		return nil, err
	}
	found := &project.Import{Foreign: true, GPU: g, Session: resource.PriorSession{Session: session}, Users: diff.ForeignProcesses(g, f.prior.Placements())}
	take := f.take(host, g, lineage)
	take.Whole = true
	read, _ := f.live.Host(host)
	found.Steps = adopting(f.prior, read.BootID, found.Session, nil, &take)
	return found, nil
}
