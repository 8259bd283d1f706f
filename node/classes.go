package main

import (
	"fmt"
	"io"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"cosplay/catalog"
	"cosplay/internal/place"
)

// extended is what users write before a target: limits: {cosplay.dev/rtx-2060: 1}.
const extended = "cosplay.dev/"

// classes are the device classes of a cluster: one for each target that a model of GPU comes close to, and a plain one, for
// claims that name their target themselves.
func classes() (all []*resourceapi.DeviceClass) {
	plain := newClass("cosplay", selector("device.driver == %q", driverName))
	all = append(all, plain)
	for _, t := range catalog.Targets() {
		var places []string
		for _, h := range catalog.Hosts() {
			if profile, fits := place.Alone(h.Model, t); fits {
				places = append(places, fmt.Sprintf("g.model == %q && g.profile == %q", h.Model.Name, profile))
			}
		}
		if len(places) == 0 {
			continue
		}
		class := newClass("cosplay-"+t.Key, selector("device.driver == %q && [device.attributes[%q]].exists(g, %s)", driverName, driverName, strings.Join(places, " || ")))
		class.Spec.ExtendedResourceName = new(extended + t.Key)
		class.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: driverName, Parameters: runtime.RawExtension{
				Raw: encoded(parameters{APIVersion: apiVersion, Kind: kind, Target: t.Key})}}}}}
		all = append(all, class)
	}
	return all
}

func newClass(name string, by resourceapi.DeviceSelector) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "DeviceClass"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{by}},
	}
}

func selector(format string, args ...any) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf(format, args...)}}
}

// printClasses writes the device classes as YAML, for kubectl apply.
func printClasses(w io.Writer) error {
	for _, class := range classes() {
		text, err := yaml.Marshal(class)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}
