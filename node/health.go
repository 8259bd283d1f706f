package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"

	"cosplay/internal/public"
)

// health is what the last check of the node has found.
type health struct {
	mutex   sync.Mutex
	gpus    []public.ExportedGPU // that are published, also those that the driver no longer reports
	missed  map[string]int       // in how many checks the driver has not reported a GPU, by UUID
	broken  map[string]string    // why a project is not as it was prepared, by its name
	owed    []types.UID          // claims whose status has to be written again
	busy    sync.Map             // what once does now
	checked time.Time            // the last check that could read the GPUs
	every   time.Duration        // between checks
	asked   chan struct{}
}

func newHealth(gpus []public.ExportedGPU, every time.Duration) *health {
	return &health{gpus: gpus, every: every, broken: map[string]string{}, missed: map[string]int{}, checked: time.Now(), asked: make(chan struct{}, 1)}
}

// ask asks for a check soon: a claim has changed the clock, or what is prepared.
func (h *health) ask() {
	select {
	case h.asked <- struct{}{}:
	default:
	}
}

// owe has the statuses of claims written again at the next check.
func (h *health) owe(uids ...types.UID) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.owed = append(h.owed, uids...)
}

// once does something, unless an earlier check does it still.
func (h *health) once(name string, do func()) {
	if _, busy := h.busy.LoadOrStore(name, true); !busy {
		defer h.busy.Delete(name)
		do()
	}
}

// Reasons of events, the keys of taints, and how often kubelet gets a report.
const (
	drifted      = "Drifted"
	repaired     = "Repaired"
	taintLost    = driverName + "/lost"
	taintDrifted = driverName + "/drifted"
	reportEvery  = 10 * time.Second // to kubelet, for which health is unknown after 30 s
)

// keep checks the node in intervals, and reads its GPUs also when it is asked, and publishes what has changed. A check that takes
// long delays no other, and when the driver stops, what it has begun ends.
func (d *driver) keep(ctx context.Context, publish func(resourceslice.DriverResources) error) {
	ticks := time.NewTicker(d.health.every)
	defer ticks.Stop()
	var checks sync.WaitGroup
	defer checks.Wait()
	known, _ := d.known()
	d.health.owe(known...) // a driver before this one may have been killed before it wrote them
	checks.Go(func() { d.check(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			d.look(ctx, 1)
			checks.Go(func() { d.check(ctx) })
		case <-d.health.asked:
			d.look(ctx, 0)
		}
		if err := publish(d.published()); err != nil {
			klog.FromContext(ctx).Error(err, "The GPUs are not published")
		}
	}
}

// check removes what is left of deleted claims and repairs what the others have, and then asks for the GPUs to be read.
func (d *driver) check(ctx context.Context) {
	defer d.health.ask()
	if err := d.sweep(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "What deleted claims have left is not removed yet")
	}
	d.repair(ctx)
	d.health.mutex.Lock()
	owed := d.health.owed
	d.health.owed = nil
	d.health.mutex.Unlock()
	d.tell(ctx, owed, "", "", "The status of claims is written again")
}

// lostAfter is how many checks have to miss a GPU before its pods are evicted: one reading can fail.
const lostAfter = 2

// look reads the GPUs. One that the driver no longer reports stays published, as lost. A look that is no check counts 0.
func (d *driver) look(ctx context.Context, counts int) {
	found, err := d.projects.gpus(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The GPUs cannot be read")
		return
	}
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	d.health.checked = time.Now()
	for _, g := range d.health.gpus {
		d.health.missed[g.UUID] += counts
	}
	for _, g := range found {
		d.health.missed[g.UUID] = 0
		if i := slices.IndexFunc(d.health.gpus, func(known public.ExportedGPU) bool { return known.UUID == g.UUID }); i >= 0 {
			d.health.gpus[i] = g
		} else {
			d.health.gpus = d.remember(append(d.health.gpus, g))
		}
	}
}

// repair applies again each project that is not as it was prepared, as cosplay watch would, and beside each other.
func (d *driver) repair(ctx context.Context) {
	all, err := d.all()
	if err != nil {
		klog.FromContext(ctx).Error(err, "The projects of claims cannot be listed")
	}
	together(all, func(_ int, one project) { d.health.once(one.name, func() { d.repairOne(ctx, one) }) })
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	maps.DeleteFunc(d.health.broken, func(name, _ string) bool { return !slices.Contains(all, project{d.projects, name}) })
}

// repairOne repairs a project, and then makes events of it: these wait for the API server, and no claim waits for them.
func (d *driver) repairOne(ctx context.Context, p project) {
	leave := d.turns.take(func() []string { return append(p.gpus(), p.name) })
	what, failed := d.repairProject(ctx, p)
	leave()
	switch {
	case what == "":
	case failed == nil:
		repairs.Inc()
		d.found(p, "")
		d.tell(ctx, p.claims(), corev1.EventTypeNormal, repaired, "Repaired: "+what+". Programs that have lost their GPU have to start again")
	case d.found(p, what+". Repairing it: "+failed.Error()):
		d.tell(ctx, p.claims(), corev1.EventTypeWarning, drifted, what+". Repairing it: "+failed.Error())
	}
}

// repairProject applies a project again that is not as it was prepared. what differs is "" if it is, or if that is not known.
func (d *driver) repairProject(ctx context.Context, p project) (what string, failed error) {
	c, err := p.read()
	if err == nil && len(c.Session) == 0 && strings.HasPrefix(p.name, ofGPU) {
		err = p.destroy(ctx) // a removal was killed
	}
	if err != nil || len(c.Session) == 0 {
		return "", nil // it is being removed, and kubelet asks again
	}
	var drift public.DriftReport
	switch err := p.ask(ctx, &drift, "drift"); {
	case drift.HasDrift || p.unfinished():
	case err != nil:
		klog.FromContext(ctx).Error(err, "Whether it is as it was prepared is not known", "project", p.name)
		return "", nil
	default:
		d.found(p, "")
		return "", nil
	}
	what = "its last change was not completed"
	if len(drift.Drift) > 0 {
		what = sessions.ReplaceAllString(fmt.Sprintf("%s: %s, was %s", drift.Drift[0].Thing, drift.Drift[0].To, drift.Drift[0].From), "the session")
	}
	if strings.HasPrefix(p.name, ofGPU) {
		h, err := p.beside(ctx, c.Session)
		if err == nil {
			err = p.write(h, c.Session)
		}
		if err != nil {
			return what, err
		}
	}
	if failed = p.change(ctx, "apply"); failed == nil && !drift.HasDrift {
		d.found(p, "")
		return "", nil // it was as it should be, and nothing had kept that
	}
	return what, failed
}

// found keeps why a project is not as it was prepared, "" if it is, and returns whether that is new.
func (d *driver) found(p project, why string) bool {
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	before := d.health.broken[p.name]
	d.health.broken[p.name] = why
	if why == "" {
		delete(d.health.broken, p.name)
	}
	if why == "" && before != "" {
		d.health.owed = append(d.health.owed, p.claims()...)
	}
	return why != before
}

// tell writes what claims have now to their statuses, with an event if there is one. A status that cannot be written is owed.
func (d *driver) tell(ctx context.Context, uids []types.UID, kind, reason, text string) {
	if len(uids) == 0 {
		return
	}
	klog.FromContext(ctx).Info(text, "claims", uids, "reason", reason)
	claims, err := d.claims(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The status of claims is not written")
		d.health.owe(uids...)
	}
	why, _ := d.unhealthy()
	for i := range claims {
		claim := &claims[i]
		if !slices.Contains(uids, claim.UID) {
			continue
		}
		if reason != "" {
			d.recorder.Eventf(claim, nil, kind, reason, "Check", "%s", cut(text, noteMost))
		}
		all, err := d.wanted(claim)
		if err != nil {
			continue // it is not here any more, or was refused
		}
		made, err := d.made(ctx, claim.UID, all)
		if broken := why[all[0].results[0].Device]; broken != "" {
			d.report(ctx, claim, all, nil, drifted, errors.New(broken))
		} else if err == nil {
			d.report(ctx, claim, all, made, prepared, nil)
		}
	}
}

// lost is whether the driver does not report a GPU any more.
func (d *driver) lost(gpus []string) bool {
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	return slices.ContainsFunc(gpus, func(uuid string) bool { return d.health.missed[uuid] >= lostAfter })
}

// unhealthy are the devices that are not as they should be, by name, with the reason and the taint of each.
func (d *driver) unhealthy() (why map[string]string, taints map[string]resourceapi.DeviceTaint) {
	d.health.mutex.Lock()
	missed, broken := maps.Clone(d.health.missed), maps.Clone(d.health.broken)
	d.health.mutex.Unlock()
	why, taints = map[string]string{}, map[string]resourceapi.DeviceTaint{}
	placements := d.placements()
	for name, text := range broken {
		c, _ := (project{d.projects, name}).read()
		for device, at := range placements {
			on := func(s session) bool {
				return s.Slice == at.slice() && (s.GPU == at.gpu.UUID || s.GPUs > 0 && slices.Contains(c.Host[hostName].GPUs, at.gpu.UUID))
			}
			if slices.ContainsFunc(slices.Collect(maps.Values(c.Session)), on) {
				why[device], taints[device] = text, resourceapi.DeviceTaint{Key: taintDrifted, Effect: resourceapi.DeviceTaintEffectNoSchedule}
			}
		}
	}
	for device, at := range placements {
		if missed[at.gpu.UUID] >= lostAfter {
			why[device] = "the driver no longer reports " + at.gpu.UUID
			taints[device] = resourceapi.DeviceTaint{Key: taintLost, Effect: resourceapi.DeviceTaintEffectNoExecute}
		}
	}
	return why, taints
}

// published is what the node publishes now.
func (d *driver) published() resourceslice.DriverResources {
	_, taints := d.unhealthy()
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	return resources(d.node, d.health.gpus, d.sharingOf, taints)
}

// WatchHealthStatus tells kubelet which devices are not as they should be.
func (d *driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case reports <- d.healthReport():
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reportEvery):
		}
	}
}

func (d *driver) healthReport() (report kubeletplugin.DeviceHealthReport) {
	why, _ := d.unhealthy()
	unread := d.readable()
	for name := range d.placements() {
		one := kubeletplugin.DeviceHealth{PoolName: d.node, DeviceName: name, Health: kubeletplugin.HealthStatusHealthy, LastUpdated: time.Now(), Message: why[name]}
		switch {
		case unread != nil:
			one.Health, one.Message = kubeletplugin.HealthStatusUnknown, unread.Error()
		case one.Message != "":
			one.Health = kubeletplugin.HealthStatusUnhealthy
		}
		report.Devices = append(report.Devices, one)
	}
	return report
}

// readable fails if the GPUs could not be read for several checks.
func (d *driver) readable() error {
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	if since := time.Since(d.health.checked); since > 3*d.health.every {
		return fmt.Errorf("the GPUs could not be read for %s", since.Round(time.Second))
	}
	return nil
}

// proceeds fails if no command of cosplay has ended for longer than one may run: the GPUs are read in intervals.
func (d *driver) proceeds() error {
	if since := time.Since(time.Unix(lastRun.Load(), 0)); since > d.health.every+runTime+2*waitTime {
		return fmt.Errorf("no command of cosplay has ended for %s", since.Round(time.Second))
	}
	return nil
}
