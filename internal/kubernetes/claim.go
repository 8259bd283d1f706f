package kubernetes

import (
	"encoding/json"
	"fmt"

	"cosplay/internal/config"
	"cosplay/internal/pattern"
	"cosplay/internal/resource"
)

// claim says whose a claim is.
type claim struct {
	namespace, name string
	session         string // the address of the session that cosplay wrote it for
	pod             string // for which Kubernetes made it, from the pod's limits
	class           string
	parameters      string
}

func (c claim) String() string { return fmt.Sprintf("%s/%s", c.namespace, c.name) }

// claimOf reads whose a claim is.
func claimOf(c claimObject) claim {
	by := claim{namespace: c.Metadata.Namespace, name: c.Metadata.Name}
	if c.Metadata.Labels[managedBy] == plainClass {
		by.session = c.Metadata.Annotations[sessionNote]
	}
	for _, o := range c.Metadata.Owners {
		if o.Kind == "Pod" {
			by.pod = o.Name
		}
	}
	if requests := c.Spec.Devices.Requests; len(requests) == 1 && requests[0].Exactly != nil {
		by.class = requests[0].Exactly.Class
	}
	if config := c.Spec.Devices.Config; len(config) == 1 && config[0].Opaque != nil {
		by.parameters = string(config[0].Opaque.Parameters)
	}
	return by
}

// owners are the sessions of a namespace by what their claims have: their addresses, or the names of their Deployments.
type owners struct {
	namespace string
	sessions  map[string]*config.Session
}

func newOwners(namespace string, sessions []config.Session, names map[resource.Address]string) owners {
	o := owners{namespace, map[string]*config.Session{}}
	for i := range sessions {
		s := &sessions[i]
		o.sessions[s.Address.String()], o.sessions[names[s.Address]] = s, s // no name of a Deployment has a dot
	}
	return o
}

var podForm = pattern.Of(`^(.+)-[a-z0-9]{1,10}-[a-z0-9]{5}$`)

// of finds the session that cosplay wrote a claim for, or whose pod has it; nil for a foreign claim.
func (o owners) of(c claim) *config.Session {
	pod := podForm().FindStringSubmatch(c.pod)
	switch {
	case c.namespace != o.namespace:
		return nil
	case c.session != "":
		return o.sessions[c.session]
	case pod != nil:
		return o.sessions[pod[1]]
	}
	return nil
}

// states reports whether a claim says the same as the block of its session.
func (c claim) states(s config.Session) bool {
	if c.session == "" { // a class states the target alone
		return c.class == plainClass+"-"+s.Target.Key && parametersOf(s) == parametersOf(config.Session{Target: s.Target})
	}
	var has parameters
	return json.Unmarshal([]byte(c.parameters), &has) == nil && has == parametersOf(s)
}
