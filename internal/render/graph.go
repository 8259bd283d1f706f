package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// Graph is a picture of what depends on what.
type Graph struct {
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`

	known map[any]bool
}

// isNew notes a node or an edge.
func (g *Graph) isNew(thing any) bool {
	if g.known == nil {
		g.known = map[any]bool{}
	}
	seen := g.known[thing]
	g.known[thing] = true
	return !seen
}

// Node is a thing in a graph.
type Node struct {
	ID    string   `json:"id"`
	Kind  NodeKind `json:"kind"`
	Label string   `json:"label"` // lines are apart by \n
}

// NodeKind is what a node stands for.
type NodeKind string

// The kinds of nodes.
const (
	HostNode    NodeKind = "host"
	GPUNode     NodeKind = "gpu"
	SessionNode NodeKind = "session"
	StepNode    NodeKind = "step"
)

// Edge says that one thing needs another.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Why  string `json:"why,omitempty"`
}

// Add puts a node into the graph, once.
func (g *Graph) Add(n Node) {
	if g.isNew(n.ID) {
		g.Nodes = append(g.Nodes, n)
	}
}

// Need says that one node needs another, once.
func (g *Graph) Need(from, to, why string) {
	if e := (Edge{from, to, why}); g.isNew(e) {
		g.Edges = append(g.Edges, e)
	}
}

// StepGraph is that of a plan: each step points at those that it waits for.
func StepGraph(p *plan.Plan, live resource.Live) Graph {
	var g Graph
	for _, s := range p.Steps {
		g.Nodes = append(g.Nodes, Node{s.ID, StepNode, withGPUNames(live, s.Title)})
		for _, need := range slices.Concat(s.Needs, s.After) {
			g.Edges = append(g.Edges, Edge{From: s.ID, To: need})
		}
	}
	return g
}

// shapes draw the kinds of nodes.
var shapes = map[NodeKind]string{HostNode: "house", GPUNode: "box3d", SessionNode: "box", StepNode: "box"}

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
	return writeJSON(w, struct {
		FormatVersion int    `json:"format_version"`
		Nodes         []Node `json:"nodes"`
		Edges         []Edge `json:"edges"`
	}{formatVersion, list(g.Nodes), list(g.Edges)})
}

// dotText quotes a text as Graphviz reads it.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
