package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"cosplay/internal/public"
)

// driver answers kubelet: it prepares what the scheduler has allocated, and removes it.
type driver struct {
	projects
	node     string
	client   kubernetes.Interface
	recorder events.EventRecorder
	turns    turns
	health   *health
}

func newDriver(p projects, node string, client kubernetes.Interface, recorder events.EventRecorder, gpus []public.ExportedGPU, every time.Duration) *driver {
	return &driver{projects: p, node: node, client: client, recorder: recorder, turns: turns{map[string]bool{}, sync.NewCond(&sync.Mutex{})}, health: newHealth(p.remember(gpus), every)}
}

// placements are those that are published, by name.
func (d *driver) placements() map[string]placement {
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	all := map[string]placement{}
	for _, g := range d.health.gpus {
		for _, one := range placementsOf(g) {
			all[one.name()] = one
		}
	}
	return all
}

// PrepareResourceClaims prepares claims beside each other: what one waits for, or why it fails, concerns no other.
func (d *driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := make([]kubeletplugin.PrepareResult, len(claims))
	together(claims, func(i int, claim *resourceapi.ResourceClaim) { results[i] = d.prepareClaim(ctx, claim) })
	prepared := map[types.UID]kubeletplugin.PrepareResult{}
	for i, claim := range claims {
		prepared[claim.UID] = results[i]
	}
	return prepared, nil
}

// together does something with each of all, and waits until that is done.
func together[T any](all []T, do func(int, T)) {
	var each sync.WaitGroup
	for i, one := range all {
		each.Go(func() { do(i, one) })
	}
	each.Wait()
}

func (d *driver) prepareClaim(ctx context.Context, claim *resourceapi.ResourceClaim) (result kubeletplugin.PrepareResult) {
	start := time.Now()
	all, err := d.wanted(claim)
	var made []public.SessionStatus
	if err == nil {
		leave := d.turns.take(func() []string { return d.touches(claim.UID, gpusOf(all)) })
		if err = ctx.Err(); err == nil { // kubelet waits for no call for ever, and asks again
			made, err = d.prepare(ctx, claim.UID, all)
		}
		leave()
	}
	counted(preparing, start, err)
	if err != nil {
		d.recorder.Eventf(claim, nil, corev1.EventTypeWarning, refused, "Prepare", "%s", cut(err.Error(), noteMost))
	}
	d.report(ctx, claim, all, made, refused, err)
	d.health.ask()
	if err != nil {
		result.Err = fmt.Errorf("claim %s/%s: %w", claim.Namespace, claim.Name, err)
		return result
	}
	for i, w := range all {
		ids := []string{made[i].Device} // of several GPUs, too
		for _, r := range w.results {
			result.Devices = append(result.Devices, kubeletplugin.Device{Requests: []string{r.Request}, PoolName: d.node, DeviceName: r.Device, CDIDeviceIDs: ids, ShareID: r.ShareID})
			ids = nil
		}
	}
	return result
}

// wanted are the sessions that a claim has here, one for each of its requests.
func (d *driver) wanted(claim *resourceapi.ResourceClaim) (all []wanted, err error) {
	if claim.Status.Allocation == nil {
		return nil, errors.New("it is not allocated")
	}
	placements := d.placements()
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.Driver != driverName {
			continue
		}
		at, published := placements[r.Device]
		if r.Pool != d.node || !published {
			return nil, fmt.Errorf("the device %.80q of the pool %.80q is none of this node. Fix: delete the pods of the claim, so that it is allocated again", r.Device, r.Pool)
		}
		if r.AdminAccess != nil && *r.AdminAccess { // the scheduler gives the device to another claim, too
			return nil, errors.New("it has its device by adminAccess, which gives no session. Fix: leave adminAccess out of its request")
		}
		if last := len(all) - 1; last >= 0 && all[last].results[0].Request == r.Request {
			if part, shares := r.ConsumedCapacity[capacityMemory]; all[last].shared > 0 || shares && part.Value() < at.memory() {
				return nil, errors.New("one request has parts of several GPUs. Fix: ask for one device, or for whole GPUs")
			}
			all[last].placements, all[last].results = append(all[last].placements, at), append(all[last].results, r)
			continue
		}
		p, err := of(claim, r.Request)
		if err != nil {
			return nil, err
		}
		w := wanted{parameters: p, placements: []placement{at}, results: []resourceapi.DeviceRequestAllocationResult{r}}
		if part, shares := r.ConsumedCapacity[capacityMemory]; shares && r.ShareID != nil && part.Value() < at.memory() {
			if w.shared = part.Value(); w.shared <= 0 || d.sharingOf(at.gpu.UUID) == "" {
				return nil, fmt.Errorf("it has %s of the GPU's memory. Fix: ask for what its target has, of a GPU that claims share", part.String())
			}
		}
		all = append(all, w)
	}
	if len(all) == 0 {
		return nil, errors.New("it has no device of " + driverName)
	}
	return all, nil
}

// UnprepareResourceClaims removes what was prepared for claims, which may be deleted already.
func (d *driver) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	failed := make([]error, len(claims))
	together(claims, func(i int, claim kubeletplugin.NamespacedObject) {
		start := time.Now()
		failed[i] = d.removeClaim(ctx, claim.UID, false)
		counted(removing, start, failed[i])
	})
	d.health.ask()
	removed := map[types.UID]error{}
	for i, claim := range claims {
		removed[claim.UID] = failed[i]
	}
	return removed, nil
}

// removeClaim removes what a claim has, or has left if it is deleted, unless it was allocated again while this waited.
func (d *driver) removeClaim(ctx context.Context, uid types.UID, deleted bool) error {
	defer d.turns.take(func() []string { return d.touches(uid, nil) })()
	if err := ctx.Err(); err != nil {
		return err
	}
	if deleted {
		if claims, err := d.claims(ctx); err != nil || d.here(claims, uid) {
			return err
		}
		klog.FromContext(ctx).Info("Removing the devices of a claim that was deleted", "uid", uid)
	}
	lost := d.lost(d.touches(uid, nil))
	err := d.remove(ctx, uid)
	if err != nil && lost {
		klog.FromContext(ctx).Error(err, "What a claim has left on a GPU that is lost is removed when the GPU is back", "uid", uid)
		err = nil // its pod would wait for a GPU that can be away for ever
	}
	return err
}

// sweep removes what claims have left that are not allocated to this node any more: they were deleted while the driver
// was down, or when it could not remove what they had.
func (d *driver) sweep(ctx context.Context) error {
	known, err := d.known()
	if err != nil || len(known) == 0 {
		return err
	}
	claims, err := d.claims(ctx)
	if err != nil {
		return err
	}
	failures := make([]error, len(known))
	together(known, func(i int, uid types.UID) {
		if !d.here(claims, uid) {
			d.health.once(string(uid), func() { failures[i] = d.removeClaim(ctx, uid, true) })
		}
	})
	return errors.Join(failures...)
}

// claims are those of the cluster.
func (d *driver) claims(ctx context.Context) ([]resourceapi.ResourceClaim, error) {
	ctx, cancel := context.WithTimeout(ctx, reportEvery)
	defer cancel()
	all, err := d.client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the claims: %w", err)
	}
	return all.Items, nil
}

// here is whether a claim is allocated to this node, for a pod.
func (d *driver) here(claims []resourceapi.ResourceClaim, uid types.UID) bool {
	return slices.ContainsFunc(claims, func(c resourceapi.ResourceClaim) bool {
		return c.UID == uid && c.Status.Allocation != nil && len(c.Status.ReservedFor) > 0 && slices.ContainsFunc(c.Status.Allocation.Devices.Results,
			func(r resourceapi.DeviceRequestAllocationResult) bool {
				return r.Driver == driverName && r.Pool == d.node
			})
	})
}

// The condition of a device of a claim, with its reasons, which are those of the events, too.
const (
	ready    = "Ready"
	prepared = "Prepared"
	refused  = "Refused"
)

// report writes to the claim's status what became of it, also if kubelet no longer waits. If it cannot, the devices are not less
// prepared: the next check tries again.
func (d *driver) report(ctx context.Context, claim *resourceapi.ResourceClaim, all []wanted, made []public.SessionStatus, reason string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportEvery)
	defer cancel()
	condition := metav1.Condition{Type: ready, Status: metav1.ConditionTrue, Reason: prepared, LastTransitionTime: metav1.Now(), ObservedGeneration: claim.Generation}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reason, cut(err.Error(), saidMost)
	}
	var devices []resourceapi.AllocatedDeviceStatus
	for i, w := range all {
		var data *runtime.RawExtension
		if err == nil {
			data = &runtime.RawExtension{Raw: figures(made[i])}
		}
		for _, r := range w.results {
			one := resourceapi.AllocatedDeviceStatus{Driver: driverName, Pool: d.node, Device: r.Device, Conditions: []metav1.Condition{condition}, Data: data}
			if r.ShareID != nil {
				one.ShareID = (*string)(r.ShareID)
			}
			devices = append(devices, one)
		}
	}
	if failed := d.writeStatus(ctx, claim, devices); failed != nil && !apierrors.IsNotFound(failed) {
		klog.FromContext(ctx).Error(failed, "The status of the claim is not written", "claim", klog.KObj(claim))
		d.health.owe(claim.UID)
	}
}

// figures are what a claim's status has of a session.
func figures(s public.SessionStatus) []byte {
	return encoded(map[string]any{
		"target": s.Target, "memoryMiB": s.MemoryMiB, "slice": s.SliceUUID, "clockMHz": s.Fit.ClockMHz,
		"fp32Ratio": s.Fit.FP32Ratio, "bandwidthRatio": s.Fit.BandwidthRatio,
	})
}

// encoded is texts and numbers as JSON, without spaces: the API server writes it so, and a patch with others would be a change.
func encoded(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func (d *driver) writeStatus(ctx context.Context, claim *resourceapi.ResourceClaim, devices []resourceapi.AllocatedDeviceStatus) error {
	claims := d.client.ResourceV1().ResourceClaims(claim.Namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil || now.UID != claim.UID || now.Status.Allocation == nil {
			return err
		}
		others := slices.DeleteFunc(now.Status.Devices, func(s resourceapi.AllocatedDeviceStatus) bool { return s.Driver == driverName })
		now.Status.Devices = append(others, devices...)
		_, err = claims.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
}

// HandleError logs an error in the background, such as a ResourceSlice that the API server refuses.
func (d *driver) HandleError(ctx context.Context, err error, msg string) {
	utilruntime.HandleErrorWithContext(ctx, err, msg)
}

// turns let one call at a time change a claim, and a GPU: a project that joins a GPU while another acquires it is refused, because
// it may not change the GPU's modes, and these are not set yet.
type turns struct {
	taken map[string]bool
	left  *sync.Cond
}

// take waits until all that is wanted can be taken at once: a call that waits keeps nothing from others. What a claim has can
// change meanwhile.
func (t *turns) take(wanted func() []string) (leave func()) {
	t.left.L.Lock()
	defer t.left.L.Unlock()
	all := wanted()
	for slices.ContainsFunc(all, func(one string) bool { return t.taken[one] }) {
		t.left.Wait()
		all = wanted()
	}
	for _, one := range all {
		t.taken[one] = true
	}
	return func() {
		t.left.L.Lock()
		defer t.left.L.Unlock()
		maps.DeleteFunc(t.taken, func(one string, _ bool) bool { return slices.Contains(all, one) })
		t.left.Broadcast()
	}
}
