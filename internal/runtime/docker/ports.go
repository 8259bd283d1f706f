package docker

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/go-connections/nat"
)

// choosePort is a port for ssh that no program listens at and that no stopped container of cosplay has: of any
// project, since none of them could start again. kept is preferred.
func (e *Engine) choosePort(ctx context.Context, bind string, kept int) (port int, err error) {
	promised, err := e.promisedPorts(ctx)
	if err != nil {
		return 0, err
	}
	for range portTries {
		if port, err = freePort(bind, kept); err != nil || !promised[port] {
			break
		}
		kept = 0
	}
	return port, err
}

// promisedPorts are the ports for ssh of containers that do not run: the engine lists a port only while it is open.
func (e *Engine) promisedPorts(ctx context.Context) (map[int]bool, error) {
	promised := map[int]bool{}
	wanted := []filters.KeyValuePair{filters.Arg("label", labelLineage), filters.Arg("status", container.StateExited), filters.Arg("status", container.StateCreated)}
	resting, err := e.containers(ctx, "listing the stopped containers", wanted...)
	if err != nil {
		return nil, err
	}
	for _, c := range resting {
		there, err := e.inspect(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		if there != nil {
			promised[publishedPort(there)] = true
		}
	}
	return promised, nil
}

// freePort is a port without a listener: preferred, if it is free. Another process may
// take it before the engine does.
func freePort(bind string, preferred int) (int, error) {
	listen := func(port int) (net.Listener, error) {
		return net.Listen("tcp", net.JoinHostPort(bind, strconv.Itoa(port)))
	}
	l, err := listen(preferred)
	if err != nil && preferred != 0 {
		l, err = listen(0)
	}
	if err != nil {
		return 0, fmt.Errorf("find a free port on %s: %w. Fix: correct bind in the ssh block", bind, err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// publishedPort is the port on the host that a container has for ssh, running or not; 0 is none.
func publishedPort(there *container.InspectResponse) int {
	if there.HostConfig == nil {
		return 0
	}
	return sshPortOf(there.HostConfig.PortBindings)
}

func sshPortOf(ports nat.PortMap) int {
	for _, binding := range ports[sshNAT] {
		if port, err := strconv.Atoi(binding.HostPort); err == nil {
			return port
		}
	}
	return 0
}

// holder is the container that has a port of this machine; "" if no container has it.
func (e *Engine) holder(ctx context.Context, port int) string {
	ctx, cancel := soon(ctx)
	defer cancel()
	running, err := e.client.ContainerList(ctx, container.ListOptions{})
	if err != nil {
		return ""
	}
	for _, c := range running {
		for _, p := range c.Ports {
			if int(p.PublicPort) == port && len(c.Names) > 0 {
				return "the container " + strings.TrimPrefix(c.Names[0], "/")
			}
		}
	}
	return ""
}
