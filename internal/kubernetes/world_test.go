package kubernetes

import (
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// TestPodOfClass: a session stays where its pod is if the pod's class states all that the session does, also under the longest
// name, which Kubernetes may not shorten.
func TestPodOfClass(t *testing.T) {
	target, err := catalog.Target("2060")
	if err != nil {
		t.Fatal(err)
	}
	session := config.Session{Address: resource.One(strings.Repeat("long-", 20) + "name"), Target: target}
	name := Names([]config.Session{session})[session.Address]
	base := name + "-7c9d8b6f5d-"
	pod := base[:min(len(base), 58)] + "abcde" // as Kubernetes makes the names of a ReplicaSet's pods
	held := claim{pod: pod, class: plainClass + "-" + target.Key}
	of := newOwners("", []config.Session{session}, map[resource.Address]string{session.Address: name})
	if of.of(held) == nil || !held.states(session) {
		t.Errorf("the pod %s is not that of %s", pod, name)
	}
	session.Fit.MaxError = new(0.1)
	if held.states(session) {
		t.Error("a class does not state max_error, and keeps the session's place")
	}
}
