package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"

	"cosplay/internal/public"
)

// health is what the last check of the node has found.
type health struct {
	mutex   sync.Mutex
	gpus    []public.ExportedGPU // as they are published
	lost    map[string]bool      // GPUs that the driver no longer reports, by UUID
	broken  map[string]string    // why a project is not as it was prepared, by its name
	checked time.Time            // the last check that could read the GPUs
	every   time.Duration        // between checks
	asked   chan struct{}
}

func newHealth(gpus []public.ExportedGPU, every time.Duration) *health {
	return &health{gpus: gpus, every: every, broken: map[string]string{}, checked: time.Now(), asked: make(chan struct{}, 1)}
}

// ask asks for a check soon: a claim has changed the clock, or what is prepared.
func (h *health) ask() {
	select {
	case h.asked <- struct{}{}:
	default:
	}
}

// Reasons of events beside those of the condition, and the keys of taints.
const (
	drifted  = "Drifted"
	repaired = "Repaired"

	taintLost    = driverName + "/lost"
	taintDrifted = driverName + "/drifted"
)

const reportEvery = 10 * time.Second // to kubelet, for which health is unknown after 30 s

// keep checks the node in intervals, and when it is asked, and publishes what has changed.
func (d *driver) keep(ctx context.Context, publish func(resourceslice.DriverResources) error) {
	ticks := time.NewTicker(d.health.every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			d.repair(ctx)
		case <-d.health.asked:
		}
		d.look(ctx)
		if err := publish(d.published()); err != nil {
			klog.FromContext(ctx).Error(err, "The GPUs are not published")
		}
	}
}

// look reads the GPUs. One that the driver no longer reports stays published, as lost.
func (d *driver) look(ctx context.Context) {
	found, err := d.projects.gpus(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The GPUs cannot be read")
		return
	}
	now := map[string]public.ExportedGPU{}
	for _, g := range found {
		now[g.UUID] = g
	}
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	d.health.checked, d.health.lost = time.Now(), map[string]bool{}
	for i, g := range d.health.gpus {
		if fresh, there := now[g.UUID]; there {
			fresh.Index = g.Index // names of devices stay, also if a reboot numbers the GPUs in another way
			d.health.gpus[i] = fresh
		} else {
			d.health.lost[g.UUID] = true
		}
	}
}

// repair applies again each project that is not as it was prepared, as cosplay watch would.
func (d *driver) repair(ctx context.Context) {
	all, err := d.all()
	if err != nil {
		klog.FromContext(ctx).Error(err, "The projects of claims cannot be listed")
	}
	for _, one := range all {
		d.repairOne(ctx, one)
	}
}

func (d *driver) repairOne(ctx context.Context, p project) {
	c, err := p.read()
	if err != nil || len(c.Session) == 0 {
		return // it is being removed, and kubelet asks again
	}
	defer d.turns.take(c.gpus())()
	if c, err = p.read(); err != nil || len(c.Session) == 0 {
		return
	}
	var drift public.DriftReport
	switch err := p.ask(ctx, &drift, "drift"); {
	case drift.HasDrift || p.unfinished():
	case err != nil:
		klog.FromContext(ctx).Error(err, "Whether it is as it was prepared is not known", "project", p.name)
		return
	default:
		d.found(p, "")
		return
	}
	what := "its last change was not completed"
	if len(drift.Drift) > 0 {
		what = fmt.Sprintf("%s: %s, was %s", drift.Drift[0].Thing, drift.Drift[0].To, drift.Drift[0].From)
	}
	d.tell(ctx, p, corev1.EventTypeWarning, drifted, what)
	if strings.HasPrefix(p.name, ofGPU) {
		if err := p.write(p.beside(ctx, c.Session), c.Session); err != nil {
			klog.FromContext(ctx).Error(err, "It cannot be written", "project", p.name)
		}
	}
	if _, err := p.run(ctx, "apply", "--auto-approve"); err != nil {
		d.found(p, what+". Repairing it: "+err.Error())
		return
	}
	repairs.Inc()
	d.found(p, "")
	d.tell(ctx, p, corev1.EventTypeNormal, repaired, "Repaired: "+what+". Programs that have lost their GPU have to start again")
}

// found keeps why a project is not as it was prepared; "" if it is.
func (d *driver) found(p project, why string) {
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	d.health.broken[p.name] = why
	if why == "" {
		delete(d.health.broken, p.name)
	}
}

// tell makes an event of each claim of a project.
func (d *driver) tell(ctx context.Context, p project, kind, reason, text string) {
	klog.FromContext(ctx).Info(text, "project", p.name, "reason", reason)
	claims, err := d.client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Listing the claims")
		return
	}
	uids := p.claims()
	for i := range claims.Items {
		if slices.Contains(uids, claims.Items[i].UID) {
			d.recorder.Eventf(&claims.Items[i], nil, kind, reason, "Check", "%s", text)
		}
	}
}

// unhealthy are the devices that are not as they should be, by name, with the reason and the taint of each.
func (d *driver) unhealthy() (why map[string]string, taints map[string]resourceapi.DeviceTaint) {
	d.health.mutex.Lock()
	lost, broken := maps.Clone(d.health.lost), maps.Clone(d.health.broken)
	d.health.mutex.Unlock()
	why, taints = map[string]string{}, map[string]resourceapi.DeviceTaint{}
	for name, text := range broken {
		c, _ := (project{d.projects, name}).read()
		for device, at := range d.placements {
			if c.has(at) {
				why[device], taints[device] = text, resourceapi.DeviceTaint{Key: taintDrifted, Effect: resourceapi.DeviceTaintEffectNoSchedule}
			}
		}
	}
	for device, at := range d.placements {
		if lost[at.gpu.UUID] {
			why[device] = "the driver no longer reports " + at.gpu.UUID
			taints[device] = resourceapi.DeviceTaint{Key: taintLost, Effect: resourceapi.DeviceTaintEffectNoExecute}
		}
	}
	return why, taints
}

// has is whether a configuration has a session on a placement.
func (c configuration) has(at placement) bool {
	for _, s := range c.Session {
		if s.Slice == at.slice() && (s.GPU == at.gpu.UUID || s.GPUs > 0 && slices.Contains(c.gpus(), at.gpu.UUID)) {
			return true
		}
	}
	return false
}

// published is what the node publishes now.
func (d *driver) published() resourceslice.DriverResources {
	_, taints := d.unhealthy()
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	return resources(d.node, d.health.gpus, d.sharing, taints)
}

// WatchHealthStatus tells kubelet which devices are not as they should be.
func (d *driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	for {
		report := d.healthReport()
		select {
		case <-ctx.Done():
			return nil
		case reports <- report:
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
	for name := range d.placements {
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
