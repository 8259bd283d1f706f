package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// docker makes sessions of the first host run in Docker from now on; images are
// those that the engine has.
func (w *world) docker(images ...string) *world {
	w.live.Hosts[0].Runtime = "docker"
	w.live.Hosts[0].Engine = &resource.Engine{Name: "Docker 20.10.24", Access: "CDI by NVIDIA's runtime", Images: map[string]string{}}
	for _, name := range images {
		w.image(name, "sha256:4e2d8c10b6a9"+name)
	}
	return w
}

func (w *world) image(name, id string) *world {
	e := *w.live.Hosts[0].Engine
	e.Images = maps.Clone(e.Images)
	e.Images[name] = id
	w.live.Hosts[0].Engine = &e
	return w
}

// spec is the container of a session on a host with an engine, unless a test changes it.
func (w *world) spec(host int) resource.ContainerSpec {
	if w.live.Hosts[host].Runtime != "docker" {
		return resource.ContainerSpec{}
	}
	return resource.ContainerSpec{Image: resource.DefaultImage, Pull: resource.PullMissing, Restart: "unless-stopped", Sudo: true,
		SSH:  resource.SSH{Enabled: true, Bind: "127.0.0.1", AuthorizedKeys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB0sGmT1 ann@lab"}},
		User: resource.User{Name: "ann", UID: 1234, GID: 1234, Group: "ann"}}
}

// containers changes the containers of the wanted sessions of a block.
func (w *world) containers(block string, change func(i int, b *resource.ContainerSpec)) *world {
	for i := range w.desired.Sessions {
		s := &w.desired.Sessions[i]
		if s.Address.Name == block {
			change(s.Address.Key.Index, &s.Spec)
		}
	}
	return w
}

// containerOf makes the container of a session.
func (w *world) containerOf(s resource.Session) *resource.Body {
	h := &w.live.Hosts[0]
	h.Bodies = slices.DeleteFunc(h.Bodies, func(c resource.Body) bool { return c.Session == s.ID })
	c := w.container(h.Name, s.ID, s.Hash(stateKey))
	c.Runtime, c.ID = "docker", fmt.Sprintf("3f2a9c%02x41d86bb1c7", len(h.Bodies))
	c.Image = h.Engine.Images[s.Spec.Image]
	if s.Spec.SSH.Enabled {
		c.SSHPort = max(s.Spec.SSH.Port, s.Spec.SSH.Kept)
		if c.SSHPort == 0 {
			c.SSHPort = 32800 + len(h.Bodies)
		}
	}
	i := slices.IndexFunc(h.Bodies, func(o resource.Body) bool { return o.Session == s.ID })
	h.Bodies[i] = *c
	return c
}

// inside gives the container of a session, to be changed behind our back.
func (w *world) inside(id string) *resource.Body {
	h := &w.live.Hosts[0]
	return &h.Bodies[slices.IndexFunc(h.Bodies, func(c resource.Body) bool { return c.Session == id })]
}

// keepPorts does what resolving does: a port that was chosen once is kept.
func (w *world) keepPorts() *world {
	for i := range w.desired.Sessions {
		if was, ok := w.prior.Session(w.desired.Sessions[i].Address); ok && was.Body != nil && !was.Spec.IsZero() {
			w.desired.Sessions[i].Spec.SSH.Kept = was.Body.SSHPort
		}
	}
	return w
}

// fresh is seven workers in Docker, on an engine that has these images.
func fresh(images ...string) *world {
	return (&world{}).host("lab", "h200").docker(images...).seven(0, 0, 0)
}

// blocks are sessions of several kinds in Docker, with images and ports of their
// own.
func blocks() *world {
	w := (&world{}).host("lab", "h200", "h200").docker("pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime")
	for i := range 5 {
		w.place(resource.Nth("worker", i), "2060", 0, 0, "1g.18gb", i)
	}
	w.place(resource.One("big"), "3060", 0, 0, "2g.35gb", 5).
		place(resource.One("train"), "4090", 0, 1, "", 0)
	w.containers("worker", func(i int, b *resource.ContainerSpec) { b.SSH.Port, b.SSH.Bind = 2200+i, "0.0.0.0" })
	w.containers("big", func(_ int, b *resource.ContainerSpec) {
		b.Image, b.Pull = "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime", resource.PullAlways
	})
	return w.containers("train", func(_ int, b *resource.ContainerSpec) {
		b.Image, b.SSH.Enabled = "registry.example.com/team/train:1.2", false
	})
}

func containerScreens() []screen {
	show := func(name string, w *world) screen {
		return screen{name, func(o io.Writer, s Style) { Show(o, s, w.view()) }}
	}
	live := func(name string, w *world) []screen {
		return []screen{
			{name, func(o io.Writer, s Style) { Show(o, s, w.status()) }},
			{name + "-ps", func(o io.Writer, s Style) { Show(o, s, SessionsView{w.status()}) }},
		}
	}
	lost := fresh().applied().keepPorts().lose("worker-3", false)
	changed := fresh().applied().keepPorts()
	changed.containers("worker", func(_ int, b *resource.ContainerSpec) {
		b.Image = "debian:12"
		b.Volumes = []resource.Volume{{Source: "/data", Target: "/data", ReadOnly: true}, {Source: "cache", Target: "/home/ann/.cache"}}
		b.SSH.Bind, b.Limits, b.Sudo, b.Restart = "0.0.0.0", resource.Limits{CPUs: 4, MemoryMiB: 32768}, false, "no"
		b.User = resource.User{Name: "bob", UID: 1235, GID: 1235, Group: "bob"}
	})
	ports := fresh().applied().keepPorts().containers("worker", func(i int, b *resource.ContainerSpec) { b.SSH.Port = 2200 + i })
	drifted := fresh().applied().keepPorts().lose("worker-3", false)
	drifted.inside("worker-1").State = resource.Stopped
	drifted.inside("worker-2").ID = "77b01c2d9e8f41d86bb1c7"
	drifted.image(resource.DefaultImage, "sha256:b00c5e0a7b3d99")
	moved := fresh().applied().keepPorts().image(resource.DefaultImage, "sha256:b00c5e0a7b3d99")
	both := fresh().applied().keepPorts()
	both.live.Hosts[0].Runtime = "process"
	left := fresh().applied().keepPorts()
	left.prior.Sessions = left.prior.Sessions[:6]
	all := []screen{
		show("docker-plan", fresh()), show("docker-plan-there", fresh(resource.DefaultImage)), show("docker-plan-blocks", blocks()),
		show("docker-plan-lost", lost), show("docker-plan-changed", changed), show("docker-plan-ports", ports), show("docker-plan-drifted", drifted),
		show("docker-plan-nothing", moved), show("docker-plan-both", both),
		{"docker-drift", func(o io.Writer, s Style) { Drift(o, s, drifted.view()) }},
		{"docker-drift-moved", func(o io.Writer, s Style) { NoDrift(o, s, moved.view()) }},
		{"docker-show", func(o io.Writer, s Style) { Show(o, s, StateView{blocks().applied().prior}) }},
	}
	all = append(all, live("docker-status", blocks().applied())...)
	all = append(all, live("docker-status-drifted", drifted)...)
	return append(append(all, live("docker-status-orphan", left)...), containerRunScreens()...)
}

// TestKeyStaysSecret looks for the state's secret on all screens.
func TestKeyStaysSecret(t *testing.T) {
	for _, s := range screens() {
		if strings.Contains(shown(s, Style{Verbose: true}), stateKey) {
			t.Errorf("%s shows the state's secret", s.name)
		}
	}
	for name, write := range twins() {
		var b bytes.Buffer
		if err := write(&b); err != nil || strings.Contains(b.String(), stateKey) {
			t.Errorf("%s in JSON shows the state's secret (%v)", name, err)
		}
	}
}

// TestSSHInJSON: JSON has the place to log in, and null if no user can log in.
func TestSSHInJSON(t *testing.T) {
	w := blocks().applied().keepPorts()
	w.inside("worker-2").State = resource.Stopped
	var b bytes.Buffer
	if err := JSON(&b, SessionsView{w.status()}); err != nil {
		t.Fatal(err)
	}
	var got struct{ Sessions []public.SessionStatus }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]*public.Login{"big": {Host: "127.0.0.1", Port: 32801, User: "ann"}, "train": nil, "worker-0": {Host: "0.0.0.0", Port: 2200, User: "ann"}, "worker-2": nil}
	for _, s := range got.Sessions {
		if s.Runtime != "docker" || s.Image == "" || s.Container == nil {
			t.Errorf("%s: runtime %q, image %q, container %v", s.Name, s.Runtime, s.Image, s.Container)
		}
		if at, asked := want[s.Name]; asked && (at == nil) != (s.SSH == nil) || at != nil && *at != *s.SSH {
			t.Errorf("%s: ssh is %v, want %v", s.Name, s.SSH, at)
		}
	}
}

// TestContainerWords holds each way to log in to its words.
func TestContainerWords(t *testing.T) {
	for _, c := range []struct {
		ssh  resource.SSH
		want string
	}{
		{resource.SSH{}, "no ssh"},
		{resource.SSH{Enabled: true, Bind: "127.0.0.1"}, "ssh 127.0.0.1, port chosen at start"},
		{resource.SSH{Enabled: true, Bind: "127.0.0.1", Kept: 32801}, "ssh 127.0.0.1:32801 as before"},
		{resource.SSH{Enabled: true, Bind: "::1", Port: 2200, Kept: 32801}, "ssh [::1]:2200"},
	} {
		got := strings.ReplaceAll(containerWords(resource.ContainerSpec{Image: "a:b", User: resource.User{Name: "ann"}, SSH: c.ssh}), hard, " ")
		if want := "image a:b   " + c.want + "   user ann"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRuntimeWords: how containers get their slices is shown where there are
// several ways.
func TestRuntimeWords(t *testing.T) {
	engine := &resource.Engine{Name: "Docker 28.5", Access: "CDI by the engine"}
	for _, test := range []struct {
		host resource.Host
		want string
	}{
		{resource.Host{Runtime: "docker", Engine: engine}, "Docker 28.5, slices through CDI by the engine"},
		{resource.Host{Runtime: "docker", Engine: engine, Simulated: "1 x h200"}, "Docker 28.5"},
		{resource.Host{Runtime: "process", Engine: engine}, "process runtime for new sessions, Docker 28.5 for those in it"},
		{resource.Host{Runtime: "process"}, "process runtime"},
	} {
		if got := strings.ReplaceAll(runtimeWords(test.host), hard, " "); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
