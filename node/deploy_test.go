package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const manifests = "../deploy/kubernetes"

// manifest is the object of a kind among the manifests. Each of them must have only fields that the API knows.
func manifest[T runtime.Object](t *testing.T) (found T) {
	t.Helper()
	var list struct{ Resources []string }
	read(t, "kustomization.yaml", &list)
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, file := range list.Resources {
		text, err := os.ReadFile(filepath.Join(manifests, file))
		check(t, err)
		for one := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---\n")) {
			if len(bytes.TrimSpace(one)) == 0 {
				continue
			}
			object, _, err := strict.Decode(one, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", file, err, one)
			}
			if o, is := object.(T); is {
				found = o
			}
		}
	}
	if reflect.ValueOf(found).IsNil() {
		t.Fatalf("no %T", found)
	}
	return found
}

func read(t *testing.T, file string, to any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests, file))
	check(t, err)
	check(t, yaml.Unmarshal(text, to))
}

// TestManifests: what admins install is of this release: the device classes, the permissions, the image.
func TestManifests(t *testing.T) {
	var want bytes.Buffer
	check(t, printClasses(&want))
	got, err := os.ReadFile(filepath.Join(manifests, "classes.yaml"))
	check(t, err)
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("classes.yaml is not what cosplay-node classes prints. Fix: make manifests")
	}
	source, err := os.ReadFile("../internal/cli/version.go")
	check(t, err)
	release := string(regexp.MustCompile(`(?m)^const release = "(.*)"`).FindSubmatch(source)[1])
	pod := manifest[*appsv1.DaemonSet](t).Spec.Template.Spec
	if image := pod.Containers[0].Image; image != "cosplay-node:"+release {
		t.Errorf("the image is %s, and the release %s", image, release)
	}
	var chart struct{ Version, AppVersion string }
	read(t, "Chart.yaml", &chart)
	if chart.Version != release || chart.AppVersion != release {
		t.Errorf("the chart is %+v, and the release %s", chart, release)
	}
}

// TestClusterRole: the role has the permissions that the driver asks for, and no other; the documentation has each.
func TestClusterRole(t *testing.T) {
	var granted []string
	for _, rule := range manifest[*rbacv1.ClusterRole](t).Rules {
		granted = append(granted, grants(rule)...)
	}
	text, err := os.ReadFile("../docs/kubernetes.md")
	check(t, err)
	var asked []string
	for _, p := range permissions() {
		asked = append(asked, say(p))
		if resource := strings.Trim(p.Resource+"/"+p.Subresource, "/"); !regexp.MustCompile("(?m)^\\| `" + resource + "` \\|.*\\b" + p.Verb + "\\b").Match(text) {
			t.Errorf("docs/kubernetes.md has no reason for %s", say(p))
		}
	}
	if !reflect.DeepEqual(granted, asked) {
		t.Errorf("the ClusterRole grants\n%s\nand the driver asks for\n%s", strings.Join(granted, "\n"), strings.Join(asked, "\n"))
	}
}

// grants are the permissions of a rule.
func grants(rule rbacv1.PolicyRule) (all []string) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, name := range names {
				for _, verb := range rule.Verbs {
					resource, subresource, _ := strings.Cut(resource, "/")
					all = append(all, say(authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: subresource, Name: name, Verb: verb}))
				}
			}
		}
	}
	return all
}
