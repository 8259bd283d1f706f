package docker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"cosplay/internal/resource"
)

// steady is how long a container must run before engines forget that it restarted, and before cosplay takes one whose
// program ended again and again for started.
const steady = 10 * time.Second

var states = map[container.ContainerState]string{
	container.StateRunning:    resource.Running,
	container.StatePaused:     resource.Paused,
	container.StateRestarting: resource.Restarting,
}

// stateOf is the state of a container. While an engine restarts a container again and again, it may report it as
// running at any moment.
func stateOf(status container.ContainerState) string { return cmp.Or(states[status], resource.Stopped) }

// restarts is how often the engine has restarted a container whose program ends again and again; 0 for any other.
// podman reports a container as ended until it has restarted it, and not who ended it.
func (e *Engine) restarts(there *container.InspectResponse) int {
	if there.State.Restarting {
		return max(1, there.RestartCount)
	}
	ended := e.podman && !there.State.Running && !there.HostConfig.RestartPolicy.IsNone()
	started, err := time.Parse(time.RFC3339Nano, there.State.StartedAt)
	if there.State.Status != container.StateRunning && !ended || there.RestartCount < 2 || err != nil || time.Since(started).Abs() > steady {
		return 0
	}
	return there.RestartCount
}

// altered lists what another program changed of a container: its name, its network, its ports.
func altered(named bool, name string, there *container.InspectResponse) []resource.Alteration {
	var all []resource.Alteration
	if !named {
		all = append(all, resource.Alteration{Part: resource.AlteredName, From: name, To: strings.TrimPrefix(there.Name, "/")})
	}
	if lost := lostNetwork(there); lost != "" {
		return append(all, resource.Alteration{Part: resource.AlteredNetwork, From: lost}) // its ports are lost with it
	}
	if !there.State.Running || there.State.Restarting {
		return all
	}
	for _, inside := range slices.Sorted(maps.Keys(there.HostConfig.PortBindings)) {
		if len(there.NetworkSettings.Ports[inside]) > 0 {
			continue
		}
		part := resource.AlteredPorts
		if inside == sshNAT && publishedPort(there) != 0 {
			part = resource.AlteredSSHPort
		}
		for _, b := range there.HostConfig.PortBindings[inside] {
			all = append(all, resource.Alteration{Part: part, From: fmt.Sprintf("%s->%s", net.JoinHostPort(b.HostIP, b.HostPort), inside)})
		}
	}
	return all
}

// bridge is the network of a container that names none.
const bridge = "bridge"

// lostNetwork is the network from which a container was disconnected; "" if it has its network.
func lostNetwork(there *container.InspectResponse) string {
	if there.HostConfig == nil || there.NetworkSettings == nil {
		return ""
	}
	if name := networkOf(there); name != "" && !joins(there, name) {
		return name
	}
	return ""
}

// joins reports whether a container is in a network. For bridge any network counts: podman calls its own by another name.
func joins(there *container.InspectResponse, network string) bool {
	for name, endpoint := range there.NetworkSettings.Networks {
		if (network == bridge || network == name) && endpoint.NetworkID != bridge { // podman reports that ID of a stopped container without a network
			return true
		}
	}
	return false
}

// rejoin connects a container to its network again, which publishes its ports.
func (r Runtime) rejoin(ctx context.Context, s resource.Session, there *container.InspectResponse) error {
	lost := lostNetwork(there)
	for _, a := range altered(true, "", there) {
		if (a.Part == resource.AlteredSSHPort || a.Part == resource.AlteredPorts) && lost == "" { // the engine publishes ports when it connects the container
			lost = networkOf(there)
			if err := r.Engine.client.NetworkDisconnect(ctx, r.Engine.networkName(lost), there.ID, true); err != nil {
				return r.Engine.explain("disconnecting the container "+s.BodyName()+" from "+lost, err, about(s, publishedPort(there)))
			}
		}
	}
	if lost == "" {
		return nil
	}
	err := r.Engine.client.NetworkConnect(ctx, r.Engine.networkName(lost), there.ID, inNetwork(s))
	if err != nil {
		what, _ := r.aboutPort(ctx, s, publishedPort(there), err)
		return r.Engine.explain("connecting the container "+s.BodyName()+" to "+lost, err, what)
	}
	return nil
}

// networkOf is the network that publishes the ports of a container; "" if it has none. Podman calls each
// network bridge, so the label is first.
func networkOf(there *container.InspectResponse) string {
	mode := there.HostConfig.NetworkMode
	switch name := there.Config.Labels[labelNetwork]; {
	case name != "":
		return name
	case mode.IsUserDefined():
		return mode.UserDefined()
	case mode.IsDefault() || mode.IsBridge():
		return bridge
	}
	return ""
}

// replaced lists the files and folders of the host that are mounted in a container that runs, and whose place another
// one has taken since, as an editor does that saves by renaming: the container keeps the first. The kernel reports to
// every user what a process has mounted. Of an engine on another machine nothing is known.
func replaced(there *container.InspectResponse) []string {
	pid := there.State.Pid
	if pid == 0 || !runsHere(pid, there.ID) {
		return nil
	}
	inside, here := mountsOf(fmt.Sprint(pid)), mountsOf("self")
	var all []string
	for _, m := range there.Mounts {
		i := slices.IndexFunc(inside, func(k mounted) bool { return k.at == path.Clean(m.Destination) })
		if i >= 0 && m.Type == mount.TypeBind && inside[i].outdated(here, m.Source) {
			all = append(all, m.Source)
		}
	}
	return all
}

// mounted is a line of /proc/PID/mountinfo.
type mounted struct {
	device string // of the file system
	root   string // the path in the file system that is mounted
	at     string
}

// mountsOf reads the mounts of a process, the last one first: it covers the others at its place.
func mountsOf(pid string) []mounted {
	text, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil {
		return nil // the container ended meanwhile
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var all []mounted
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 {
			all = append(all, mounted{f[2], unescape.Replace(f[3]), unescape.Replace(f[4])})
		}
	}
	slices.Reverse(all)
	return all
}

// outdated reports whether a mount is not of what is at a path of the host now: it was unlinked there, or has another
// name in the same folder. In any other folder, this process and the engine may see different mounts.
func (m mounted) outdated(here []mounted, source string) bool {
	const unlinked = "//deleted"
	if strings.HasSuffix(m.root, unlinked) {
		return true
	}
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return false
	}
	holds := func(k mounted) bool { return isWithin(k.at, source) }
	under := slices.MaxFunc(append(slices.DeleteFunc(slices.Clone(here), func(k mounted) bool { return !holds(k) }), mounted{}),
		func(a, b mounted) int { return cmp.Compare(len(a.at), len(b.at)) })
	now := path.Join(under.root, strings.TrimPrefix(source, under.at))
	return under.device == m.device && now != m.root && path.Dir(now) == path.Dir(m.root)
}

// isWithin reports whether a path is a folder's or in it.
func isWithin(folder, file string) bool {
	return file == folder || strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/")
}
