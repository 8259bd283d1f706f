package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/durable"
	"cosplay/internal/kubernetes"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
	"cosplay/internal/state"
	"cosplay/internal/terminal"
)

// readCluster reads the file of a cluster.
func (l *Fleet) readCluster(path string) (c kubernetes.Cluster, err error) {
	shown := path
	if inside, err := filepath.Rel(l.Machine.Dir, path); err == nil && filepath.IsLocal(inside) {
		shown = inside
	}
	data, _, err := durable.ReadOwned(path, kubernetes.MaxFile)
	if err == nil {
		c, err = kubernetes.Decode(data)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("it does not exist")
	}
	if err != nil {
		err = fmt.Errorf("%s cannot be used: %w. Fix:\n    %s > %s", shown, err, kubernetes.Command, terminal.ShellWord(shown))
	}
	return c, err
}

// checkClusters checks what the configuration says of clusters, and that the command is one for a project that has nothing
// else. Where the state has machines, knowsHosts says what becomes of them.
func (p *Project) checkClusters(o Options) hcl.Diagnostics {
	prior, err := p.Store.Load()
	if first := p.Clusters.Hosts[0]; len(p.Intent.Hosts) == 0 && !o.Clusters && err == nil && len(prior.Sessions)+len(prior.GPUs) == 0 {
		return hcl.Diagnostics{{Severity: hcl.DiagError, Subject: first.Ranges.Of("kubernetes"), Summary: fmt.Sprintf("host %q is a Kubernetes cluster", first.Name),
			Detail: "cosplay plans for it, and neither asks nor changes it. Run cosplay manifests, which prints the sessions for kubectl apply."}}
	}
	if len(p.Intent.Missed) > 0 {
		return nil
	}
	return kubernetes.Check(p.Clusters)
}

// OnCluster explains why a command has not found one of the names that a user typed, if it is only that of sessions of clusters.
func (l *Fleet) OnCluster(err error, names ...string) error {
	if err == nil || l.Clusters == nil {
		return err
	}
	all := prose.Each(l.Clusters.Sessions, func(s config.Session) resource.Address { return s.Address })
	for _, name := range names {
		_, other := state.Matching(name, l.Addresses())
		if found, none := state.Matching(name, all); none == nil && other != nil {
			return fmt.Errorf("%s is a session of a Kubernetes cluster, which cosplay neither asks nor changes. Run cosplay manifests, which prints it for kubectl apply", found[0])
		}
	}
	return err
}

// worlds are the clusters as placement sees them, by host. Diagnostics have an error for each whose file cannot be used, and
// warnings of what is not used.
func (l *Fleet) worlds() (all map[string]kubernetes.World, diags hcl.Diagnostics) {
	all = map[string]kubernetes.World{}
	names := kubernetes.Names(l.Clusters.Sessions)
	var read []kubernetes.Cluster
	for n, h := range l.Clusters.Hosts {
		refuse := func(summary, detail string) {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Subject: h.Ranges.Of("kubernetes"), Summary: summary, Detail: detail})
		}
		captured, err := l.readCluster(h.Kubernetes)
		if err != nil {
			refuse(fmt.Sprintf("cannot plan for the cluster %q", h.Name), err.Error())
		}
		for i, other := range read[:n] {
			if node := captured.Shared(other); node != "" {
				refuse(fmt.Sprintf("this is the same cluster as host %q", l.Clusters.Hosts[i].Name), fmt.Sprintf("Both have GPUs of the node %s, which cosplay would use twice. Keep one of the two blocks.", node))
			}
		}
		read = append(read, captured)
		sessions := prose.Only(l.Clusters.Sessions, func(s config.Session) bool { return s.Host == h.Name })
		w := captured.World(h, sessions, names)
		for _, text := range w.Warnings {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: text, Subject: &hcl.Range{}})
		}
		all[h.Name] = w
	}
	return all, diags
}

// ClusterPlan is where the sessions of clusters would run.
type ClusterPlan struct {
	Live  resource.Live
	Plan  *plan.Plan // it creates each of the sessions, and is not for apply
	Fleet kubernetes.Fleet
}

// PlanClusters places the sessions of all clusters together, once; nil without clusters, and where a file cannot be used.
// Diagnostics have an error for each of these, or for each session that does not fit.
func (l *Fleet) PlanClusters() (*ClusterPlan, hcl.Diagnostics) {
	if l.Clusters == nil {
		return nil, nil
	}
	if l.onClusters == nil {
		l.onClusters = sync.OnceValues(l.planClusters)
	}
	return l.onClusters()
}

// everywhere adds to what is known of sessions where those of clusters would run.
func (l *Fleet) everywhere(facts config.Lives) config.Lives {
	return func(a resource.Address) (config.LiveSession, bool) {
		if l.Clusters == nil || l.Clusters.Session(a) == nil {
			return facts(a)
		}
		c, _ := l.PlanClusters()
		if c == nil || c.Plan == nil {
			return config.LiveSession{}, false
		}
		return planned(c.Plan, c.Live)(a)
	}
}

func (l *Fleet) planClusters() (*ClusterPlan, hcl.Diagnostics) {
	all, diags := l.worlds()
	if diags.HasErrors() {
		return nil, diags
	}
	var prior resource.Prior
	c := &ClusterPlan{Fleet: kubernetes.Fleet{Sessions: l.Clusters.Sessions, Placed: map[resource.Address]resource.Slice{}, Worlds: all,
		Names: kubernetes.Names(l.Clusters.Sessions)}}
	for _, h := range l.Clusters.Hosts {
		w := all[h.Name]
		prior.Sessions, c.Live.Hosts = append(prior.Sessions, w.Kept...), append(c.Live.Hosts, w.Host)
	}
	slices.SortFunc(prior.Sessions, func(a, b resource.PriorSession) int { return a.Address.Compare(b.Address) })
	desired, wrong := resolve.Desired(l.Clusters, resolve.Person{}, prior, c.Live, resolve.Scope{})
	if diags = append(diags, wrong...); diags.HasErrors() {
		return c, diags
	}
	for _, s := range desired.Sessions {
		c.Fleet.Placed[s.Address] = s.Slice
	}
	c.Plan = plan.Build(desired, resource.Prior{}, c.Live, diff.Options{})
	return c, diags
}

// Hosts are those that have sessions, by name.
func (c *ClusterPlan) Hosts() []string {
	return slices.Compact(slices.Sorted(slices.Values(prose.Each(c.Fleet.Sessions, func(s config.Session) string { return s.Host }))))
}
