package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"sigs.k8s.io/yaml"

	"cosplay/catalog"
	"cosplay/internal/hostfile"
	"cosplay/internal/public"
)

// fleet is what cosplay manifests printed, as Kubernetes reads it.
type fleet struct {
	deployments []*appsv1.Deployment
	claims      map[string]*resourceapi.ResourceClaim
}

// readFleet decodes manifests strictly: an unknown field or a value of another type is an error.
func readFleet(t *testing.T, text []byte) fleet {
	t.Helper()
	f := fleet{claims: map[string]*resourceapi.ResourceClaim{}}
	for doc := range bytes.SplitSeq(text, []byte("---\n")) {
		var of metav1.TypeMeta
		check(t, yaml.Unmarshal(doc, &of))
		switch of.GroupVersionKind() {
		case appsv1.SchemeGroupVersion.WithKind("Deployment"):
			d := &appsv1.Deployment{}
			check(t, yaml.UnmarshalStrict(doc, d))
			f.deployments = append(f.deployments, d)
		case resourceapi.SchemeGroupVersion.WithKind("ResourceClaim"):
			c := &resourceapi.ResourceClaim{}
			check(t, yaml.UnmarshalStrict(doc, c))
			f.claims[c.Name] = c
		default:
			t.Fatalf("a document is a %s", of.GroupVersionKind())
		}
	}
	return f
}

// sound checks what the API server would check of names and labels, and that each Deployment selects its pods.
func (f fleet) sound(t *testing.T) {
	t.Helper()
	for _, d := range f.deployments {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		check(t, err)
		for value := range d.Labels {
			if wrong := validation.IsValidLabelValue(d.Labels[value]); wrong != nil {
				t.Errorf("%s: label %s: %v", d.Name, value, wrong)
			}
		}
		if len(validation.IsDNS1123Label(d.Name)) > 0 || *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType ||
			d.Annotations["cosplay.dev/session"] == "" || d.Labels["app.kubernetes.io/managed-by"] != "cosplay" {
			t.Errorf("%s: %+v", d.Name, d)
		}
		for _, o := range f.deployments {
			if selects := selector.Matches(labels.Set(o.Spec.Template.Labels)); selects != (o == d) {
				t.Errorf("%s selects the pods of %s: %v", d.Name, o.Name, selects)
			}
		}
	}
}

// device is the only device that a claim selects.
func (f fleet) device(t *testing.T, claim *resourceapi.ResourceClaim, nodes map[string][]public.ExportedGPU) (node string, found resourceapi.Device) {
	t.Helper()
	request := claim.Spec.Devices.Requests[0].Exactly
	compiled := dracel.GetCompiler(dracel.Features{}).CompileCELExpression(request.Selectors[0].CEL.Expression, dracel.Options{EnvType: new(environment.NewExpressions)})
	if compiled.Error != nil || request.DeviceClassName != "cosplay" {
		t.Fatalf("%s: class %s, %v", claim.Name, request.DeviceClassName, compiled.Error)
	}
	for name, gpus := range nodes {
		for _, s := range resources(name, gpus, projects{}.sharingOf, nil).Pools[name].Slices {
			for _, d := range s.Devices {
				matches, _, err := compiled.DeviceMatches(context.Background(), dracel.Device{Driver: driverName, Attributes: d.Attributes, Capacity: d.Capacity})
				check(t, err)
				if matches && found.Name != "" {
					t.Errorf("%s selects %s and %s", claim.Name, found.Name, d.Name)
				}
				if matches {
					node, found = name, d
				}
			}
		}
	}
	if found.Name == "" {
		t.Errorf("%s selects no device", claim.Name)
	}
	return node, found
}

// parametersOf are those that the driver reads from a claim.
func parametersOf(t *testing.T, claim *resourceapi.ResourceClaim) parameters {
	t.Helper()
	opaque := claim.Spec.Devices.Config[0].Opaque
	var compact bytes.Buffer
	check(t, json.Compact(&compact, opaque.Parameters.Raw))
	if opaque.Driver != driverName || compact.String() != string(opaque.Parameters.Raw) {
		t.Errorf("%s: driver %s, parameters %s", claim.Name, opaque.Driver, opaque.Parameters.Raw)
	}
	p, err := parse(opaque.Parameters.Raw)
	check(t, err)
	if _, err := catalog.Target(p.Target); err != nil {
		t.Errorf("%s: %v", claim.Name, err)
	}
	return p
}

// gpu is one of the GPUs for which the manifests in testdata were written.
func gpu(t *testing.T, index int, uuid, model string) public.ExportedGPU {
	m, err := catalog.HostModel(model)
	check(t, err)
	return public.ExportedGPU{Index: index, UUID: uuid, Model: hostfile.Model(m)}
}

// TestPinnedManifests reads manifests as Kubernetes and the driver do: each claim selects one device, on the node of its pod.
func TestPinnedManifests(t *testing.T) {
	text, err := os.ReadFile("../internal/project/testdata/pinned.yaml")
	check(t, err)
	f := readFleet(t, text)
	f.sound(t)
	nodes := map[string][]public.ExportedGPU{"n1": {gpu(t, 0, "GPU-00000001-0000-4000-8000-000000000000", "h200"), gpu(t, 1, "GPU-00000001-0000-4000-8000-000000000001", "a100-80gb")},
		"n2": {gpu(t, 0, "GPU-00000002-0000-4000-8000-000000000000", "h200")}}
	taken := map[string]bool{"gpu-00000001-0000-4000-8000-000000000000-3g-71gb-4": true} // by another claim
	for _, d := range f.deployments {
		pod := d.Spec.Template.Spec
		claim := f.claims[*pod.ResourceClaims[0].ResourceClaimName]
		if claim == nil || claim.Namespace != d.Namespace || pod.Containers[0].Resources.Claims[0].Name != pod.ResourceClaims[0].Name {
			t.Fatalf("%s has no claim: %+v", d.Name, pod)
		}
		node, device := f.device(t, claim, nodes)
		field := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]
		if field.Key != metav1.ObjectNameField || field.Values[0] != node || taken[device.Name] {
			t.Errorf("%s is on %v, and its device %s on %s", d.Name, field, device.Name, node)
		}
		taken[device.Name] = true
		parametersOf(t, claim)
	}
	if len(f.claims) != 4 || len(f.deployments) != 4 {
		t.Errorf("%d claims and %d Deployments", len(f.claims), len(f.deployments))
	}
	if p := parametersOf(t, f.claims["exact-09f9c5e7"]); p.Tolerance != "12.5%" || p.MaxError != "200%" || !p.Strict || p.Target != "rtx-2060" {
		t.Errorf("%+v", p)
	}
	worker := f.deployments[2].Spec.Template.Spec.Containers[0]
	if worker.Env[1].Value != "a: \"b\"\n# $$(SEED)\u0007é" || worker.Env[2].Value != "yes" || worker.Command[2] != "echo $$HOME $$(date) $$$$" {
		t.Errorf("%+v", worker)
	}
}

// TestClassManifests: each pod names an extended resource that a device class has.
func TestClassManifests(t *testing.T) {
	text, err := os.ReadFile("../internal/project/testdata/classes.yaml")
	check(t, err)
	offered := map[string]bool{}
	for _, class := range classes() {
		if class.Spec.ExtendedResourceName != nil {
			offered[*class.Spec.ExtendedResourceName] = true
		}
	}
	f := readFleet(t, text)
	f.sound(t)
	for _, d := range f.deployments {
		n := 0
		for name, quantity := range d.Spec.Template.Spec.Containers[0].Resources.Limits {
			if strings.HasPrefix(string(name), extended) {
				if n++; !offered[string(name)] || quantity.Value() != 1 {
					t.Errorf("%s: %s", d.Name, name)
				}
			}
		}
		if n != 1 {
			t.Errorf("%s has %d GPUs", d.Name, n)
		}
	}
	if len(f.deployments) != 3 || len(f.claims) > 0 {
		t.Errorf("%d Deployments, %d claims", len(f.deployments), len(f.claims))
	}
}

// TestManifestsOfPublished: cosplay manifests reads what the driver publishes and the API server keeps, and each of its claims
// is for one of these devices.
func TestManifestsOfPublished(t *testing.T) {
	w := newWorld(t, "2 x h200, 1 x a100-80gb")
	gpus, err := w.gpus(context.Background())
	check(t, err)
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	items := []any{map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": nodeName}}}
	published := resources(nodeName, gpus, projects{}.sharingOf, nil).Pools[nodeName].Slices
	for _, s := range published {
		items = append(items, resourceapi.ResourceSlice{TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"}, ObjectMeta: metav1.ObjectMeta{Name: "s"},
			Spec: resourceapi.ResourceSliceSpec{Driver: driverName, NodeName: new(nodeName), Devices: s.Devices, SharedCounters: s.SharedCounters,
				Pool: resourceapi.ResourcePool{Name: nodeName, Generation: 1, ResourceSliceCount: int64(len(published))}}})
	}
	list["items"] = items
	captured, err := json.Marshal(list)
	check(t, err)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "cluster.json"), captured, 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "cosplay.hcl"), []byte(`host "cluster" { kubernetes = "cluster.json" }
session "worker" {
  count   = 15
  target  = "2060"
  image   = "registry.example/trainer:1"
  command = ["train"]
}
`), 0o600))
	out, err := exec.Command(w.cosplay, "--chdir", dir, "manifests", "--pin").Output()
	check(t, err)
	f := readFleet(t, out)
	f.sound(t)
	taken := map[string]bool{}
	for _, claim := range f.claims {
		_, device := f.device(t, claim, map[string][]public.ExportedGPU{nodeName: gpus})
		taken[device.Name] = true
		parametersOf(t, claim)
	}
	if len(taken) != 15 {
		t.Errorf("15 sessions have %d devices", len(taken))
	}
}
