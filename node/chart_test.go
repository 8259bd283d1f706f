package main

import (
	"bytes"
	"os"
	"os/exec"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// helm is run through the module proxy.
const helm = "helm.sh/helm/v3/cmd/helm@v3.22.0"

// rendered are the objects that a command prints, by kind and name.
func rendered(t *testing.T, command ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", command, err, said.String())
	}
	all := map[string]*unstructured.Unstructured{}
	for reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096); ; {
		object := &unstructured.Unstructured{}
		if reader.Decode(&object.Object) != nil {
			return all
		}
		if len(object.Object) > 0 {
			all[object.GetKind()+" "+object.GetName()] = object
		}
	}
}

// TestChart: Helm and kustomize make the same objects, and what a user changes is in the DaemonSet of both.
func TestChart(t *testing.T) {
	if os.Getenv("COSPLAY_BED") == "" {
		t.Skip("it builds Helm: make check-cluster")
	}
	template := []string{"go", "run", helm, "template", "cosplay-node", manifests, "--kube-version", "1.37.2"}
	want, got := rendered(t, "kubectl", "kustomize", manifests), rendered(t, template...)
	if len(want) < 100 || len(got) != len(want) {
		t.Errorf("kustomize makes %d objects, and Helm %d", len(want), len(got))
	}
	for name, object := range want {
		if !reflect.DeepEqual(object, got[name]) {
			t.Errorf("%s: kustomize makes\n%v\nand Helm\n%v", name, object, got[name])
		}
	}

	const daemon = "DaemonSet cosplay-node"
	var set appsv1.DaemonSet
	changed := rendered(t, append(template, "--set", "image.repository=registry.example/cosplay-node,image.tag=1.2.3,simulate=8 x h200,pullSecrets={one},args={--folder=/opt},nodeSelector=null")...)[daemon]
	check(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(changed.Object, &set, true))
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	if c.Image != "registry.example/cosplay-node:1.2.3" || !reflect.DeepEqual(c.Args, []string{"--root=/host", "--listen=127.0.0.1:9808", "--simulate=8 x h200", "--folder=/opt"}) ||
		len(pod.NodeSelector) > 0 || pod.ImagePullSecrets[0].Name != "one" {
		t.Errorf("the chart with values makes %+v", pod)
	}
	var simulated appsv1.DaemonSet
	tried := rendered(t, "kubectl", "kustomize", "../deploy/simulated")[daemon]
	check(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tried.Object, &simulated, true))
	pod = simulated.Spec.Template.Spec
	if !reflect.DeepEqual(pod.Containers[0].Args, []string{"--root=/host", "--listen=127.0.0.1:9808", "--simulate=8 x h200"}) || len(pod.NodeSelector) > 0 {
		t.Errorf("deploy/simulated makes %+v", pod)
	}
}
