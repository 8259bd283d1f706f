package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"cosplay/internal/plan"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// Graph has things and what each of them needs.
type Graph struct {
	Nodes []public.Node
	Edges []public.Edge

	nodes map[string]bool // that Add has put into it
	edges map[public.Edge]bool
}

// The kinds of nodes.
const (
	HostNode    = "host"
	GPUNode     = "gpu"
	SessionNode = "session"
	StepNode    = "step"
)

// Add puts a node into the graph, once, and reports whether it was new.
func (g *Graph) Add(n public.Node) bool {
	if g.nodes == nil {
		g.nodes = map[string]bool{}
	}
	if g.nodes[n.ID] {
		return false
	}
	g.nodes[n.ID] = true
	g.Nodes = append(g.Nodes, n)
	return true
}

// Need adds the edge from a node to one that it needs, once.
func (g *Graph) Need(from, to, why string) {
	if g.edges == nil {
		g.edges = map[public.Edge]bool{}
	}
	if e := (public.Edge{From: from, To: to, Why: why}); !g.edges[e] {
		g.edges[e] = true
		g.Edges = append(g.Edges, e)
	}
}

// StepGraph is the graph of a plan: each step points at those that it waits for.
func StepGraph(p *plan.Plan, live resource.Live) Graph {
	var g Graph
	for _, s := range p.Steps {
		g.Nodes = append(g.Nodes, public.Node{ID: s.ID, Kind: StepNode, Label: words.Step(s, live)})
		for _, need := range slices.Concat(s.Needs, s.After) {
			g.Edges = append(g.Edges, public.Edge{From: s.ID, To: need})
		}
	}
	return g
}

// shapes draw the kinds of nodes.
var shapes = map[string]string{HostNode: "house", GPUNode: "box3d", SessionNode: "box", StepNode: "box"}

// GraphDOT writes a graph in the language of Graphviz.
func GraphDOT(w io.Writer, g Graph) error {
	var b strings.Builder
	b.WriteString("digraph cosplay {\n  rankdir = \"RL\"\n  node [fontname = \"sans-serif\"]\n  edge [fontname = \"sans-serif\"]\n\n")
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "  %s [label = %s, shape = %s]\n", dotText(n.ID), dotText(n.Label), shapes[n.Kind])
	}
	b.WriteByte('\n')
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s -> %s", dotText(e.From), dotText(e.To))
		if e.Why != "" {
			fmt.Fprintf(&b, " [label = %s, style = dashed]", dotText(e.Why))
		}
		b.WriteByte('\n')
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// GraphJSON writes a graph as data.
func GraphJSON(w io.Writer, g Graph) error {
	return JSON(w, public.Graph{Format: public.V1, Nodes: list(g.Nodes), Edges: list(g.Edges)})
}

// dotText quotes a text as Graphviz reads it.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
