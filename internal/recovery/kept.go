package recovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// kept imports a container together with the slice or the whole GPU that it was given. It stays as it is until its
// session's block changes.
func (f *finder) kept(c *resource.Body, name, lineage string) (*project.Import, error) {
	if f.prior.Key == "" { // before the first apply: the hash needs the key that the state gets
		f.prior.Key = state.NewKey()
	}
	host, _ := f.live.Host(f.wanted.Host)
	gpu, slice, why := given(host, c.SliceID)
	var (
		found *project.Import
		err   error
	)
	switch {
	case why != "":
	case slice == "":
		found, err = f.wholeGPU(gpu, c, lineage)
	default:
		of := *f
		of.id = slice
		if found, err = of.slice(lineage); found == nil {
			why = isMissing(host)
		}
		f.rootOnly = of.rootOnly
	}
	if err != nil {
		return nil, fmt.Errorf("the container %s: %w", name, err)
	}
	if found == nil {
		return nil, prose.Advice{What: fmt.Sprintf("the container %s was given %s, %s", name, c.SliceID, why),
			Fix: fmt.Sprintf("leave out its import block, and name of %s; cosplay apply then creates the session with a new container, and %s stays as it is", f.wanted.Address, name)}
	}
	if f.rootOnly != nil {
		f.rootOnly = fmt.Errorf("the container %s: %w", name, f.rootOnly)
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

// isMissing says that a host lacks what a container was given.
func isMissing(host resource.Host) string {
	return fmt.Sprintf("which host %q does not have: its programs have no GPU", host.Name)
}

// isUnclear says that nothing proves which GPU a container has.
const isUnclear = "and cosplay cannot tell which GPU or slice that is"

// given finds what a container was given, in the forms of NVIDIA's runtime: a whole GPU by UUID or index, a slice by UUID or as
// GPU:MIG, or why it is neither. The second index changes with the slices of a GPU, and the container may have started when
// there were others: it is clear only where there is one slice.
func given(host resource.Host, id string) (gpu resource.GPU, slice, why string) {
	first, second, ofSlice := strings.Cut(id, ":")
	index, err := strconv.Atoi(first)
	switch upper := strings.ToUpper(id); {
	case strings.HasPrefix(upper, "MIG-"):
		return gpu, id, ""
	case err != nil && !strings.HasPrefix(upper, "GPU-"):
		return gpu, "", isUnclear
	}
	at := slices.IndexFunc(host.GPUs, func(g resource.GPU) bool {
		return err == nil && g.Index == index || strings.EqualFold(g.UUID, id)
	})
	switch {
	case at < 0:
		return gpu, "", isMissing(host)
	case !ofSlice:
		return host.GPUs[at], "", ""
	}
	made := host.GPUs[at].Slices
	switch n, err := strconv.Atoi(second); {
	case err != nil || len(made) > 1 || len(made) == 1 && made[0].UUID == "":
		return gpu, "", isUnclear
	case len(made) == 0 || n != 0:
		return gpu, "", isMissing(host)
	}
	return gpu, made[0].UUID, ""
}

// wholeGPU imports a whole GPU for a container that has it.
func (f *finder) wholeGPU(g resource.GPU, c *resource.Body, lineage string) (*project.Import, error) {
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
	session, err := f.resolved(resource.PriorSession{Session: resource.Session{Slice: resource.Slice{Host: host, GPU: g.UUID}}, Body: c})
	if err != nil {
		return nil, err
	}
	found := &project.Import{Foreign: true, GPU: g, Session: resource.PriorSession{Session: session}, Users: diff.ForeignProcesses(g, f.prior.Placements())}
	take := f.take(host, g, lineage)
	take.Whole = true
	f.onlyRoot(host, "GPU")
	read, _ := f.live.Host(host)
	found.Steps = adopting(f.prior, read.BootID, found.Session, nil, &take, f.doubts(host, g.UUID))
	return found, nil
}
