package project_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/kubernetes"
	"cosplay/internal/project"
	"cosplay/internal/projecttest"
)

var update = flag.Bool("update", false, "write the manifests in testdata")

const clustered = `
host "cluster" { kubernetes = "cluster.json" }
host "lab" { simulate = "1 x h200" }
session "local" {
  target = "2060"
  host   = "lab"
}
`

// openCluster opens a project with a cluster and a simulated host.
func openCluster(t testing.TB, c *projecttest.Cluster, sessions string) *project.Project {
	t.Helper()
	dir := projecttest.New(t, clustered+sessions)
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), c.JSON(), 0o644); err != nil {
		t.Fatal(err)
	}
	return projecttest.Open(t, dir)
}

// manifests are those of a project, with the warnings of its plan.
func manifests(t testing.TB, p *project.Project, pin bool) (text string, warnings []string) {
	t.Helper()
	planned, diags := p.PlanClusters()
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if diags := kubernetes.CheckClasses(planned.Fleet.Sessions); !pin && diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, d := range diags {
		if d.Extra == nil { // not of a fit
			warnings = append(warnings, d.Summary)
		}
	}
	all, err := planned.Fleet.Manifests(pin)
	if err != nil {
		t.Fatal(err)
	}
	return string(all), warnings
}

// golden compares a text with a file of testdata. The tests of the module node read the same files as Kubernetes does.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-update writes it):\n%s", name, d)
	}
}

// TestManifests writes sessions of three blocks: on a GPU that another claim has a part of, and on another model.
func TestManifests(t *testing.T) {
	c := projecttest.NewCluster(2, "h200", "a100-80gb")
	c.Take("other", "n1", "gpu-0-3g-71gb-4")
	c.Nodes[1]["spec"] = projecttest.Object{"unschedulable": true}
	plain := `
session "worker" {
  host    = "cluster"
  count   = 2
  target  = "2060"
  image   = "registry.example/trainer:1"
  command = ["sh", "-c", "echo $HOME $(date) $$"]
  env     = { SEED = count.index, YES = "yes", TEXT = "a: \"b\"\n# $(SEED)\u0007é" }
}
session "Big_one" {
  host       = "cluster"
  for_each   = { "a.b" = 1 }
  target     = "3090"
  image      = "registry.example/trainer:1"
  entrypoint = "image"
  pull       = "always"
  limits {
    cpus   = 1.5
    memory = "2GiB"
  }
}
`
	p := openCluster(t, c, plain)
	classes, _ := manifests(t, p, false)
	golden(t, "classes.yaml", classes)
	p = openCluster(t, c, plain+`
session "exact" {
  host       = "cluster"
  target     = "rtx-2060"
  gpu        = "`+projecttest.UUID(1, 1)+`"
  slice      = "1g.10gb@3"
  strict     = true
  image      = "registry.example/trainer:1"
  entrypoint = ["/init"]
  command    = ["train"]
  fit {
    tolerance = "12.5%"
    max_error = "200%"
  }
}
`)
	pinned, warnings := manifests(t, p, true)
	golden(t, "pinned.yaml", pinned)
	if want := "node n2 is cordoned: its 2 GPUs get no new sessions"; strings.Join(warnings, ";") != want {
		t.Errorf("warnings: %q", warnings)
	}
	if again, _ := manifests(t, openCluster(t, c, plain), false); again != classes {
		t.Error("the same input gives other manifests")
	}
}

// TestManifestsOfAFleet packs sessions on a cluster of 100 nodes as densely as is possible: seven on each GPU.
func TestManifestsOfAFleet(t *testing.T) {
	c := projecttest.NewCluster(100, "h200")
	for sessions, gpus := range map[int]int{14: 2, 700: 100} {
		begun := time.Now()
		p := openCluster(t, c, fmt.Sprintf(`
session "worker" {
  host    = "cluster"
  count   = %d
  target  = "2060"
  image   = "registry.example/trainer:1"
  command = ["python", "train.py"]
}
`, sessions))
		text, _ := manifests(t, p, true)
		took := time.Since(begun)
		on := map[string]int{}
		for line := range strings.Lines(text) {
			if _, pin, is := strings.Cut(line, "parentUUID == "); is {
				uuid, _, _ := strings.Cut(pin, " ")
				on[uuid]++
			}
		}
		if len(on) != gpus || strings.Count(text, "kind: Deployment") != sessions {
			t.Errorf("%d sessions are on %d GPUs: %v", sessions, len(on), on)
		}
		t.Logf("%d sessions with --pin: %d GPUs, %d bytes, %v", sessions, len(on), len(text), took)
		if took > 30*time.Second {
			t.Errorf("%d sessions take %v", sessions, took)
		}
	}
	p := openCluster(t, c, `
session "worker" {
  host    = "cluster"
  count   = 701
  target  = "2060"
  image   = "registry.example/trainer:1"
  command = ["python", "train.py"]
}
`)
	if _, diags := p.PlanClusters(); !diags.HasErrors() || !strings.Contains(diags.Error(), "does not fit") {
		t.Errorf("701 sessions: %v", diags)
	}
}

// worker is a session of a cluster.
const worker = `
session "worker" {
  host    = "cluster"
  target  = "2060"
  image   = "registry.example/trainer:1"
  command = ["train"]
}
`

// own gives a device to the claim that cosplay wrote for a session.
func own(c *projecttest.Cluster, session, namespace, target, node, device string) {
	o := c.Take(session, node, device)
	o["metadata"] = projecttest.Object{"name": session + "-12345678", "namespace": namespace, "labels": projecttest.Object{"app.kubernetes.io/managed-by": "cosplay"},
		"annotations": projecttest.Object{"cosplay.dev/session": "session." + session}}
	o["spec"] = projecttest.Object{"devices": projecttest.Object{"config": []any{projecttest.Object{"opaque": projecttest.Object{"driver": "gpu.cosplay.dev",
		"parameters": projecttest.Object{"apiVersion": "gpu.cosplay.dev/v1alpha1", "kind": "Session", "target": target}}}}}}
}

// taint gives all devices of a slice a taint.
func taint(c *projecttest.Cluster, slice int, effect string) {
	for _, d := range c.Slice(slice)["devices"].([]any) {
		d.(projecttest.Object)["taints"] = []any{projecttest.Object{"key": "gpu.cosplay.dev/x", "effect": effect}}
	}
}

// TestNamespace: validate plans for the namespace of the manifests, in which the session has its place on a full cluster.
func TestNamespace(t *testing.T) {
	c := projecttest.NewCluster(1, "h200")
	for slot := range 7 {
		session := "other"
		if slot == 2 {
			session = "worker"
		}
		own(c, session, "lab", "rtx-2060", "n1", fmt.Sprintf("gpu-0-1g-18gb-%d", slot))
	}
	dir := projecttest.New(t, strings.Replace(clustered, `{ kubernetes = "cluster.json" }`, "{\n  kubernetes = \"cluster.json\"\n  namespace = \"lab\"\n}", 1)+worker)
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), c.JSON(), 0o644); err != nil {
		t.Fatal(err)
	}
	p := projecttest.Open(t, dir)
	if diags, err := p.Foresee(); err != nil || diags.HasErrors() {
		t.Error(diags, err)
	}
	if text, _ := manifests(t, p, true); !strings.Contains(text, "placement == 2") || strings.Count(text, "namespace: lab") != 2 {
		t.Error(text)
	}
}

// TestManifestsStay: sessions whose claims the cluster has stay where they are, in the same namespace and as long as their
// blocks ask for the same; all other claims are foreign.
func TestManifestsStay(t *testing.T) {
	own := func(c *projecttest.Cluster, namespace, target string) {
		own(c, "worker", namespace, target, "n3", "gpu-0-1g-18gb-2")
	}
	ofPod := func(pod, class string) func(*projecttest.Cluster) {
		return func(c *projecttest.Cluster) {
			o := c.Take("x", "n3", "gpu-0-1g-18gb-2")
			o["metadata"] = projecttest.Object{"name": "x", "namespace": "default", "ownerReferences": []any{projecttest.Object{"kind": "Pod", "name": pod}}}
			o["spec"] = projecttest.Object{"devices": projecttest.Object{"requests": []any{projecttest.Object{"name": "r", "exactly": projecttest.Object{"deviceClassName": class}}}}}
		}
	}
	for name, test := range map[string]struct {
		taken func(*projecttest.Cluster)
		stays bool
	}{
		"its claim": {func(c *projecttest.Cluster) { own(c, "default", "rtx-2060") }, true},
		"on a cordoned node": {func(c *projecttest.Cluster) {
			own(c, "default", "rtx-2060")
			c.Nodes[2]["spec"] = projecttest.Object{"unschedulable": true}
		}, true},
		"on a node that is not ready": {func(c *projecttest.Cluster) {
			own(c, "default", "rtx-2060")
			c.Nodes[2]["status"] = projecttest.Object{"conditions": []projecttest.Object{{"type": "Ready", "status": "Unknown"}}}
		}, true},
		"on a GPU that gets no other pods": {func(c *projecttest.Cluster) {
			own(c, "default", "rtx-2060")
			taint(c, 2, "NoSchedule")
		}, true},
		"on a lost GPU": {func(c *projecttest.Cluster) {
			own(c, "default", "rtx-2060")
			taint(c, 2, "NoExecute")
		}, false},
		"the claim of its pod":         {ofPod("worker-7c9d8b6f5d-abcde", "cosplay-rtx-2060"), true},
		"a claim of another namespace": {func(c *projecttest.Cluster) { own(c, "lab", "rtx-2060") }, false},
		"a claim for another target":   {func(c *projecttest.Cluster) { own(c, "default", "rtx-3090") }, false},
		"a pod of another class":       {ofPod("worker-7c9d8b6f5d-abcde", "cosplay-rtx-3090"), false},
		"a pod of another Deployment":  {ofPod("worker-0-7c9d8b6f5d-abcde", "cosplay-rtx-2060"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := projecttest.NewCluster(3, "h200")
			test.taken(c)
			text, _ := manifests(t, openCluster(t, c, worker), true)
			stays := strings.Contains(text, projecttest.UUID(3, 0)) && strings.Contains(text, "placement == 2")
			if stays != test.stays {
				t.Errorf("it stays: %v\n%s", stays, text)
			}
		})
	}
}

// TestClosedNode: a cordoned node and a lost GPU get no new session, whatever stays there.
func TestClosedNode(t *testing.T) {
	c := projecttest.NewCluster(3, "h200")
	own(c, "worker", "default", "rtx-2060", "n1", "gpu-0-1g-18gb-2")
	own(c, "lost", "default", "rtx-2060", "n2", "gpu-0-1g-18gb-0")
	c.Nodes[0]["spec"] = projecttest.Object{"unschedulable": true}
	taint(c, 1, "NoExecute")
	text, warnings := manifests(t, openCluster(t, c, worker+strings.Replace(worker, `"worker" {`, `"lost" { `, 1)+strings.Replace(worker, `"worker" {`, "\"new\" {\ncount = 6", 1)), true)
	for node, want := range map[int]int{1: 1, 2: 0, 3: 7} {
		if n := strings.Count(text, projecttest.UUID(node, 0)); n != want {
			t.Errorf("%d sessions are on node n%d, want %d", n, node, want)
		}
	}
	want := []string{"node n1 is cordoned: its 1 GPU gets no new sessions",
		"GPU 0 of node n2 is left out: the node reports that it cannot be used as a whole", "session.lost cannot stay on GPU 0 of node n2, which is lost"}
	if d := cmp.Diff(want, warnings); d != "" {
		t.Error(d)
	}
}

// TestLostPlace: a session whose device is not published gets another place, with a warning; one on a GPU that a stale claim
// closes stays.
func TestLostPlace(t *testing.T) {
	c := projecttest.NewCluster(2, "h200")
	own(c, "worker", "default", "rtx-2060", "n1", "gpu-0-1g-18gb-2")
	own(c, "lost", "default", "rtx-2060", "n9", "gpu-0-1g-18gb-0")
	c.Take("stale", "n1", "gpu-0-9g-1gb-0")
	text, warnings := manifests(t, openCluster(t, c, worker+strings.Replace(worker, `"worker"`, `"lost"`, 1)), true)
	if !strings.Contains(text, "placement == 2") || !strings.Contains(text, projecttest.UUID(1, 0)) || !strings.Contains(text, projecttest.UUID(2, 0)) {
		t.Error(text)
	}
	want := []string{"node n1 does not publish gpu-0-9g-1gb-0 of claim default/stale: its GPU 0 gets no new sessions",
		"node n9 does not publish gpu-0-1g-18gb-0 of claim default/lost-12345678",
		"session.lost cannot stay on node n9, which does not publish its device. Write the file again if cosplay-node only restarts there"}
	if d := cmp.Diff(want, warnings); d != "" {
		t.Error(d)
	}
}

// TestChangedSession: a session that changes gets the place that it leaves, if there is no other.
func TestChangedSession(t *testing.T) {
	c := projecttest.NewCluster(1, "h200")
	for slot := range 4 {
		c.Take(fmt.Sprint("other-", slot), "n1", fmt.Sprintf("gpu-0-1g-18gb-%d", slot))
	}
	own(c, "worker", "default", "rtx-3060", "n1", "gpu-0-3g-71gb-4")
	manifests(t, openCluster(t, c, worker), true)
}

// TestManifestsOfWholeGPUs: a session keeps the whole GPU that its claim has; one that another claim has is left out.
func TestManifestsOfWholeGPUs(t *testing.T) {
	c := projecttest.NewCluster(3, "h200")
	c.Take("other", "n1", "gpu-0-whole")
	own := c.Take("big-12345678", "n3", "gpu-0-whole")
	own["metadata"] = projecttest.Object{"name": "x", "namespace": "default", "ownerReferences": []any{projecttest.Object{"kind": "Pod", "name": "big-7c9d8b6f5d-abcde"}}}
	own["spec"] = projecttest.Object{"devices": projecttest.Object{"requests": []any{projecttest.Object{"exactly": projecttest.Object{"deviceClassName": "cosplay-a100-80gb"}}}}}
	text, warnings := manifests(t, openCluster(t, c, `
session "big" {
  host    = "cluster"
  target  = "a100-80gb"
  image   = "registry.example/trainer:1"
  command = ["train"]
}
`), true)
	if !strings.Contains(text, projecttest.UUID(3, 0)) || !strings.Contains(text, `profile == \"whole\"`) {
		t.Error(text)
	}
	if want := "GPU 0 of node n1 is left out: claim default/other has the whole of it"; strings.Join(warnings, ";") != want {
		t.Errorf("warnings: %q", warnings)
	}
}

// TestManifestsOfEqualUUIDs: simulated nodes have GPUs with the same UUIDs, and pods are kept on the right node.
func TestManifestsOfEqualUUIDs(t *testing.T) {
	p := openCluster(t, projecttest.NewCluster(2, "h200"), "")
	path := filepath.Join(p.Dir, "cluster.json")
	captured, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	projecttest.Write(t, p.Dir, clustered+`
session "worker" {
  host    = "cluster"
  count   = 14
  target  = "2060"
  image   = "registry.example/trainer:1"
  command = ["train"]
}
`)
	if err := os.WriteFile(path, bytes.ReplaceAll(captured, []byte(projecttest.UUID(2, 0)), []byte(projecttest.UUID(1, 0))), 0o644); err != nil {
		t.Fatal(err)
	}
	text, _ := manifests(t, projecttest.Open(t, p.Dir), true)
	for _, node := range []string{`- "n1"`, `- "n2"`} {
		if n := strings.Count(text, node); n != 7 {
			t.Errorf("%d pods are on the node %s", n, node)
		}
	}
	if n := strings.Count(text, `parentUUID == \"`+projecttest.UUID(1, 0)+`\"`); n != 14 {
		t.Errorf("%d claims name the UUID", n)
	}
}

// TestManifestsHaveNoSecrets: a sensitive value stops everything, and is in no message.
func TestManifestsHaveNoSecrets(t *testing.T) {
	dir := projecttest.New(t, clustered+`
variable "key" {
  default   = "hunter22"
  sensitive = true
}
session "worker" {
  host    = "cluster"
  target  = "2060"
  image   = "registry.example/trainer:1"
  command = ["train"]
  env     = { KEY = var.key }
}
`)
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), projecttest.NewCluster(1, "h200").JSON(), 0o644); err != nil {
		t.Fatal(err)
	}
	_, _, diags, err := project.Open(project.Options{Dir: dir, Clusters: true})
	if said := fmt.Sprint(diags, err); !strings.Contains(said, "a sensitive value cannot be written into a manifest") || strings.Contains(said, "hunter22") {
		t.Error(said)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 2 {
		t.Errorf("there are %v", files)
	}
}
