package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/pattern"
	"cosplay/internal/prose"
)

var labelForm = pattern.Of(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// namespace reads the name of a namespace of Kubernetes.
func (v value) namespace() (string, bool) {
	name, ok := v.text()
	return name, ok && v.typed(labelForm().MatchString(name), fmt.Sprintf("%q cannot be the name of a namespace", name), "Write small letters, digits and hyphens, at most 63.")
}

// checkCluster refuses what a block says of a cluster that cosplay cannot change.
func (l *loader) checkCluster(h Host) {
	for _, a := range hostSchema.Attributes {
		if a.Name != "kubernetes" && a.Name != "namespace" && h.Ranges.has(a.Name) {
			l.complain(h.Ranges.At(a.Name), fmt.Sprintf("a host with kubernetes has no %q", a.Name),
				"cosplay plans for the cluster and changes nothing on it: cosplay-node on each node does. Remove this line, or kubernetes.")
		}
	}
}

// Apart divides the configuration into what cosplay can apply and the clusters with their sessions, which it only plans; nil
// where there is no cluster.
func (i *Intent) Apart() (applied, clusters *Intent) {
	if !slices.ContainsFunc(i.Hosts, Host.cluster) {
		return i, nil
	}
	rest, all := *i, &Intent{Variables: i.Variables, Missed: i.Missed, Files: i.Files, l: i.l}
	rest.Hosts, all.Hosts = prose.Only(i.Hosts, func(h Host) bool { return !h.cluster() }), prose.Only(i.Hosts, Host.cluster)
	for n := range all.Hosts {
		all.Hosts[n].Runtime, all.Hosts[n].Namespace = KubernetesRuntime, cmp.Or(all.Hosts[n].Namespace, "default")
	}
	on := func(of *Intent) []Session {
		return prose.Only(i.Sessions, func(s Session) bool { return of.Host(s.Host) != nil })
	}
	rest.Sessions, all.Sessions = on(&rest), on(all)
	return &rest, all
}

// KubernetesRuntime is where the sessions of a cluster run. It is no runtime of this machine.
const KubernetesRuntime = "kubernetes"

func (h Host) cluster() bool { return h.Kubernetes != "" }

// checkClustered refuses what needs an apply and names a session of a cluster.
func (l *loader) checkClustered() {
	on := map[string]bool{} // names of session blocks with a session on a cluster
	for i := range l.sessions {
		host := first(l.hosts, func(h *Host) bool { return h.Name == l.sessions[i].Host })
		if host != nil && host.cluster() {
			on[l.sessions[i].Address.Name] = true
		}
	}
	for _, o := range l.outputs {
		for _, mention := range o.source.mentions {
			if name, is := strings.CutPrefix(variableName(mention), "session."); is && on[name] {
				l.complain(mention.SourceRange(), "an output cannot use a session of a Kubernetes cluster",
					"apply records outputs, and cosplay applies nothing to a cluster. Write a check block, which plan and manifests evaluate, or remove the output.")
			}
		}
	}
	for _, one := range l.imports {
		if on[one.To.Name] {
			l.complain(one.Range, "a session of a Kubernetes cluster cannot be imported", "cosplay applies nothing to a cluster. Remove this block.")
		}
	}
}
