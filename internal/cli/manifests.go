package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"cosplay/internal/kubernetes"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

func manifestsCommand(inv *invocation) *cobra.Command {
	var pin bool
	cmd := &cobra.Command{
		Use:   "manifests",
		Short: "Print the sessions of Kubernetes clusters as manifests",
		Long: `Plan the sessions of all hosts that are Kubernetes clusters together, and print them as YAML for kubectl apply or a GitOps tool: a Deployment for each. Nothing is changed, and no cluster is asked: the file that the host block names has what kubectl printed of it.

Without --pin, pods name the class of their target, and the scheduler chooses GPU and slice. With --pin, each session has a claim for the GPU, the slice and the node that the plan has for it: sessions are packed on as few GPUs as plan shows. A session whose claim the cluster has already stays in place.

Exit codes: 0 all sessions fit and are printed; 1 error, and nothing is printed.`,
		Example: `  cosplay manifests --pin | kubectl apply -f -`,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			if inv.json {
				return errors.New("manifests are YAML. Fix: leave --json out; cosplay plan --json has the fits")
			}
			p, err := inv.open(project.Options{Clusters: true})
			if err != nil {
				return err
			}
			planned, diags := p.PlanClusters()
			if planned == nil && !diags.HasErrors() {
				return errors.New("no host is a Kubernetes cluster. Fix: add kubernetes = \"cluster.json\" to a host block, with the output of " + kubernetes.Command)
			}
			if planned != nil && !pin {
				diags = append(diags, kubernetes.CheckClasses(planned.Fleet.Sessions)...)
			}
			prior, _ := p.Store.Load() // for checks; one that cannot be read has no sessions
			if diags = slices.Concat(p.warnings, diags, p.Checks(prior, resource.Live{})); diags.HasErrors() {
				return inv.refuse(diags, p.files)
			}
			if on := planned.Hosts(); len(on) > 1 {
				return fmt.Errorf("the sessions are on the clusters %s, and manifests are of one. Fix: keep a project for each cluster", prose.And(on))
			}
			text, err := planned.Fleet.Manifests(pin)
			if err != nil {
				return err
			}
			render.Diagnostics(inv.Err, inv.style(inv.Err), diags, p.files)
			_, err = inv.Out.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&pin, "pin", false, "bind each session to the GPU, the slice and the node that the plan has for it")
	return cmd
}

// clustersView is the view of a plan for clusters; nil without any.
func (inv *invocation) clustersView(c *project.ClusterPlan) *render.ClustersView {
	if c == nil {
		return nil
	}
	return &render.ClustersView{Live: c.Live, Plan: c.Plan, Next: inv.flags()}
}
