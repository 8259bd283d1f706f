package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"cosplay/catalog"
	"cosplay/internal/public"
)

// wanted is what a request of a claim has, as the scheduler has allocated it: a session.
type wanted struct {
	parameters
	placements []placement // several: whole GPUs
	results    []resourceapi.DeviceRequestAllocationResult
	shared     int64 // bytes of the memory of a GPU that the claim shares; 0 if it has its devices alone
}

// sessionName is that of a request of a claim.
func sessionName(uid types.UID, request int) string {
	return fmt.Sprintf("%s%s-%d", ofClaim, uid, request)
}

// session is the block of what is wanted.
func (w wanted) session(sharing string) (session, error) {
	s := session{Target: w.Target, Fraction: w.Fraction, Strict: w.Strict, GPU: w.placements[0].gpu.UUID, Slice: w.placements[0].slice()}
	if w.Tolerance != "" || w.MaxError != "" {
		s.Fit = &fit{w.Tolerance, w.MaxError}
	}
	if s.Slice == "" {
		s.Sharing = "exclusive"
	}
	if len(w.placements) > 1 {
		s.GPU, s.GPUs = "", len(w.placements)
		if i := slices.IndexFunc(w.placements, func(p placement) bool { return !p.whole() }); i >= 0 {
			return s, fmt.Errorf("one request has %d devices, among them the slice %s: a CUDA program finds only one MIG device. Fix: ask for one device, or for whole GPUs",
				len(w.placements), w.placements[i].slice())
		}
	}
	if w.shared == 0 {
		return s, nil
	}
	s.Sharing = sharing
	target, err := catalog.Target(w.Target)
	if w.Fraction != "" || err != nil {
		return s, fmt.Errorf("%q cannot share a GPU: a claim that shares one names a target of the catalog", w.Fraction+w.Target)
	}
	if needs := int64(target.MemoryMiB) << 20; w.shared < needs {
		return s, fmt.Errorf("its part of the GPU's memory has %d MiB, and %s has %d MiB. Fix: capacity: {requests: {memory: %dMi}}", w.shared>>20, target.Key, target.MemoryMiB, target.MemoryMiB)
	}
	return s, nil
}

// prepare creates the sessions of a claim, or finds them as they are, in the order of what is wanted.
func (p projects) prepare(ctx context.Context, uid types.UID, all []wanted) ([]public.SessionStatus, error) {
	if !uidForm.MatchString(string(uid)) {
		return nil, fmt.Errorf("%.40q is not the UID of a claim", uid)
	}
	claim, several, own := project{p, ofClaim + string(uid)}, p.host(), map[string]session{}
	shared := map[string]map[string]session{} // by the UUID of the GPU
	for i, w := range all {
		s, err := w.session(p.sharingOf(w.placements[0].gpu.UUID))
		if err != nil {
			return nil, err
		}
		if len(w.placements) > 1 && len(all) > 1 {
			return nil, errors.New("a request for several GPUs cannot be beside another request of its claim. Fix: make it a claim, which the pod names too")
		}
		if w.shared > 0 {
			if shared[s.GPU] == nil {
				shared[s.GPU] = map[string]session{}
			}
			shared[s.GPU][sessionName(uid, i)] = s
			continue
		}
		for _, at := range w.placements {
			several.GPUs = append(several.GPUs, at.gpu.UUID)
		}
		own[sessionName(uid, i)] = s
	}
	slices.Sort(several.GPUs)
	several.GPUs = slices.Compact(several.GPUs)
	if slices.ContainsFunc(all, func(w wanted) bool { return !w.placements[0].whole() }) {
		several.Manage = settings("power") // the first claim's limit would slow all that come later
	}
	for _, other := range p.unfinished(gpusOf(all)) {
		if other.name != claim.name {
			_ = other.change(ctx, "apply") // why it fails, its claim's own call reports
		}
	}
	if len(own) > 0 {
		if err := claim.write(several, own); err != nil {
			return nil, err
		}
		if err := claim.change(ctx, "apply"); err != nil {
			return nil, err
		}
	}
	for gpu, sessions := range shared {
		if err := (project{p, ofGPU + gpu}).join(ctx, sessions); err != nil {
			return nil, err
		}
	}
	return p.made(ctx, uid, all)
}

// made are the sessions of a claim as they are, in the order of what is wanted.
func (p projects) made(ctx context.Context, uid types.UID, all []wanted) ([]public.SessionStatus, error) {
	found := map[string]public.SessionStatus{}
	having, err := p.having(uid)
	for _, one := range having {
		var now public.Sessions
		err = errors.Join(err, one.ask(ctx, &now, "ps"))
		for _, s := range now.Sessions {
			found[s.Address] = s
		}
	}
	ordered := make([]public.SessionStatus, len(all))
	for i := range all {
		one, exists := found["session."+sessionName(uid, i)]
		if err == nil && (!exists || one.Device == "") {
			err = fmt.Errorf("%s has no device", sessionName(uid, i))
		}
		ordered[i] = one
	}
	return ordered, err
}

// join adds sessions to a GPU that claims share, or finds them there. If they are refused, the others stay as they are.
func (p project) join(ctx context.Context, sessions map[string]session) error {
	before, err := p.read()
	if err != nil {
		return err
	}
	others := maps.Clone(before.Session)
	maps.DeleteFunc(others, func(name string, _ session) bool { _, again := sessions[name]; return again })
	all := maps.Clone(sessions)
	maps.Copy(all, others)
	h, err := p.beside(ctx, others)
	if err == nil {
		err = p.write(h, all)
	}
	if err != nil {
		return err
	}
	if err := p.change(ctx, "apply"); err != nil {
		if ctx.Err() != nil {
			return err // kubelet asks again, and goes on from here
		}
		if failed := p.leave(context.WithoutCancel(ctx), others); failed != nil {
			return fmt.Errorf("%w; removing it: %w", err, failed)
		}
		return err
	}
	return nil
}

// leave keeps some sessions of a GPU that claims share.
func (p project) leave(ctx context.Context, kept map[string]session) error {
	if len(kept) == 0 {
		return p.destroy(ctx)
	}
	h, err := p.beside(ctx, kept)
	if err == nil {
		err = p.write(h, kept)
	}
	if err == nil {
		err = p.change(ctx, "apply")
	}
	return err
}

// beside is the host for a change beside sessions that run: the GPU's clock stays as it is for them. A lock that was lifted
// is set again. None gets a slice, to which MPS may come closer: the scheduler divides the memory of the whole GPU.
func (p project) beside(ctx context.Context, others map[string]session) (host, error) {
	h := p.host()
	h.Manage = settings("slices")
	if len(others) == 0 {
		return h, nil
	}
	var now public.Status
	if err := p.ask(ctx, &now, "status"); err != nil && len(now.Hosts) == 0 {
		return h, err
	}
	for _, at := range now.Hosts {
		for _, gpu := range at.GPUs {
			if p.name == ofGPU+gpu.UUID && gpu.ClockLock != "lifted" {
				h.Manage = settings("slices", "clocks")
			}
		}
	}
	return h, nil
}

// settings are those that cosplay may change, in the words of manage, without some.
func settings(without ...string) []string {
	all := []string{"mig-mode", "slices", "clocks", "power", "persistence", "compute-mode", "timeslice"}
	return slices.DeleteFunc(all, func(s string) bool { return slices.Contains(without, s) })
}

// unfinished are the projects on these GPUs whose last change was killed: one that has acquired a GPU and not set its modes yet
// keeps all others off it.
func (p projects) unfinished(gpus []string) []project {
	all, _ := p.all()
	return slices.DeleteFunc(all, func(one project) bool {
		return !one.unfinished() || !slices.ContainsFunc(one.gpus(), func(gpu string) bool { return slices.Contains(gpus, gpu) })
	})
}

// touches are what preparing a claim changes, or removing it: the claim, the GPUs that it has or had in part, those that it
// is to have, and those of the projects that are finished first.
func (p projects) touches(uid types.UID, gpus []string) []string {
	having, _ := p.having(uid)
	all := append([]string{ofClaim + string(uid)}, gpus...)
	for _, one := range append(having, p.unfinished(gpus)...) {
		all = append(all, one.gpus()...)
	}
	return all
}

// having are the projects that have something of a claim.
func (p projects) having(uid types.UID) ([]project, error) {
	all, err := p.all()
	return slices.DeleteFunc(all, func(one project) bool { return !slices.Contains(one.claims(), uid) }), err
}

// remove destroys the sessions of a claim. A claim without any is no error.
func (p projects) remove(ctx context.Context, uid types.UID) error {
	if !uidForm.MatchString(string(uid)) {
		return fmt.Errorf("%.40q is not the UID of a claim", uid)
	}
	having, err := p.having(uid)
	for _, one := range having {
		err = errors.Join(err, one.without(ctx, uid))
	}
	return err
}

// without removes what a project has of a claim, also what an earlier call has removed from its configuration alone.
func (p project) without(ctx context.Context, uid types.UID) error {
	if p.name == ofClaim+string(uid) {
		return p.destroy(ctx)
	}
	c, err := p.read()
	if err != nil {
		return err
	}
	maps.DeleteFunc(c.Session, func(name string, _ session) bool { return strings.HasPrefix(name, ofClaim+string(uid)) })
	return p.leave(ctx, c.Session)
}

// known are the claims that have something here.
func (p projects) known() (all []types.UID, err error) {
	found, err := p.all()
	for _, one := range found {
		all = append(all, one.claims()...)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

// gpusOf are the UUIDs of the GPUs of what is wanted.
func gpusOf(all []wanted) (gpus []string) {
	for _, w := range all {
		for _, at := range w.placements {
			gpus = append(gpus, at.gpu.UUID)
		}
	}
	return gpus
}
