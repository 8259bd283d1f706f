package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cosplay/internal/config"
	"cosplay/internal/kubernetes"
	"cosplay/internal/projecttest"
)

type object = projecttest.Object

// device is the first device of the first node.
func device(c *projecttest.Cluster) object { return c.Slice(0)["devices"].([]any)[0].(object) }

func attribute(c *projecttest.Cluster, name string, value any) {
	device(c)["attributes"].(object)[name] = value
}

// TestRefused: what cannot be trusted is an error that says what it is.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*projecttest.Cluster)
		want  string
	}{
		{"no nodes", func(c *projecttest.Cluster) { c.Nodes = nil }, "it has no Node"},
		{"no GPUs", func(c *projecttest.Cluster) { c.Slices = nil }, "no node has GPUs"},
		{"a foreign driver alone", func(c *projecttest.Cluster) {
			c.Slice(0)["driver"], c.Slice(1)["driver"] = "gpu.nvidia.com", "gpu.nvidia.com"
		}, "no node has GPUs"},
		{"a node twice", func(c *projecttest.Cluster) { c.Nodes[1] = c.Nodes[0] }, `node "n1" is there twice`},
		{"a name with a quote", func(c *projecttest.Cluster) { c.Nodes[0]["metadata"] = object{"name": `n1"`} }, "cannot be the name of a node"},
		{"a pool of another name", func(c *projecttest.Cluster) { c.Slice(0)["pool"].(object)["name"] = "x" }, "cosplay-node names pools after nodes"},
		{"half a pool", func(c *projecttest.Cluster) { c.Slice(0)["pool"].(object)["resourceSliceCount"] = 2 }, "has published 1 ResourceSlices of 2"},
		{"an old API", func(c *projecttest.Cluster) { c.Slices[0]["apiVersion"] = "resource.k8s.io/v1beta1" }, "cosplay reads resource.k8s.io/v1"},
		{"a UUID with CEL", func(c *projecttest.Cluster) { attribute(c, "parentUUID", object{"string": `GPU-0" || true || "`}) }, "cannot be the UUID of a GPU"},
		{"a model that is a number", func(c *projecttest.Cluster) { attribute(c, "model", object{"int": 1}) }, `"model" is missing or no text`},
		{"an index out of range", func(c *projecttest.Cluster) { attribute(c, "index", object{"int": -1}) }, `"index" is missing or no number`},
		{"a number as a text", func(c *projecttest.Cluster) { attribute(c, "index", object{"int": "0"}) }, `item 3, ResourceSlice "n1-0", cannot be read`},
		{"two clocks", func(c *projecttest.Cluster) { attribute(c, "clockMHz", object{"int": 100}) }, "differ in index, model or clock"},
		{"a device twice", func(c *projecttest.Cluster) { device(c)["name"] = "gpu-0-whole" }, "it is there twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := projecttest.NewCluster(2, "h200")
			test.spoil(c)
			_, err := kubernetes.Decode(c.JSON())
			if got := fmt.Sprint(err); !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	for text, want := range map[string]string{
		"":                                "it is empty",
		"\n{\n\"kind\":":                  "line 3",
		"[]":                              "line 1",
		`{"kind":"NodeList"}`:             `its kind is "NodeList"`,
		`{"kind":"List","items":[7]}`:     "item 1",
		`{"kind":"List","items":[]}`:      "it has no Node",
		`{"kind":"List"} {"kind":"List"}`: "line 1",
		`{"kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":["a"]}}]}`: "item 1",
		strings.Repeat(`{"kind":"List","items":[`, 100_000):                                     "exceeded max depth",
	} {
		if _, err := kubernetes.Decode([]byte(text)); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%.60s: got %v, want %s", text, err, want)
		}
	}
}

// TestTolerated: what cosplay does not know, or does not need, is no error.
func TestTolerated(t *testing.T) {
	c := projecttest.NewCluster(3, "h200", "a100-80gb")
	c.Nodes[0]["spec"] = object{"unschedulable": true, "taints": []any{object{"key": "x"}}, "podCIDR": "10.0.0.0/24"}
	c.Nodes = append(c.Nodes, object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "data": "not read"})
	attribute(c, "newer", object{"version": "1.0.0"})
	old := object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": object{"name": "old"},
		"spec": object{"driver": "gpu.cosplay.dev", "nodeName": "n2", "pool": object{"name": "n2", "generation": 0, "resourceSliceCount": 7}}}
	other := object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": object{"name": "nic"},
		"spec": object{"driver": "nic.example", "allNodes": true, "pool": object{"name": "nics", "generation": 1, "resourceSliceCount": 1}}}
	c.Slices = append(c.Slices, old, other)
	c.Take("pending", "n2")["status"] = object{}
	c.Take("gone", "n9", "gpu-0-whole")
	c.Take("shared", "n3", "gpu-0-1g-18gb-0", "gpu-0-1g-18gb-0")
	got, err := kubernetes.Decode(c.JSON())
	if err != nil {
		t.Fatal(err)
	}
	var gpus []string
	w := got.World(config.Host{}, nil, nil)
	for _, one := range w.Host.GPUs {
		g := w.GPU(one.UUID)
		gpus = append(gpus, fmt.Sprintf("%s/%d %s", g.Node, g.Index, g.Model.Name))
	}
	if want := "n2/0 NVIDIA H200, n2/1 NVIDIA A100-SXM4-80GB, n3/0 NVIDIA H200, n3/1 NVIDIA A100-SXM4-80GB"; strings.Join(gpus, ", ") != want {
		t.Errorf("got %s", strings.Join(gpus, ", "))
	}
	if want := "node n1 is cordoned: its 2 GPUs get no new sessions;node n9 does not publish gpu-0-whole of claim default/gone"; strings.Join(w.Warnings, ";") != want {
		t.Errorf("warnings: %q", w.Warnings)
	}
}

// TestStale: what a claim or a node has left is reported, and its GPU gets no new session; all others do.
func TestStale(t *testing.T) {
	for _, test := range []struct {
		name, want string
		spoil      func(*projecttest.Cluster)
		open       int // GPUs
	}{
		{"a node that is deleted", "node n1 does not exist: its 2 GPUs get no new sessions", func(c *projecttest.Cluster) { c.Nodes = c.Nodes[1:] }, 2},
		{"a pool that is deleted", "node n1 does not publish gpu-0-whole of claim default/x", func(c *projecttest.Cluster) {
			c.Slices = c.Slices[2:]
			c.Take("x", "n1", "gpu-0-whole")
		}, 2},
		{"a device that is not published", "node n1 does not publish gpu-00000001-0000-4000-8000-000000000001-9g-18gb-0 of claim default/x: its GPU 1 gets no new sessions",
			func(c *projecttest.Cluster) { c.Take("x", "n1", strings.ToLower(projecttest.UUID(1, 1))+"-9g-18gb-0") }, 3},
		{"a device of another form", "node n1 does not publish gpu-7-whole of claim default/x: its GPU 0 and GPU 1 get no new sessions",
			func(c *projecttest.Cluster) { c.Take("x", "n1", "gpu-7-whole") }, 2},
		{"a GPU that is not published", "node n1 does not publish gpu-00000009-0000-4000-8000-000000000000-whole of claim default/x",
			func(c *projecttest.Cluster) { c.Take("x", "n1", strings.ToLower(projecttest.UUID(9, 0))+"-whole") }, 4},
		{"an unknown model", `GPU 0 of node n1 is left out: the catalog has no model "NVIDIA H9000"`, func(c *projecttest.Cluster) {
			for _, d := range c.Slice(0)["devices"].([]any) {
				d.(object)["attributes"].(object)["model"] = object{"string": "NVIDIA H9000"}
			}
		}, 3},
		{"slices that overlap", "", func(c *projecttest.Cluster) { c.Take("x", "n1", "gpu-0-1g-18gb-0", "gpu-0-2g-35gb-0") }, 4},
		{"a slice of a whole GPU", "GPU 0 of node n1 is left out: claim default/x has the whole of it",
			func(c *projecttest.Cluster) { c.Take("x", "n1", "gpu-0-whole"); c.Take("y", "n1", "gpu-0-1g-18gb-0") }, 3},
		{"a profile that the catalog lacks", "GPU 0 of node n1 gets no new sessions: a claim has a profile or a placement of it that the catalog lacks", func(c *projecttest.Cluster) {
			attribute(c, "profile", object{"string": "9g.1gb"})
			c.Take("x", "n1", device(c)["name"].(string))
		}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := projecttest.NewCluster(2, "h200", "h200")
			test.spoil(c)
			got, err := kubernetes.Decode(c.JSON())
			if err != nil {
				t.Fatal(err)
			}
			if w := got.World(config.Host{}, nil, nil); strings.Join(w.Warnings, ";") != test.want || len(w.Host.GPUs) != test.open {
				t.Errorf("%d GPUs, and %q", len(w.Host.GPUs), w.Warnings)
			}
		})
	}
}

// FuzzDecode: no file makes it panic, also not when placement gets what it returns.
func FuzzDecode(f *testing.F) {
	c := projecttest.NewCluster(2, "h200")
	c.Take("x", "n1", "gpu-0-3g-71gb-4")
	whole := c.JSON()
	f.Add(whole)
	var compact bytes.Buffer
	if err := json.Compact(&compact, whole); err != nil {
		f.Fatal(err)
	}
	f.Add(compact.Bytes()[:1000])
	f.Add([]byte(`{"kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}},null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := kubernetes.Decode(data)
		if err == nil {
			c.World(config.Host{Name: "cluster"}, nil, nil)
		}
	})
}

// TestNotReady: no session is planned on a node that does not work, or of which the cluster does not know it.
func TestNotReady(t *testing.T) {
	for status, out := range map[string]string{"True": "", "False": "node n1 is not ready: its 1 GPU gets no new sessions", "Unknown": "node n1 is not ready: its 1 GPU gets no new sessions"} {
		c := projecttest.NewCluster(2, "h200")
		c.Nodes[0]["status"] = object{"conditions": []object{{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": status}}}
		got, err := kubernetes.Decode(c.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if w := got.World(config.Host{}, nil, nil); strings.Join(w.Warnings, ";") != out {
			t.Errorf("Ready is %s: warnings: %q", status, w.Warnings)
		}
	}
}
