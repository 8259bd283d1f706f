package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cosplay/internal/agent"
	"cosplay/internal/config"
	"cosplay/internal/machine"
	"cosplay/internal/observe"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// NoConfigError is the error of a folder without a configuration.
type NoConfigError struct {
	prose.Advice
	Bare bool // it has no state either, and the user names none: it is no project
}

// Unwrap returns the advice, so that prose.AdviceOf finds it.
func (e *NoConfigError) Unwrap() error { return e.Advice }

func noConfig(p *Project, o Options) error {
	_, err := os.Lstat(p.Store.Path)
	return &NoConfigError{Bare: os.IsNotExist(err) && !p.Unfinished() && o.StatePath == "",
		Advice: prose.Advice{What: fmt.Sprintf("there is no *.hcl file in %s", p.Dir), Fix: "cosplay init writes one"}}
}

// ReadMachine reads the GPUs and the ledger of this machine, for a user without a project. If the GPUs cannot be read,
// it returns what the ledger has and the reason; the error is of a machine without both, and without detached sessions on
// simulated hosts.
func (p *Project) ReadMachine(ctx context.Context) (live resource.Live, unread, err error) {
	c := p.Intent.Hosts[0]
	h, err := p.Machine.Open(c)
	if err != nil {
		return live, nil, err
	}
	if live, unread = observe.Read(ctx, []observe.Source{h.Hardware()}, machine.Complete); unread == nil {
		return live, nil, nil
	}
	pages, _, err := h.Agent.Ledger(ctx, "")
	if err != nil {
		return live, unread, err
	}
	if len(pages) == 0 && len(simulated()) == 0 {
		why := unread.Error()
		if failed, is := errors.AsType[*agent.Error](unread); is {
			why = failed.Message
		}
		return live, unread, prose.Advice{What: fmt.Sprintf("there is no *.hcl file in %s, and no GPU of this machine can be read: %s", p.Dir, why),
			Fix: "cosplay init writes a configuration, of a simulated host where there is no GPU; cosplay doctor says what the machine lacks", Cause: unread}
	}
	return resource.Live{Hosts: []resource.Host{{Name: config.LocalHost, Ledger: pages}}}, unread, nil
}

// Tenants are the sessions of the projects that hold GPUs, by lineage, as far as the user may read their states, and
// when these sessions expire.
type Tenants struct {
	Sessions map[string][]resource.PriorSession
	Ends     map[string]map[resource.Address]resource.End
	Runs     map[string]string // the folders in which the projects were started that are a cosplay run
	Hidden   map[string]error  // why a state was not read; fs.ErrPermission if its user and root may read it

	Simulated []resource.Holder // the projects of the user's detached sessions on simulated hosts, which no ledger has
}

// ReadTenants reads the states that the ledger names, and those of detached sessions on simulated hosts. Nothing is
// written: they may belong to other users.
func ReadTenants(live resource.Live) Tenants {
	all := Tenants{map[string][]resource.PriorSession{}, map[string]map[resource.Address]resource.End{}, map[string]string{}, map[string]error{}, nil}
	for _, h := range Holders(live) {
		if dir, once := FolderOfRun(h.State); once {
			all.Runs[h.Lineage] = dir
		}
		prior, err := stateOf(h)
		if err != nil {
			all.Hidden[h.Lineage] = err
			continue
		}
		prior.Sessions = slices.DeleteFunc(prior.Sessions, func(s resource.PriorSession) bool { return !holdsOne(live, h, s) })
		all.add(h, prior)
	}
	for _, one := range simulated() {
		_, known := all.Sessions[one.Lineage] // it was moved to the GPUs of this machine
		switch {
		case known:
			continue
		case one.unread != nil:
			all.Hidden[one.Lineage] = one.unread
		default:
			all.add(one.Holder, one.prior)
		}
		all.Simulated = append(all.Simulated, one.Holder)
	}
	return all
}

// add adds the sessions of a state.
func (t *Tenants) add(h resource.Holder, prior resource.Prior) {
	ends := map[resource.Address]resource.End{}
	for i := range prior.Sessions {
		s := &prior.Sessions[i]
		s.UpAt = min(s.UpAt, Now()) // as trust has it, without a record
		var last resource.Moment
		if info, err := os.Stat(activityFile(activityDir(filepath.Dir(h.State)), *s, prior)); err == nil {
			last = min(resource.Moment(info.ModTime().Unix()), Now())
		}
		if end := s.End(last); end.At != 0 && s.Body != nil {
			ends[s.Address] = end
		}
	}
	t.Sessions[h.Lineage], t.Ends[h.Lineage] = prior.Sessions, ends
}

// detached is the project of a detached session on a simulated host, which holds no GPU of this machine.
type detached struct {
	resource.Holder // its lineage is the path of a state that cannot be read
	prior           resource.Prior
	unread          error
}

// simulated are those of the user that have a session.
func simulated() (all []detached) {
	for _, name := range DetachedNames() {
		dir := filepath.Join(machine.Detached(), name)
		made, err := os.Stat(filepath.Join(dir, machine.ScratchDir, machine.SimsDir))
		if err != nil {
			continue
		}
		one := detached{Holder: resource.Holder{State: filepath.Join(dir, state.FileName), User: machine.UserName(), Since: made.ModTime().UTC().Format(time.RFC3339)}}
		one.prior, _, one.unread = state.Store{Path: one.State}.LoadOwned(mostOfOthers)
		one.Lineage = cmp.Or(one.prior.Lineage, one.State)
		if one.unread != nil && !errors.Is(one.unread, fs.ErrNotExist) || len(one.prior.Sessions) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// mostOfOthers is the size, in bytes, above which cosplay does not read the state of another user.
const mostOfOthers = 16 << 20

// stateOf reads the state of a holder. Any user can name any path in the ledger: the file must be that user's.
func stateOf(h resource.Holder) (prior resource.Prior, err error) {
	prior, uid, err := state.Store{Path: h.State}.LoadOwned(mostOfOthers)
	switch {
	case err == nil && h.UID != nil && uid != *h.UID:
		err = fmt.Errorf("it belongs to UID %d, and the project to UID %d", uid, *h.UID)
	case err == nil && prior.Lineage != h.Lineage:
		err = errors.New("it is the state of another project")
	}
	return prior, err
}

// holdsOne reports whether a session is on a GPU that its project holds here: the project may have other hosts.
func holdsOne(live resource.Live, h resource.Holder, s resource.PriorSession) bool {
	return slices.ContainsFunc(s.On(), func(gpu resource.GPUKey) bool {
		page, _ := live.Page(live.Hosts[0].Name, gpu.UUID)
		_, holds := page.Holder(h.Lineage)
		return holds
	})
}
