package render

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/public"
)

func TestGraphDOT(t *testing.T) {
	var (
		g   Graph
		out bytes.Buffer
	)
	g.Add(public.Node{ID: `session.a["x"]`, Kind: SessionNode, Label: "a[\"x\"]\nRTX 2060"})
	g.Add(public.Node{ID: "host.lab", Kind: HostNode, Label: `C:\lab`})
	g.Add(public.Node{ID: "host.lab", Kind: HostNode, Label: "again"})
	g.Need(`session.a["x"]`, "host.lab", "")
	g.Need(`session.a["x"]`, "host.lab", "")
	g.Need("host.lab", "host.lab", "why")
	if err := GraphDOT(&out, g); err != nil {
		t.Fatal(err)
	}
	const want = `digraph cosplay {
  rankdir = "RL"
  node [fontname = "sans-serif"]
  edge [fontname = "sans-serif"]

  "session.a[\"x\"]" [label = "a[\"x\"]\nRTX 2060", shape = box]
  "host.lab" [label = "C:\\lab", shape = house]

  "session.a[\"x\"]" -> "host.lab"
  "host.lab" -> "host.lab" [label = "why", style = dashed]
}
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

func TestStepGraphHasAllNeeds(t *testing.T) {
	w := one()
	p := w.plan()
	g := StepGraph(p, w.live)
	needs := 0
	for _, s := range p.Steps {
		needs += len(s.Needs)
	}
	if len(g.Nodes) != len(p.Steps) || len(g.Edges) != needs || needs == 0 {
		t.Errorf("%d nodes of %d steps, %d edges of %d needs", len(g.Nodes), len(p.Steps), len(g.Edges), needs)
	}
}
