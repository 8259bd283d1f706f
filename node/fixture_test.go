package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"

	"cosplay/internal/public"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const nodeName = "n1"

var worlds atomic.Int64

// world is a node with simulated GPUs, and the driver on it, whose calls the test makes in place of kubelet.
type world struct {
	*driver
	client *fake.Clientset
	events chan string
	before []byte               // the host as it was
	first  []public.ExportedGPU // its GPUs then
}

func newWorld(t *testing.T, simulate string) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the specifications of devices are root's")
	}
	cosplay, err := filepath.Abs("../bin/cosplay")
	check(t, err)
	if _, err := os.Stat(cosplay); err != nil {
		t.Fatalf("%v; make build", err)
	}
	w := &world{client: fake.NewClientset()}
	recorder := events.NewFakeRecorder(1000)
	w.events = recorder.Events
	p := projects{cosplay: cosplay, folder: filepath.Join(t.TempDir(), fmt.Sprintf("node-%d-%d", os.Getpid(), worlds.Add(1))), simulate: simulate}
	check(t, os.MkdirAll(p.folder, 0o700))
	gpus, err := p.gpus(context.Background())
	check(t, err)
	w.first = slices.Clone(gpus)
	w.driver = newDriver(p, nodeName, w.client, recorder, gpus, time.Minute)
	w.before = w.hardware(t)
	t.Cleanup(func() {
		known, _ := w.known()
		for _, uid := range known {
			_ = w.remove(context.Background(), uid)
		}
	})
	return w
}

// hardware is the simulated host as its GPUs are.
func hardware(t *testing.T, p projects) []byte {
	t.Helper()
	out, err := exec.Command(p.cosplay, "--chdir", p.folder, "--file", filepath.Join(p.folder, "node.json"), "sim", "show").Output()
	check(t, err)
	return out
}

func (w *world) hardware(t *testing.T) []byte { return hardware(t, w.projects) }

// untouched fails if the host is not as it was, or if claims have left anything.
func untouched(t *testing.T, p projects, before []byte) {
	t.Helper()
	if now := hardware(t, p); !bytes.Equal(now, before) {
		t.Errorf("the host is\n%s\nand was\n%s", now, before)
	}
	var left []string
	for _, pattern := range []string{p.folder + "/claim-*", p.folder + "/.cosplay/sessions/*/*/*", p.folder + "/.cosplay/sim/*/ledger/GPU*", "/var/run/cdi/*" + filepath.Base(p.folder) + "*"} {
		found, err := filepath.Glob(pattern)
		check(t, err)
		left = append(left, found...)
	}
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func (w *world) untouched(t *testing.T) {
	t.Helper()
	untouched(t, w.projects, w.before)
}

// claim is a claim to which the scheduler has allocated a device, with parameters of its class.
func (w *world) claim(t *testing.T, name, device, class string) *resourceapi.ResourceClaim {
	t.Helper()
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: uid(name)}}
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "gpu", Driver: driverName, Pool: nodeName, Device: w.device(device)}},
		Config:  []resourceapi.DeviceAllocationConfiguration{opaque(resourceapi.AllocationConfigSourceClass, class)},
	}}
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod"}}
	stored := c.DeepCopy()
	stored.Status.Allocation.Devices.Config = nil // the API server would refuse those that are no JSON
	_, err := w.client.ResourceV1().ResourceClaims("default").Create(context.Background(), stored, metav1.CreateOptions{})
	check(t, err)
	return c
}

// share makes a claim one of a part of its GPU's memory, in MiB.
func share(c *resourceapi.ResourceClaim, mib int64) *resourceapi.ResourceClaim {
	r := &c.Status.Allocation.Devices.Results[0]
	r.ShareID = new(c.UID)
	r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{capacityMemory: *resource.NewQuantity(mib<<20, resource.BinarySI)}
	return c
}

func opaque(source resourceapi.AllocationConfigSource, raw string) resourceapi.DeviceAllocationConfiguration {
	return resourceapi.DeviceAllocationConfiguration{Source: source, DeviceConfiguration: resourceapi.DeviceConfiguration{
		Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: driverName, Parameters: runtime.RawExtension{Raw: []byte(raw)}}}}
}

// target are parameters that name a target.
func target(name string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"target":%q}`, apiVersion, kind, name)
}

// uid is one that follows from a name.
func uid(name string) types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", len(name), []byte(fmt.Sprintf("%6.6s", name))))
}

// gpusIn are the GPUs of a driver.
func gpusIn(d *driver) (all []public.ExportedGPU) {
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	return slices.Clone(d.health.gpus)
}

// device is the name of a device, which tests write with the index of its GPU: gpu-0-1g-18gb-3.
func (w *world) device(name string) string {
	index, placement, _ := strings.Cut(strings.TrimPrefix(name, "gpu-"), "-")
	for _, g := range w.first {
		if fmt.Sprint(g.Index) == index {
			return setOf(g) + "-" + placement
		}
	}
	return name
}
