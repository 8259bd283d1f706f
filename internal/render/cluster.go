package render

import (
	"fmt"

	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// ClustersView is where the sessions of Kubernetes clusters would run. cosplay manifests prints them; apply leaves them alone.
type ClustersView struct {
	Live resource.Live
	Plan *plan.Plan
	Next []string // arguments of the command that prints the manifests
}

// clusters shows the GPUs of clusters with their sessions.
func (p *page) clusters(v PlanView) {
	c := v.Clusters
	if c == nil || len(c.Plan.Desired.Sessions) == 0 {
		return
	}
	inner := PlanView{Live: c.Live, Plan: c.Plan, Warnings: v.Warnings, sharers: resource.Sharers(c.Plan.Desired.Sessions)}
	if !v.onlyClusters() {
		p.gap()
		p.print(0, inked(strong, "Kubernetes:"))
	}
	p.gpus(inner)
}

// manifests counts what the manifests have, and names the command that prints them.
func (p *page) manifests(v PlanView) {
	c := v.Clusters
	if c == nil {
		return
	}
	p.gap()
	p.lead(0, strong, "Manifests:", c.counts()+". cosplay changes nothing on a cluster.")
	if !v.Applying && len(c.Plan.Desired.Sessions) > 0 {
		p.next(suggest("manifests", append(c.Next, "--pin")))
	}
}

// counts is "14 sessions for 2 GPUs".
func (c *ClustersView) counts() string {
	gpus := map[resource.GPUKey]bool{}
	for _, s := range c.Plan.Desired.Sessions {
		gpus[s.Slice.On()] = true
	}
	return fmt.Sprintf("%s for %s", prose.Count(len(c.Plan.Desired.Sessions), "session"), prose.Count(len(gpus), "GPU"))
}

// json is the same as data.
func (c *ClustersView) json() *public.ClustersPlan {
	if c == nil {
		return nil
	}
	sharers := resource.Sharers(c.Plan.Desired.Sessions)
	return &public.ClustersPlan{Hosts: each(c.Live.Hosts, func(h resource.Host) string { return h.Name }),
		Fits: each(c.Plan.Desired.Sessions, func(s resource.Session) public.ClusterFit {
			gpu, _ := c.Live.GPU(s.Slice.Host, s.Slice.GPU)
			return public.ClusterFit{Node: gpu.Node, SessionFigures: sessionFigures(s, sharers[s.Address])}
		})}
}
