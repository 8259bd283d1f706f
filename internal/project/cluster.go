package project

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

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
)

// clusterError says what is wrong with the file of a cluster.
type clusterError struct{ path, why string }

func (e *clusterError) Error() string   { return e.path + " " + e.why }
func (e *clusterError) Summary() string { return "cannot plan for the cluster of " + e.path }
func (e *clusterError) Detail() string  { return prose.Stop(e.Error()) }

// readCluster reads the file of a cluster, once.
func (p *Project) readCluster(path string) error {
	shown := path
	if inside, err := filepath.Rel(p.Dir, path); err == nil && filepath.IsLocal(inside) {
		shown = inside
	}
	if _, read := p.captured[path]; read {
		return nil
	}
	data, _, err := durable.ReadOwned(path, kubernetes.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &clusterError{shown, fmt.Sprintf("does not exist. Fix: %s > %s", kubernetes.Command, shown)}
	}
	if err != nil {
		return &clusterError{shown, "cannot be read: " + err.Error()}
	}
	captured, err := kubernetes.Decode(data)
	if err != nil {
		return &clusterError{shown, err.Error()}
	}
	if p.captured == nil {
		p.captured = map[string]kubernetes.Cluster{}
	}
	p.captured[path] = captured
	return nil
}

// checkClusters checks what the configuration says of clusters, and that the command is one for a project that has nothing
// else.
func (p *Project) checkClusters(o Options) hcl.Diagnostics {
	first := p.Clusters.Hosts[0]
	if len(p.Intent.Hosts) == 0 && !o.Clusters {
		return hcl.Diagnostics{{Severity: hcl.DiagError, Subject: first.Ranges.Of("kubernetes"), Summary: fmt.Sprintf("host %q is a Kubernetes cluster", first.Name),
			Detail: "cosplay plans for it, and neither asks nor changes it. Run cosplay manifests, which prints the sessions for kubectl apply."}}
	}
	if len(p.Intent.Missed) > 0 {
		return nil
	}
	return kubernetes.Check(p.Clusters)
}

// OnCluster refuses names of sessions of clusters, as users type them.
func (l *Fleet) OnCluster(names ...string) error {
	if l.Clusters == nil {
		return nil
	}
	all := prose.Each(l.Clusters.Sessions, func(s config.Session) resource.Address { return s.Address })
	for _, name := range names {
		if found, err := state.Matching(name, all); err == nil {
			return fmt.Errorf("%s is a session of a Kubernetes cluster, which cosplay neither asks nor changes. Run cosplay manifests, which prints it for kubectl apply", found[0])
		}
	}
	return nil
}

// worlds are the clusters as placement sees them.
type worlds map[string]kubernetes.World

func (l *Fleet) worlds(namespace string) worlds {
	all, names := worlds{}, kubernetes.Names(l.Clusters.Sessions)
	for _, h := range l.Clusters.Hosts {
		sessions := prose.Only(l.Clusters.Sessions, func(s config.Session) bool { return s.Host == h.Name })
		all[h.Name] = l.captured[h.Kubernetes].World(h.Name, sessions, names, namespace)
	}
	return all
}

// hosts are those of the worlds, by name.
func (w worlds) hosts() (all []resource.Host) {
	for _, name := range slices.Sorted(maps.Keys(w)) {
		all = append(all, w[name].Host)
	}
	return all
}

// ClusterPlan is where the sessions of clusters would run.
type ClusterPlan struct {
	Live    resource.Live
	Plan    *plan.Plan // it creates each of the sessions, and is not for apply
	Fleet   kubernetes.Fleet
	LeftOut []string // what is not used, in sentences without a full stop
}

// PlanClusters places the sessions of all clusters together; nil without clusters. Diagnostics have an error for each that
// does not fit.
func (l *Fleet) PlanClusters(namespace string) (*ClusterPlan, hcl.Diagnostics) {
	if l.Clusters == nil {
		return nil, nil
	}
	all := l.worlds(namespace)
	prior, live := resource.Prior{}, resource.Live{Hosts: all.hosts()}
	c := &ClusterPlan{Fleet: kubernetes.Fleet{Sessions: l.Clusters.Sessions, Placed: map[resource.Address]resource.Slice{}, Worlds: all,
		Names: kubernetes.Names(l.Clusters.Sessions), Namespace: namespace}}
	for _, h := range live.Hosts {
		w := all[h.Name]
		prior.Sessions = append(prior.Sessions, w.Kept...)
		c.Live.Hosts = append(c.Live.Hosts, w.Shown())
		c.LeftOut = append(c.LeftOut, w.LeftOut...)
	}
	slices.SortFunc(prior.Sessions, func(a, b resource.PriorSession) int { return a.Address.Compare(b.Address) })
	desired, diags := resolve.Desired(l.Clusters, resolve.Person{}, prior, live, resolve.Scope{})
	if diags.HasErrors() {
		return c, diags
	}
	for _, s := range desired.Sessions {
		c.Fleet.Placed[s.Address] = s.Slice
	}
	c.Plan = plan.Build(desired, resource.Prior{}, c.Live, diff.Options{})
	return c, append(diags, l.Clusters.EvalChecks(planned(c.Plan, c.Live))...)
}

// ClassErrors are what keeps the sessions from manifests without a pin.
func (c *ClusterPlan) ClassErrors() hcl.Diagnostics { return kubernetes.CheckClasses(c.Fleet.Sessions) }

// Hosts are those that have sessions, by name.
func (c *ClusterPlan) Hosts() []string {
	return slices.Compact(slices.Sorted(slices.Values(prose.Each(c.Fleet.Sessions, func(s config.Session) string { return s.Host }))))
}

// Manifests are the sessions of the clusters as YAML; with pin each is bound to the place that the plan has for it.
func (c *ClusterPlan) Manifests(pin bool) ([]byte, error) {
	c.Fleet.Pin = pin
	return c.Fleet.Manifests()
}
