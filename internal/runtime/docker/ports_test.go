package docker

import (
	"strconv"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"
)

// TestPromisedPort: the port of a stopped container is not given to another session, which would keep it from starting.
func TestPromisedPort(t *testing.T) {
	w := newWorld(t)
	free, err := freePort("127.0.0.1", 0)
	check(t, err)
	binding := nat.PortMap{sshNAT: {{HostIP: "127.0.0.1", HostPort: strconv.Itoa(free)}}}
	w.foreign(t, "cosplay-test-"+random(), container.Config{Labels: map[string]string{labelLineage: "another"}, ExposedPorts: nat.PortSet{sshNAT: {}}},
		&container.HostConfig{PortBindings: binding})
	chosen, err := w.choosePort(t.Context(), "127.0.0.1", free)
	check(t, err)
	if chosen == free || chosen == 0 {
		t.Errorf("port %d is chosen; a stopped container has %d", chosen, free)
	}
	kept, err := freePort("127.0.0.1", 0)
	check(t, err)
	if chosen, err = w.choosePort(t.Context(), "127.0.0.1", kept); err != nil || chosen != kept {
		t.Errorf("%d is chosen instead of the free port %d: %v", chosen, kept, err)
	}
}
