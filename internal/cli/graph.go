package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/public"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

func graphCommand(inv *invocation) *cobra.Command {
	var steps bool
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Draw the dependencies of sessions or steps, for Graphviz",
		Long: `Write a graph in the DOT language: the sessions with their hosts, their GPUs, and the sessions whose changes replace them, a block of 9 or more as one; or, with --steps, the steps of the plan, each with edges to the steps that it waits for.

  cosplay graph | dot -Tsvg > fleet.svg`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inv.asks = true
			p, err := inv.open(project.Options{ReadOnly: !steps})
			if err != nil {
				return err
			}
			var g render.Graph
			if steps {
				outlook, _, err := inv.outlook(cmd.Context(), p, project.Aim{})
				if err != nil {
					return err
				}
				g = render.StepGraph(outlook.Plan, outlook.Live)
			} else {
				prior, _, err := p.Remembered()
				if err != nil {
					return err
				}
				g = fleetGraph(p.Intent, prior)
			}
			if inv.json {
				return render.GraphJSON(inv.Out, g)
			}
			return render.GraphDOT(inv.Out, g)
		},
	}
	cmd.Flags().BoolVar(&steps, "steps", false, "the steps of the plan instead of the sessions")
	return cmd
}

// fleetGraph draws the sessions of the configuration, with the slices that the state has.
func fleetGraph(intent *config.Intent, prior resource.Prior) render.Graph {
	var g render.Graph
	for _, h := range intent.Hosts {
		label := h.Name
		if h.Simulate != "" {
			label += "\n" + h.Simulate
		}
		g.Add(public.Node{ID: "host." + h.Name, Kind: render.HostNode, Label: label})
	}
	for _, s := range intent.Sessions {
		id := graphID(s)
		label := strings.TrimPrefix(id, "session.")
		if s.Target.Key != "" {
			label += "\n" + s.Target.ShortName()
		}
		g.Add(public.Node{ID: id, Kind: render.SessionNode, Label: label})
		if was, made := prior.Session(s.Address); made {
			for _, slice := range was.Slices() {
				g.Add(public.Node{ID: slice.GPU, Kind: render.GPUNode, Label: slice.GPU})
				g.Need(id, slice.GPU, slice.String())
				g.Need(slice.GPU, "host."+slice.Host, "")
			}
			continue
		}
		for _, h := range intent.Hosts {
			if s.MayBeOn(h.Name) {
				g.Need(id, "host."+h.Name, "")
			}
		}
	}
	blocks := map[string][]config.Session{}
	for _, s := range intent.Sessions {
		blocks[s.Address.Name] = append(blocks[s.Address.Name], s)
	}
	for _, s := range intent.Sessions {
		for _, name := range s.DependsOn {
			needBlock(&g, s, name, blocks[name], "depends_on")
		}
		for _, t := range s.Lifecycle.Triggers {
			covered := blocks[t.Of.Address.Name]
			if !t.Of.Block {
				i := slices.IndexFunc(covered, func(o config.Session) bool { return t.Of.Covers(o.Address) })
				covered = covered[max(i, 0) : i+1] // that one, or none
			}
			needBlock(&g, s, t.Of.Address.Name, covered, "replace_triggered_by")
		}
	}
	return g
}

// manySessions is from how many sessions on a block has a node: an edge from each of a thousand sessions to each of
// another thousand shows nothing.
const manySessions = 9

// needBlock adds the edges from a session to those of a block.
func needBlock(g *render.Graph, s config.Session, block string, of []config.Session, why string) {
	if len(of) < manySessions {
		for _, o := range of {
			g.Need(graphID(s), graphID(o), why)
		}
		return
	}
	id := "session." + block
	if g.Add(public.Node{ID: id, Kind: render.SessionNode, Label: fmt.Sprintf("%s\n%d sessions", block, len(of))}) {
		for _, o := range of {
			g.Need(id, graphID(o), "")
		}
	}
	g.Need(graphID(s), id, why)
}

// graphID is a session's address; if a variable without a value decides the number of
// sessions, that of the block.
func graphID(s config.Session) string {
	if slices.Contains(s.Open, "count") {
		return "session." + s.Address.Name + "[...]"
	}
	return s.Address.String()
}
