package cli

import (
	"fmt"
	"testing"

	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// TestFleetGraphGrows: the edges between blocks of many sessions are as many as the sessions, not their product.
func TestFleetGraphGrows(t *testing.T) {
	for _, n := range []int{2, manySessions, 300} {
		var intent config.Intent
		for i := range n {
			server := config.Session{Address: resource.Nth("server", i)}
			worker := config.Session{Address: resource.Nth("worker", i), DependsOn: []string{"server"}}
			worker.Lifecycle.Triggers = []config.Trigger{{Of: resource.Reference{Address: resource.One("server"), Block: true}}, {Of: resource.Reference{Address: resource.Nth("server", 1)}}}
			intent.Sessions = append(intent.Sessions, server, worker)
		}
		g := fleetGraph(&intent, resource.Prior{})
		nodes, edges := 2*n, n*(n+n)
		if n >= manySessions { // each worker to the block for two reasons and to one server, and the block to each server
			nodes, edges = 2*n+1, 4*n
		}
		if len(g.Nodes) != nodes || len(g.Edges) != edges {
			t.Errorf("%d sessions of a block: %d nodes and %d edges, want %d and %d", n, len(g.Nodes), len(g.Edges), nodes, edges)
		}
		if want := fmt.Sprintf("server\n%d sessions", n); n >= manySessions && g.Nodes[len(g.Nodes)-1].Label != want {
			t.Errorf("the node of the block says %q", g.Nodes[len(g.Nodes)-1].Label)
		}
	}
}
