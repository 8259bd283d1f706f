package docker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"

	"cosplay/internal/resource"
)

// usualShm is the engine's size of /dev/shm, in MiB.
const usualShm = 64

// Describe reads what a container was created from, as the block of a session has it, and in words what no block can have;
// nil if there is none.
func (r Runtime) Describe(ctx context.Context, ref string) (described *resource.Session, left []string, err error) {
	there, err := r.inspect(ctx, ref)
	if err != nil || there == nil {
		return nil, nil, err
	}
	from, err := r.Engine.image(ctx, there.Image)
	if err != nil {
		from = madeFrom{} // the image was removed: all is the container's own
	}
	host := there.HostConfig
	s := resource.Session{Runtime: name, Program: resource.Program{Env: ownEnv(there.Config.Env, from.env)}}
	s.Spec = resource.ContainerSpec{Name: strings.TrimPrefix(there.Name, "/"), Image: there.Config.Image, Pull: resource.PullMissing,
		Restart: cmp.Or(string(host.RestartPolicy.Name), string(container.RestartPolicyDisabled))}
	s.Spec.Entrypoint, s.Command = program(there.Config, from)
	s.Workspace, s.Spec.Volumes = folders(there.Mounts)
	s.Spec.Ports, s.Spec.SSH = published(there)
	s.Spec.Sudo = !s.Spec.SSH.Exposed()
	if host.NetworkMode.IsUserDefined() || host.NetworkMode.IsNone() {
		s.Spec.Network = string(host.NetworkMode)
	}
	now := bounds(there)
	s.Spec.Limits = resource.Limits{CPUs: float64(now.MilliCPUs) / 1000, MemoryMiB: now.MemoryMiB, PIDs: now.PIDs}
	if shm := int(host.ShmSize / mib); shm > usualShm {
		s.Spec.Limits.ShmMiB = shm
	}
	return &s, inNoBlock(there, from), nil
}

// inNoBlock lists in words what a container was created with and no block can have.
func inNoBlock(there *container.InspectResponse, from madeFrom) (left []string) {
	c, host := there.Config, there.HostConfig
	add := func(is bool, words string, values ...any) {
		if is {
			left = append(left, fmt.Sprintf(words, values...))
		}
	}
	for _, inside := range slices.Sorted(maps.Keys(host.PortBindings)) {
		if !publishable(inside) {
			for _, b := range host.PortBindings[inside] {
				add(true, "port %s:%s", b.HostPort, inside)
			}
		}
	}
	add(host.RestartPolicy.MaximumRetryCount > 0, "at most %d restarts", host.RestartPolicy.MaximumRetryCount)
	add(c.User != "" && c.User != from.user, "user %s", c.User)
	add(!slices.Contains([]string{"", from.dir, resource.WorkspaceInside}, c.WorkingDir), "working folder %s", c.WorkingDir)
	add(host.Privileged, "privileged mode")
	for _, one := range host.CapAdd {
		add(true, "added capability %s", one)
	}
	for _, one := range host.CapDrop {
		add(true, "dropped capability %s", one)
	}
	for _, one := range host.Devices {
		add(true, "device %s", one.PathOnHost)
	}
	for _, at := range slices.Sorted(maps.Keys(host.Tmpfs)) {
		add(true, "tmpfs %s", at)
	}
	for _, m := range there.Mounts {
		_, listed := host.Tmpfs[m.Destination]
		add(m.Type == mount.TypeTmpfs && !listed, "tmpfs %s", m.Destination)
		add(unnamed(m), "unnamed volume %s", m.Destination)
	}
	add(host.IpcMode.IsHost(), "IPC of the host")
	add(host.PidMode.IsHost(), "processes of the host")
	add(host.ReadonlyRootfs, "read-only files")
	return left
}

// publishable reports whether a session can publish a port of a container.
func publishable(p nat.Port) bool { return p.Proto() == "tcp" || p.Proto() == "udp" }

// unnamed reports whether a mount is a volume that ends with its container.
func unnamed(m container.MountPoint) bool { return m.Type == mount.TypeVolume && len(m.Name) == 64 }

// ownEnv is the environment of a container without that of its image, and without what chooses the GPU.
func ownEnv(env, image []string) map[string]string {
	own := map[string]string{}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		if name != visibleDevices && !slices.Contains(image, variable) {
			own[name] = value
		}
	}
	return own
}

// program is the entrypoint and the command of a container. Those of its image are "image".
func program(c *container.Config, from madeFrom) (entrypoint, command []string) {
	if !slices.Equal(c.Entrypoint, from.entrypoint) || len(from.entrypoint) == 0 {
		return slices.Clone([]string(c.Entrypoint)), slices.Clone([]string(c.Cmd))
	}
	if !slices.Equal(c.Cmd, from.cmd) {
		command = slices.Clone([]string(c.Cmd))
	}
	return []string{resource.ImageEntrypoint}, command
}

// folders are the workspace and the volumes of a container; volumes without a name end with it.
func folders(mounts []container.MountPoint) (work string, volumes []resource.Volume) {
	for _, m := range mounts {
		source := m.Source
		if m.Type == mount.TypeVolume {
			source = m.Name
		}
		switch {
		case m.Type == mount.TypeBind && m.Destination == resource.WorkspaceInside && m.RW:
			work = source
		case m.Type == mount.TypeBind, m.Type == mount.TypeVolume && !unnamed(m):
			volumes = append(volumes, resource.Volume{Source: source, Target: m.Destination, ReadOnly: !m.RW})
		}
	}
	slices.SortFunc(volumes, func(a, b resource.Volume) int { return cmp.Compare(a.Target, b.Target) })
	return work, volumes
}

// published are the ports of a container, and that of ssh.
func published(there *container.InspectResponse) (ports []resource.Port, ssh resource.SSH) {
	for _, inside := range slices.Sorted(maps.Keys(there.HostConfig.PortBindings)) {
		if !publishable(inside) {
			continue
		}
		for i, b := range there.HostConfig.PortBindings[inside] {
			if now := there.NetworkSettings.Ports[inside]; (b.HostPort == "" || b.HostPort == "0") && i < len(now) {
				b.HostPort = now[i].HostPort
			}
			port, err := strconv.Atoi(b.HostPort)
			if err != nil || port == 0 {
				continue
			}
			bind := cmp.Or(b.HostIP, "0.0.0.0")
			if inside == sshNAT && !ssh.Enabled {
				ssh = resource.SSH{Enabled: true, Port: port, Bind: bind}
				continue
			}
			ports = append(ports, resource.Port{Bind: bind, Host: port, Container: inside.Int(), UDP: inside.Proto() == "udp"})
		}
	}
	return ports, ssh
}
