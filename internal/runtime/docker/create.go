package docker

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"

	"cosplay/internal/initd"
	"cosplay/internal/initd/environ"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

const (
	sshPort     = 22 // TCP, in the container
	mib         = 1 << 20
	shmMiB      = 1024 // of /dev/shm: data loaders of PyTorch fill the engine's 64 at once
	stopSeconds = 8    // cosplay-init gives the command 5, clients of ssh 1 and the rest 2
	longestHost = 63
)

// sshNAT is that port in the engine's terms.
var sshNAT = nat.Port(strconv.Itoa(sshPort) + "/tcp")

// create creates the container of a session and does not start it. port is the port for ssh on the host.
func (r Runtime) create(ctx context.Context, s resource.Session, slice string, g grant, port int) (id string, err error) {
	stopTimeout := stopSeconds
	config := &container.Config{
		Image:       r.Engine.imageName(ctx, s.Spec.Image),
		Hostname:    hostname(s.Address),
		User:        "0:0",
		Entrypoint:  initd.Entrypoint(),
		Cmd:         []string{},
		Env:         r.environment(s, slice, g),
		Labels:      r.labels(s, slice),
		StopSignal:  "SIGTERM",
		StopTimeout: &stopTimeout,
	}
	host := &container.HostConfig{
		Mounts:        append(r.mounts(s, g.CUDA), prose.Each(g.Mounts, bind)...),
		Runtime:       g.runtime,
		ShmSize:       int64(cmp.Or(s.Spec.Limits.ShmMiB, shmMiB)) * mib,
		RestartPolicy: restartPolicy(s.Spec),
		Resources:     resources(s.Spec.Limits),
	}
	host.DeviceRequests = g.devices
	if s.MPS != "" { // programs and server share memory
		host.IpcMode, host.ShmSize = container.IPCModeHost, 0
	}
	r.Engine.isolate(host, s.Spec.Sudo)
	host.PortBindings = portBindings(s.Spec, port)
	config.ExposedPorts = nat.PortSet{}
	for inside := range host.PortBindings {
		config.ExposedPorts[inside] = struct{}{}
	}
	var joins *network.NetworkingConfig
	if host.NetworkMode = container.NetworkMode(s.Spec.Network); s.Spec.Network != "" && host.NetworkMode.IsUserDefined() {
		joins = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{s.Spec.Network: inNetwork(s)}}
	}
	if err := r.Engine.checkSources(s.BodyName(), host.Mounts); err != nil {
		return "", err
	}
	creating, cancel := within(ctx, createTime)
	defer cancel()
	made, err := r.Engine.client.ContainerCreate(creating, config, host, joins, nil, s.BodyName())
	if errdefs.IsConflict(err) || err != nil && strings.Contains(err.Error(), "already in use") {
		err = cmp.Or(r.nameTaken(ctx, s.ID, s.BodyName()), err)
	}
	if err != nil {
		return "", r.Engine.explain("creating the container "+s.BodyName(), err, about(s, port))
	}
	return made.ID, nil
}

// portBindings are the ports that the engine publishes, with that of ssh on the host.
func portBindings(spec resource.ContainerSpec, sshOnHost int) nat.PortMap {
	all := nat.PortMap{}
	if spec.SSH.Enabled {
		all[sshNAT] = []nat.PortBinding{{HostIP: spec.SSH.Bind, HostPort: strconv.Itoa(sshOnHost)}}
	}
	for _, p := range spec.Ports {
		inside := nat.Port(fmt.Sprintf("%d/%s", p.Container, p.Protocol()))
		all[inside] = append(all[inside], nat.PortBinding{HostIP: p.Bind, HostPort: strconv.Itoa(p.Host)})
	}
	return all
}

// inNetwork is the container in its network, where other containers find it by the name of its session. The engine's
// default network has no names.
func inNetwork(s resource.Session) *network.EndpointSettings {
	if s.Spec.Network == "" {
		return &network.EndpointSettings{}
	}
	return &network.EndpointSettings{Aliases: []string{hostname(s.Address)}}
}

// isolate adapts a container to the isolation of the engine: mounts must be readable
// inside, and files of the workspace must belong to the user.
func (e *Engine) isolate(host *container.HostConfig, sudo bool) {
	if !sudo { // sudo needs new privileges
		host.SecurityOpt = append(host.SecurityOpt, "no-new-privileges")
	}
	if e.secures("selinux") {
		host.SecurityOpt = append(host.SecurityOpt, "label=disable")
	}
	if e.secures("userns") {
		host.UsernsMode = "host"
	}
}

// secures reports whether the engine isolates containers by a feature of the kernel.
func (e *Engine) secures(feature string) bool {
	return slices.ContainsFunc(e.info.SecurityOptions, func(option string) bool {
		name, _, _ := strings.Cut(option, ",")
		return name == "name="+feature
	})
}

// lifted is what isolate switches off.
func (e *Engine) lifted() []string {
	var all []string
	if e.secures("userns") {
		all = append(all, "sessions run without the engine's userns-remap, so that files of the workspace belong to you: root in a container is root of this machine")
	}
	if e.secures("selinux") {
		all = append(all, "sessions run without SELinux labels, so that they can read what cosplay mounts")
	}
	return all
}

func about(s resource.Session, port int) subject {
	what := subject{name: s.BodyName(), image: s.Spec.Image, bind: s.Spec.SSH.Bind, port: port}
	if s.Spec.SSH.Enabled && s.Spec.SSH.Port == 0 {
		what.where = "the ssh block, or with cosplay apply --replace " + s.Address.String()
	}
	return what
}

// visibleDevices is the variable that NVIDIA's runtime and hook read; programs get it from cosplay-init.
const visibleDevices = "NVIDIA_VISIBLE_DEVICES"

// environment is that of the container itself, which docker exec shows.
func (r Runtime) environment(s resource.Session, slice string, g grant) []string {
	env := r.Environment(s, slice, g.Env)
	delete(env, visibleDevices)
	if g.visible != "" {
		env[visibleDevices] = g.visible
	}
	return environ.Vars(env).List()
}

// mounts are those of every session, and its volumes. Mounts and not binds, for which the
// engine would create missing folders as root.
func (r Runtime) mounts(s resource.Session, cuda bool) []mount.Mount {
	all := prose.Each(r.Mounts(s, cuda), bind)
	for _, v := range s.Spec.Volumes {
		kind := mount.TypeBind
		if v.Named() {
			kind = mount.TypeVolume
		}
		all = append(all, mount.Mount{Type: kind, Source: v.Source, Target: v.Target, ReadOnly: v.ReadOnly})
		if !v.Named() {
			all = append(all, prose.Each(r.Cover(s.ID, v.Source, v.Target), bind)...)
		}
	}
	return all
}

// hostname is the address of a session in the characters that a machine's name may have.
func hostname(a resource.Address) string {
	name := strings.NewReplacer("_", "-", ".", "-").Replace(resource.SessionID(a))
	return strings.Trim(name[:min(longestHost, len(name))], "-")
}

func restartPolicy(b resource.ContainerSpec) container.RestartPolicy {
	return container.RestartPolicy{Name: container.RestartPolicyMode(b.Restart)}
}

// unlimited is a limit on processes that is none: without one, podman sets its own.
const unlimited = -1

// resources are the limits of a container in the engine's terms.
func resources(l resource.Limits) container.Resources {
	pids := cmp.Or(int64(l.PIDs), unlimited)
	return container.Resources{NanoCPUs: int64(math.Round(l.CPUs * 1e9)), Memory: int64(l.MemoryMiB) * mib, PidsLimit: &pids}
}

// bounds are the present limits of a container.
func bounds(there *container.InspectResponse) *resource.Bounds {
	host := there.HostConfig
	if host == nil {
		return nil
	}
	b := resource.Bounds{
		MilliCPUs: int(math.Round(float64(host.NanoCPUs) / 1e6)),
		MemoryMiB: int(max(0, host.Memory) / mib),
		Restart:   cmp.Or(string(host.RestartPolicy.Name), string(container.RestartPolicyDisabled)),
	}
	if host.PidsLimit != nil {
		b.PIDs = int(max(0, *host.PidsLimit))
	}
	return &b
}

// hold restores the limits of a container that stays, if another program changed them. An
// added limit on CPUs or memory stays: the engine cannot remove it.
func (r Runtime) hold(ctx context.Context, s resource.Session, there *container.InspectResponse) error {
	now, wanted := bounds(there), s.Spec.Bounds()
	if now == nil || *now == wanted {
		return nil
	}
	limits := resources(s.Spec.Limits)
	limits.MemorySwap = 2 * limits.Memory // the engine's default
	ctx, cancel := soon(ctx)
	defer cancel()
	_, err := r.Engine.client.ContainerUpdate(ctx, there.ID, container.UpdateConfig{Resources: limits, RestartPolicy: restartPolicy(s.Spec)})
	return r.Engine.explain("setting the limits of the container "+s.BodyName(), err, about(s, 0))
}

// program is what cosplay-init runs for a session, from its entrypoint and its command; empty for nothing. image is the
// name or the ID of the image that the container has.
func (e *Engine) program(ctx context.Context, s resource.Session, image string) ([]string, error) {
	if !s.Spec.RunsImage() {
		return slices.Concat(s.Spec.Entrypoint, s.Command), nil
	}
	from, err := e.image(ctx, image)
	if err != nil {
		return nil, e.explain("reading the entrypoint of the image "+s.Spec.Image, err, about(s, 0))
	}
	all := from.run(s.Command)
	if len(all) == 0 {
		return nil, noProgram(s.Spec.Image)
	}
	return all, nil
}

// run is what the engine would run for these arguments: without any, those of the image.
func (m madeFrom) run(arguments []string) []string {
	if len(arguments) == 0 {
		arguments = m.cmd
	}
	return slices.Concat(m.entrypoint, arguments)
}

func noProgram(image string) prose.Advice {
	return prose.Advice{What: fmt.Sprintf("the image %s has no ENTRYPOINT and no CMD", image),
		Fix: `write the program as command = ["..."], or remove entrypoint`}
}
