package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/public"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

func (inv *invocation) graph() *cobra.Command {
	var steps bool
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Draw what depends on what, for Graphviz",
		Long: `Write a graph in the DOT language: the sessions with the hosts that they are on, the GPUs that they have, and the sessions whose changes replace them; or, with --steps, the steps of the plan, each pointing at those that it waits for.

  cosplay graph | dot -Tsvg > fleet.svg`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return inv.runGraph(cmd.Context(), steps) },
	}
	cmd.Flags().BoolVar(&steps, "steps", false, "the steps of the plan instead of the sessions")
	return cmd
}

func (inv *invocation) runGraph(ctx context.Context, steps bool) error {
	inv.asks = true
	p, files, diags, err := inv.openWith(project.Options{ReadOnly: !steps})
	if err != nil {
		return err
	}
	defer p.Close()
	var g render.Graph
	if steps {
		outlook, _, err := inv.outlook(ctx, p, files, diags, project.Aim{})
		if err != nil {
			return err
		}
		g = render.StepGraph(outlook.Plan, outlook.Live)
	} else {
		prior, _, err := p.Remembered()
		if err != nil {
			return err
		}
		g = fleetGraph(p, prior)
	}
	if inv.json {
		return render.GraphJSON(inv.Out, g)
	}
	return render.GraphDOT(inv.Out, g)
}

// fleetGraph draws the sessions of the configuration, as far as the state knows
// where they are.
func fleetGraph(p *project.Project, prior resource.Prior) render.Graph {
	var g render.Graph
	for _, h := range p.Intent.Hosts {
		label := h.Name
		if h.Simulate != "" {
			label += "\n" + h.Simulate
		}
		g.Add(public.Node{ID: "host." + h.Name, Kind: render.HostNode, Label: label})
	}
	for _, s := range p.Intent.Sessions {
		id, host := graphID(s), "host."+s.Host
		label := strings.TrimPrefix(id, "session.")
		if s.Target.Key != "" {
			label += "\n" + s.Target.ShortName()
		}
		g.Add(public.Node{ID: id, Kind: render.SessionNode, Label: label})
		was, made := prior.Session(s.Address)
		if !made {
			if s.Host != "" {
				g.Need(id, host, "")
			}
			continue
		}
		gpu := was.Slice.GPU
		g.Add(public.Node{ID: gpu, Kind: render.GPUNode, Label: gpu})
		g.Need(id, gpu, was.Slice.String())
		g.Need(gpu, host, "")
	}
	for _, s := range p.Intent.Sessions {
		if len(s.DependsOn)+len(s.Lifecycle.Triggers) == 0 {
			continue
		}
		for _, of := range p.Intent.Sessions {
			if slices.Contains(s.DependsOn, of.Address.Name) {
				g.Need(graphID(s), graphID(of), "depends_on")
			}
			if slices.ContainsFunc(s.Lifecycle.Triggers, func(t config.Trigger) bool { return t.Of.Covers(of.Address) }) {
				g.Need(graphID(s), graphID(of), "replace_triggered_by")
			}
		}
	}
	return g
}

// graphID is a session's address; of a block that has as many as a variable
// without a value says, that of all.
func graphID(s config.Session) string {
	if slices.Contains(s.Open, "count") {
		return "session." + s.Address.Name + "[...]"
	}
	return s.Address.String()
}
