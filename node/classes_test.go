package main

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"cosplay/catalog"
)

// TestClasses compiles the selector of each device class as the scheduler does, and finds the devices of an H200, of an
// A100 and of a GPU without MIG that it selects.
func TestClasses(t *testing.T) {
	w := newWorld(t, "1 x h200, 1 x a100-80gb, 1 x l40s")
	gpus, err := w.gpus(context.Background())
	check(t, err)
	want := map[string]map[string]int{ // by target, how many devices of which profile
		"cosplay-rtx-2060":  {"1g.18gb": 7, "3g.40gb": 2, "whole": 1}, // as cosplay fit 2060 --on a100-80gb says
		"cosplay-rtx-3090":  {"4g.71gb": 1, "whole": 1},
		"cosplay-a100-80gb": {"7g.141gb": 1, "whole": 1},
		"cosplay":           nil,
	}
	compiler := dracel.GetCompiler(dracel.Features{})
	for _, class := range classes() {
		expression := class.Spec.Selectors[0].CEL.Expression
		if len(expression) > 10<<10 {
			t.Errorf("the selector of %s has %d bytes", class.Name, len(expression))
		}
		compiled := compiler.CompileCELExpression(expression, dracel.Options{EnvType: new(environment.StoredExpressions)})
		if compiled.Error != nil {
			t.Fatalf("%s: %v", class.Name, compiled.Error)
		}
		counts, chosen := want[class.Name]
		if !chosen {
			continue
		}
		got, all := map[string]int{}, 0
		for _, s := range resources(nodeName, gpus, projects{}.sharingOf, nil).Pools[nodeName].Slices {
			for _, d := range s.Devices {
				matches, _, err := compiled.DeviceMatches(context.Background(), dracel.Device{Driver: driverName, Attributes: d.Attributes, Capacity: d.Capacity})
				check(t, err)
				if matches {
					got[*d.Attributes["profile"].StringValue]++
					all++
				}
			}
		}
		if counts == nil && all != 39 {
			t.Errorf("the plain class selects %d devices", all)
		}
		for profile, n := range counts {
			if got[profile] != n {
				t.Errorf("%s selects %v, want %v", class.Name, got, counts)
			}
		}
	}
	if n := len(classes()); n != 1+len(catalog.Targets()) && n < 100 {
		t.Errorf("there are %d classes for %d targets", n, len(catalog.Targets()))
	}
}
