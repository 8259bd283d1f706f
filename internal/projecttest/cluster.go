package projecttest

import (
	"encoding/json"
	"fmt"
	"strings"

	"cosplay/catalog"
)

// Object is an object of Kubernetes as JSON.
type Object = map[string]any

// Cluster is what kubectl prints of a cluster whose nodes run cosplay-node.
type Cluster struct {
	Nodes, Slices, Claims []Object
}

// NewCluster makes a cluster of equal nodes, n1 and so on, each with GPUs of these models of the catalog.
func NewCluster(nodes int, models ...string) *Cluster {
	c := &Cluster{}
	for n := 1; n <= nodes; n++ {
		name := fmt.Sprintf("n%d", n)
		c.Nodes = append(c.Nodes, Object{"apiVersion": "v1", "kind": "Node", "metadata": Object{"name": name}, "spec": Object{}})
		for index, model := range models {
			c.Slices = append(c.Slices, Object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": Object{"name": fmt.Sprintf("%s-%d", name, index)},
				"spec": Object{"driver": "gpu.cosplay.dev", "nodeName": name, "pool": Object{"name": name, "generation": 1, "resourceSliceCount": len(models)},
					"devices": devices(n, index, model)}})
		}
	}
	return c
}

// UUID is that of a GPU of a node, both counted as their names are.
func UUID(node, index int) string {
	return fmt.Sprintf("GPU-%08d-0000-4000-8000-%012d", node, index)
}

func devices(node, index int, model string) (all []any) {
	m, err := catalog.HostModel(model)
	if err != nil {
		panic(err)
	}
	device := func(name, profile string, start int) {
		all = append(all, Object{"name": name, "attributes": Object{"parentUUID": Object{"string": UUID(node, index)}, "index": Object{"int": index}, "model": Object{"string": m.Name},
			"profile": Object{"string": profile}, "placement": Object{"int": start}, "clockMHz": Object{"int": m.MaxClockMHz()}}})
	}
	for _, p := range m.Profiles {
		for _, start := range p.Starts {
			if !strings.ContainsAny(p.Name, "+-") {
				device(fmt.Sprintf("gpu-%d-%s-%d", index, strings.ReplaceAll(p.Name, ".", "-"), start), p.Name, start)
			}
		}
	}
	device(fmt.Sprintf("gpu-%d-whole", index), "whole", 0)
	return all
}

// Take gives devices of a node to a claim of the namespace default.
func (c *Cluster) Take(claim, node string, devices ...string) Object {
	var results []any
	for _, d := range devices {
		results = append(results, Object{"driver": "gpu.cosplay.dev", "pool": node, "device": d, "request": "gpu"})
	}
	o := Object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": Object{"name": claim, "namespace": "default"},
		"status": Object{"allocation": Object{"devices": Object{"results": results}}}}
	c.Claims = append(c.Claims, o)
	return o
}

// Slice has the devices of a slice, counted from 0.
func (c *Cluster) Slice(n int) Object { return c.Slices[n]["spec"].(Object) }

// JSON is the list that kubectl prints.
func (c *Cluster) JSON() []byte {
	items := []any{}
	for _, all := range [][]Object{c.Nodes, c.Slices, c.Claims} {
		for _, one := range all {
			items = append(items, one)
		}
	}
	data, err := json.MarshalIndent(Object{"apiVersion": "v1", "kind": "List", "items": items, "metadata": Object{"resourceVersion": ""}}, "", "    ")
	if err != nil {
		panic(err)
	}
	return data
}
