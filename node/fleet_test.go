package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cosplay/internal/public"
)

// aFleet is a project for the bed, with what nvidia-smi sees in the log of each pod.
const aFleet = `host "cluster" { kubernetes = "cluster.json" }

session "worker" {
  count   = 14
  target  = "2060"
  image   = "docker.io/cosplay-test/debian:latest"
  pull    = "never"
  command = ["sh", "-c", %q]
}
`

// printed is what a program prints, which has to succeed.
func printed(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	var said bytes.Buffer
	c := exec.Command(program, args...)
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v: %s%s", program, args, err, out, said.String())
	}
	return out
}

// fleet: manifests that cosplay has planned on the captured cluster become pods on the GPUs and slots of the plan, and a plan on
// the cluster with these pods is the same.
func (n *node) fleet(t *testing.T) {
	dir := t.TempDir()
	kubectl := func(args ...string) []byte {
		return printed(t, "kubectl", append([]string{"--kubeconfig", n.kubeconfig}, args...)...)
	}
	cosplay := func(args ...string) []byte {
		return printed(t, n.cosplay, append([]string{"--chdir", dir}, args...)...)
	}
	file := filepath.Join(dir, "fleet.yaml")
	manifests := func() []byte {
		check(t, os.WriteFile(filepath.Join(dir, "cluster.json"), kubectl("get", "nodes,resourceslices,resourceclaims", "-A", "-o", "json"), 0o600))
		return cosplay("manifests", "--pin")
	}
	check(t, os.WriteFile(filepath.Join(dir, "cosplay.hcl"), fmt.Appendf(nil, aFleet, look), 0o600))
	text := manifests()
	check(t, os.WriteFile(file, text, 0o600))
	var planned public.Plan
	check(t, json.Unmarshal(cosplay("plan", "--json"), &planned))
	start := time.Now()
	kubectl("apply", "-f", file)
	kubectl("wait", "--for=condition=Available", "--timeout=2m", "deployment", "--all")
	t.Logf("fourteen Deployments from kubectl apply to available: %.1f s", time.Since(start).Seconds())

	pods, err := n.client.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{})
	check(t, err)
	at := map[string]corev1.Pod{}
	for _, pod := range pods.Items {
		at[pod.Annotations["cosplay.dev/session"]] = pod
	}
	if fits := planned.Clusters.Fits; len(fits) != 14 || len(at) != 14 {
		t.Fatalf("%d sessions are planned, and there are %d pods: %s", len(fits), len(at), text)
	}
	for _, fit := range planned.Clusters.Fits {
		n.planned(fit, at[fit.Session])
	}
	if again := manifests(); !bytes.Equal(again, text) {
		t.Errorf("with its pods the cluster has the manifests\n%s\nand before\n%s", again, text)
	}
	kubectl("delete", "--wait=false", "-f", file)
}

// planned fails unless the scheduler and the GPU have a pod where a plan has its session.
func (n *node) planned(fit public.ClusterFit, pod corev1.Pod) {
	n.Helper()
	n.sees(pod.Name, a2060)
	claim, err := n.client.ResourceV1().ResourceClaims("default").Get(context.Background(), *pod.Spec.ResourceClaims[0].ResourceClaimName, metav1.GetOptions{})
	check(n.T, err)
	want, device := fit.Slice, n.device(claim.Status.Allocation.Devices.Results[0].Device)
	if fit.Node != pod.Spec.NodeName || *device["parentUUID"].StringValue != want.GPU || *device["profile"].StringValue != want.Profile || *device["placement"].IntValue != int64(want.Start) {
		n.Errorf("%s is planned at %+v of %s, and on %s it has %v", fit.Session, want, fit.Node, pod.Spec.NodeName, device)
	}
	var made public.Sessions
	check(n.T, project{n.projects, ofClaim + string(claim.UID)}.ask(context.Background(), &made, "ps"))
	for _, s := range made.Sessions {
		if s.Slice.Host = want.Host; s.Slice != want {
			n.Errorf("%s is planned at %+v, and the GPU has it at %+v", fit.Session, want, s.Slice)
		}
	}
}

// device are the attributes of a published device.
func (b *bed) device(name string) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	b.Helper()
	for _, s := range b.slices() {
		for _, d := range s.Spec.Devices {
			if d.Name == name {
				return d.Attributes
			}
		}
	}
	b.Fatalf("no device %s is published", name)
	return nil
}
