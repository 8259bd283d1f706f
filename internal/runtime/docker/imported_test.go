package docker

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"
	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
)

// TestGivenDevice: the engine or NVIDIA's runtime says which GPU a container has, and several or all are none.
func TestGivenDevice(t *testing.T) {
	const slice = "MIG-32278407-1cb4-5210-b909-5d0d1b1cb2e7"
	request := func(count int, ids ...string) []container.DeviceRequest {
		return []container.DeviceRequest{{Count: count, DeviceIDs: ids, Capabilities: [][]string{{"gpu"}}}}
	}
	for name, c := range map[string]struct {
		requests []container.DeviceRequest
		env      []string
		want     string
	}{
		"nothing":        {nil, []string{"PATH=/bin"}, ""},
		"--gpus":         {request(0, slice), []string{visibleDevices + "=all"}, slice},
		"--gpus index":   {request(0, "3"), nil, "3"},
		"--gpus all":     {request(-1), []string{visibleDevices + "=" + slice}, ""},
		"--gpus two":     {request(0, "0", "1"), nil, ""},
		"CDI":            {request(0, cdiGPU+slice), nil, slice},
		"index of slice": {request(0, cdiGPU+"0:1"), nil, "0:1"},
		"other vendor":   {request(0, "amd.com/gpu=0"), nil, "amd.com/gpu=0"},
		"environment":    {nil, []string{visibleDevices + "=all", visibleDevices + "=" + slice}, slice},
		"two of it":      {nil, []string{visibleDevices + "=0,1"}, ""},
		"all of it":      {nil, []string{visibleDevices + "=all"}, ""},
		"none of it":     {nil, []string{visibleDevices + "=void"}, ""},
		"an empty value": {nil, []string{visibleDevices + "="}, ""},
	} {
		there := &container.InspectResponse{Config: &container.Config{Env: c.env},
			ContainerJSONBase: &container.ContainerJSONBase{HostConfig: &container.HostConfig{Resources: container.Resources{DeviceRequests: c.requests}}}}
		if got := givenDevice(there); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWhatIsDescribed: what a block says of a container, without what its image or the engine says.
func TestWhatIsDescribed(t *testing.T) {
	image := madeFrom{env: []string{"PATH=/bin", "A=1"}, entrypoint: []string{"/run"}, cmd: []string{"x"}}
	if got := ownEnv([]string{"PATH=/bin", "A=2", "B=x=y", visibleDevices + "=0"}, image.env); !cmp.Equal(got, map[string]string{"A": "2", "B": "x=y"}) {
		t.Error(got)
	}
	for _, c := range []struct{ entrypoint, cmd, wantEntrypoint, wantCommand []string }{
		{[]string{"/run"}, []string{"x"}, []string{"image"}, nil},
		{[]string{"/run"}, []string{"y"}, []string{"image"}, []string{"y"}},
		{[]string{"/other"}, []string{"y"}, []string{"/other"}, []string{"y"}},
		{nil, []string{"y"}, nil, []string{"y"}},
	} {
		entrypoint, command := program(&container.Config{Entrypoint: c.entrypoint, Cmd: c.cmd}, image)
		if !cmp.Equal(entrypoint, c.wantEntrypoint) || !cmp.Equal(command, c.wantCommand) {
			t.Errorf("%v %v: %v %v", c.entrypoint, c.cmd, entrypoint, command)
		}
	}
	work, volumes := folders([]container.MountPoint{
		{Type: mount.TypeBind, Source: "/w", Destination: resource.WorkspaceInside, RW: true},
		{Type: mount.TypeBind, Source: "/z", Destination: "/z"},
		{Type: mount.TypeVolume, Name: "named", Source: "/var/lib/docker/volumes/named/_data", Destination: "/n", RW: true},
		{Type: mount.TypeVolume, Name: "9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c", Destination: "/anonymous", RW: true},
		{Type: mount.TypeTmpfs, Destination: "/tmp", RW: true},
	})
	if want := []resource.Volume{{Source: "named", Target: "/n"}, {Source: "/z", Target: "/z", ReadOnly: true}}; work != "/w" || !cmp.Equal(volumes, want) {
		t.Errorf("%q %+v", work, volumes)
	}
	there := &container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{HostConfig: &container.HostConfig{PortBindings: nat.PortMap{
		"22/tcp": {{HostPort: "2222"}}, "80/tcp": {{HostIP: "127.0.0.1", HostPort: ""}}, "53/udp": {{HostIP: "::1", HostPort: "53"}}}}},
		NetworkSettings: &container.NetworkSettings{}}
	there.NetworkSettings.Ports = nat.PortMap{"80/tcp": {{HostIP: "127.0.0.1", HostPort: "41000"}}}
	ports, ssh := published(there)
	wantPorts := []resource.Port{{Bind: "::1", Host: 53, Container: 53, UDP: true}, {Bind: "127.0.0.1", Host: 41000, Container: 80}}
	if !cmp.Equal(ports, wantPorts) || !cmp.Equal(ssh, resource.SSH{Enabled: true, Port: 2222, Bind: "0.0.0.0"}) {
		t.Errorf("%+v %+v", ports, ssh)
	}
}

// TestInNoBlock: what no block can have is listed, and no port gets another protocol.
func TestInNoBlock(t *testing.T) {
	there := &container.InspectResponse{Config: &container.Config{User: "dev", WorkingDir: "/app"}, ContainerJSONBase: &container.ContainerJSONBase{},
		Mounts:          []container.MountPoint{{Type: mount.TypeTmpfs, Destination: "/scratch"}, {Type: mount.TypeTmpfs, Destination: "/fast"}},
		NetworkSettings: &container.NetworkSettings{}}
	from := madeFrom{user: "dev", dir: "/app"}
	there.HostConfig = &container.HostConfig{}
	if left := inNoBlock(there, from); len(left) != 2 {
		t.Errorf("of the image: %q", left)
	}
	there.HostConfig = &container.HostConfig{Privileged: true, CapAdd: []string{"SYS_PTRACE"}, Tmpfs: map[string]string{"/fast": ""},
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyOnFailure, MaximumRetryCount: 3},
		PortBindings:  nat.PortMap{"92/sctp": {{HostPort: "18992"}}, "80/tcp": {{HostPort: "80"}}},
		Resources:     container.Resources{Devices: []container.DeviceMapping{{PathOnHost: "/dev/fuse"}}}}
	want := []string{"port 18992:92/sctp", "at most 3 restarts", "user dev", "working folder /app", "privileged mode", "added capability SYS_PTRACE", "device /dev/fuse", "tmpfs /fast", "tmpfs /scratch"}
	if left := inNoBlock(there, madeFrom{}); !cmp.Equal(left, want) {
		t.Errorf("%q", left)
	}
	if ports, _ := published(there); len(ports) != 1 || ports[0].Container != 80 {
		t.Errorf("%+v", ports)
	}
}

// imports makes the runtime know a container as one that was imported for its session.
func (w *world) imports(id string) {
	w.Owner.Imported = []resource.Body{{ID: id, Host: hostName, Runtime: name, Session: w.s.ID, SliceID: w.given.UUID, Hash: w.s.Hash(w.Owner.Key)}}
	w.Owner.Bodies = []string{id}
}

// TestImportedStarts: an imported container that does not run is started with its own name, limits and restart policy, with no
// file of cosplay, whether or not it serves ssh; and the checks before it do not ask what only a new container needs.
func TestImportedStarts(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	called := "imported-" + random()
	id := w.foreign(t, called, container.Config{StopSignal: "KILL"}, &container.HostConfig{Resources: container.Resources{Memory: 64 * mib}})
	w.imports(id)
	made := w.prepare(t)
	if made.ID != id || made.State != resource.Running || made.Session != w.s.ID || !made.Foreign {
		t.Errorf("%+v", made)
	}
	there, err := w.inspect(ctx, id)
	check(t, err)
	if there.Name != "/"+called || there.HostConfig.Memory != 64*mib || !there.HostConfig.RestartPolicy.IsNone() {
		t.Errorf("it has the name %s and %+v", there.Name, bounds(there))
	}
	if all := w.labelled(t); len(all) != 0 || present(w.Folder(w.s.ID)) {
		t.Errorf("cosplay created %+v or a folder", all)
	}
	check(t, w.Stop(ctx, w.s.ID))
	if made, err = w.Start(ctx, w.s); err != nil || made.ID != id {
		t.Errorf("%+v %v", made, err)
	}
	w.kill(t, id)
}

// TestImportedHasItsName: the name of an imported container is no other container's for its session, and for another session
// cosplay does not advise to remove it.
func TestImportedHasItsName(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.s.Spec.Name, w.s.Spec.Volumes = "imported-"+random(), []resource.Volume{{Source: "/no/such", Target: "/x"}}
	w.imports(w.foreign(t, w.s.Spec.Name, container.Config{StopSignal: "KILL"}, nil))
	survey, err := w.Survey(ctx)
	check(t, err)
	if problems := survey.Check(ctx, w.s, nil); len(problems) != 0 {
		t.Errorf("%+v", problems)
	}
	changed := w.s
	changed.Spec.Volumes, changed.Env = nil, map[string]string{"SEED": "15"}
	if problems := survey.Check(ctx, changed, nil); len(problems) != 0 {
		t.Errorf("of another block: %+v", problems)
	}
	other := w.session(t, "other")
	other.Spec.Name = w.s.Spec.Name
	problems := survey.Check(ctx, other, nil)
	if len(problems) != 1 || problems[0].Fix != "give one of the two session blocks another name" {
		t.Errorf("of another session: %+v", problems)
	}
}

// TestImportedPortTaken: the error of a start is about the container's own port, and not about the ssh block.
func TestImportedPortTaken(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	w.s.Spec.SSH = resource.SSH{}
	id := w.foreign(t, "imported-"+random(), container.Config{StopSignal: "KILL", ExposedPorts: nat.PortSet{"92/tcp": {}}},
		&container.HostConfig{PortBindings: nat.PortMap{"92/tcp": {{HostIP: "127.0.0.1", HostPort: port}}}})
	w.imports(id)
	_, err = w.Prepare(context.Background(), w.s, w.given)
	if err == nil || !strings.Contains(err.Error(), "port "+port+" on 127.0.0.1 is taken") || !strings.Contains(err.Error(), "the block of session.one") || strings.Contains(err.Error(), "ssh block") {
		t.Error(err)
	}
	if there, err := w.inspect(context.Background(), id); err != nil || there == nil {
		t.Errorf("it was removed: %v", err)
	}
}
