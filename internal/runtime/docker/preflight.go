package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sys/unix"

	"cosplay/internal/preflight"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// survey has all containers of an engine, for the checks of many sessions.
type survey struct {
	runtime    Runtime
	containers []container.Summary
	images     map[string]madeFrom // by name, those that were asked for; empty if the engine lacks it
}

// Survey prepares the check of sessions that are to be created.
func (r Runtime) Survey(ctx context.Context) (runtime.Survey, error) {
	all, err := r.Engine.containers(ctx, "listing the containers")
	s := runtime.Survey{Check: survey{r, all, map[string]madeFrom{}}.check}
	if err := r.Reaches(); err != nil {
		summary := fmt.Sprintf("slices do not reach containers on host %q", r.Host.Name)
		s.Host = []preflight.Problem{{Attribute: "runtime", Summary: summary, Advice: prose.AdviceOf(err)}}
	}
	return s, err
}

// check lists what would prevent the container of a session, after the containers with the IDs in removed are
// removed.
func (s survey) check(ctx context.Context, session resource.Session, removed map[string]bool) []preflight.Problem {
	if s.runtime.keepsImported(session) {
		return nil // it is started as it is, and needs nothing of what a new container needs
	}
	return slices.Concat(s.checkName(ctx, session, removed), runtime.CheckWorkspace(session.Workspace), checkVolumes(session),
		s.runtime.Engine.checkLimits(session.Spec.Limits), s.checkSSH(session, removed), s.checkPorts(session, removed), s.checkNetwork(ctx, session), s.checkEntrypoint(ctx, session))
}

// checkSSH checks whether address and port are available: the requested port, or the one that the session had before.
// In place of the latter it gets another one.
func (s survey) checkSSH(session resource.Session, removed map[string]bool) []preflight.Problem {
	ssh := session.Spec.SSH
	if !ssh.Enabled {
		return nil
	}
	if err := listens(resource.Port{Bind: ssh.Bind}); err != nil {
		advice := prose.Advice{What: err.Error(), Fix: "set bind to 127.0.0.1 for this machine only, or to 0.0.0.0 for all its networks"}
		if errors.Is(err, unix.EADDRNOTAVAIL) {
			advice.What = fmt.Sprintf("%s is not an address of this machine (ip addr lists them)", ssh.Bind)
		}
		return []preflight.Problem{{Attribute: "ssh.bind", Summary: "ssh cannot listen on " + ssh.Bind, Advice: advice}}
	}
	port := cmp.Or(ssh.Port, ssh.Kept)
	if port == 0 {
		return nil
	}
	at := resource.Port{Bind: ssh.Bind, Host: port}
	holder := s.holder(at, removed)
	switch {
	case holder == "":
		return nil
	case ssh.Port != 0:
		fix := `choose another port (port = "auto" takes a free one), or free it`
		return []preflight.Problem{taken("ssh.port", at, holder, fix)}
	}
	return []preflight.Problem{{Attribute: "ssh", Warning: true,
		Summary: fmt.Sprintf("%s gets another port for ssh", session.Address),
		Advice: prose.Advice{What: fmt.Sprintf("port %d on %s, which it had, is taken by %s. "+
			"Another one that is free is chosen; cosplay ssh finds it", port, ssh.Bind, holder)}}}
}

// checkPorts checks whether the ports to publish are available.
func (s survey) checkPorts(session resource.Session, removed map[string]bool) []preflight.Problem {
	var problems []preflight.Problem
	for _, p := range session.Spec.Ports {
		if holder := s.holder(p, removed); holder != "" {
			problems = append(problems, taken("ports", p, holder, "choose another port of the host, or free it"))
		}
	}
	return problems
}

// checkNetwork checks whether the session's network exists.
func (s survey) checkNetwork(ctx context.Context, session resource.Session) []preflight.Problem {
	if mode := container.NetworkMode(session.Spec.Network); mode == "" || !mode.IsUserDefined() {
		return nil
	}
	ctx, cancel := soon(ctx)
	defer cancel()
	if _, err := s.runtime.Engine.client.NetworkInspect(ctx, session.Spec.Network, network.InspectOptions{}); !errdefs.IsNotFound(err) {
		return nil // the engine reports any other error when it creates the container
	}
	return []preflight.Problem{{Attribute: "network",
		Summary: fmt.Sprintf("there is no network %s", session.Spec.Network),
		Advice: prose.Advice{What: "cosplay joins networks of the engine, and does not create them",
			Fix: "create it (docker network create " + session.Spec.Network + "), or correct the name (docker network ls)"}}}
}

// holder is what has a port of this machine, once the containers with the IDs in removed are removed, in words; "" is
// nothing.
func (s survey) holder(p resource.Port, removed map[string]bool) string {
	holder := s.publisher(p, removed)
	if holder == "" && s.publisher(p, nil) == "" && errors.Is(listens(p), unix.EADDRINUSE) {
		option := map[bool]string{false: "-ltnp", true: "-lunp"}[p.UDP]
		return fmt.Sprintf("a program that is no container's (ss %s 'sport = :%d' shows which)", option, p.Host)
	}
	return holder
}

// taken reports the holder of a port.
func taken(attribute string, p resource.Port, holder, fix string) preflight.Problem {
	return preflight.Problem{Attribute: attribute, Summary: fmt.Sprintf("port %d on %s is taken", p.Host, p.Bind),
		Advice: prose.Advice{What: holder + " has it", Fix: fix}}
}

// publisher is the container that has a port and is not removed, in words; "" is none.
func (s survey) publisher(p resource.Port, removed map[string]bool) string {
	for _, c := range s.containers {
		if !removed[c.ID] && publishes(c, p) {
			return "the container " + nameOf(c)
		}
	}
	return ""
}

func nameOf(c container.Summary) string {
	if len(c.Names) == 0 {
		return short(c.ID)
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// publishes reports whether a running container has a port on an address.
func publishes(c container.Summary, wanted resource.Port) bool {
	return slices.ContainsFunc(c.Ports, func(p container.Port) bool {
		return p.Type == wanted.Protocol() && int(p.PublicPort) == wanted.Host && overlap(p.IP, wanted.Bind)
	})
}

// overlap reports whether two servers cannot listen on both addresses at the same port.
func overlap(a, b string) bool {
	one, err := netip.ParseAddr(a)
	other, otherErr := netip.ParseAddr(b)
	if err != nil || otherErr != nil {
		return true // an engine without an address means all addresses
	}
	return one == other || one.Is4() == other.Is4() && (one.IsUnspecified() || other.IsUnspecified())
}

// listens returns an error if no server can listen at a port; 0 is any.
func listens(p resource.Port) (err error) {
	var l io.Closer
	if address := net.JoinHostPort(p.Bind, strconv.Itoa(p.Host)); p.UDP {
		l, err = net.ListenPacket("udp", address)
	} else {
		l, err = net.Listen("tcp", address)
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// checkName looks for a foreign container with the session's name, and for several containers of the session of which
// none has the name.
func (s survey) checkName(ctx context.Context, session resource.Session, removed map[string]bool) []preflight.Problem {
	var own []container.Summary
	for _, c := range s.containers {
		if s.runtime.owns(c) {
			if c.Labels[labelSession] == session.ID {
				own = append(own, c)
			}
			continue
		}
		if removed[c.ID] || !slices.Contains(c.Names, "/"+session.BodyName()) {
			continue
		}
		if err := s.runtime.nameTaken(ctx, session.ID, session.BodyName()); err != nil {
			return nameProblem(session, err)
		}
	}
	if len(own) > 0 {
		if _, err := s.runtime.pick(session.ID, own); err != nil {
			return nameProblem(session, err)
		}
	}
	return nil
}

func nameProblem(session resource.Session, err error) []preflight.Problem {
	summary := fmt.Sprintf("%s cannot have the container %s", session.Address, session.BodyName())
	return []preflight.Problem{{Summary: summary, Advice: prose.AdviceOf(err)}}
}

// fixSource creates what the source of a volume looks like: a file if its name has an extension.
func fixSource(source string) string {
	if ext := filepath.Ext(source); len(ext) > 1 && ext != filepath.Base(source) {
		return "create the file (an engine would create a folder), or correct the path"
	}
	return "create it (mkdir -p), or correct the path"
}

// checkVolumes looks for the folders of the host that are mounted. What this user cannot read, the engine checks.
func checkVolumes(session resource.Session) []preflight.Problem {
	var problems []preflight.Problem
	for i, v := range session.Spec.Volumes {
		if v.Named() || holds(v.Source, session.Workspace) {
			continue
		}
		if _, err := os.Stat(v.Source); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			problems = append(problems, preflight.Problem{Attribute: fmt.Sprintf("volume[%d].source", i),
				Summary: fmt.Sprintf("there is no %s to mount", v.Source),
				Advice: prose.Advice{What: "the source is a path of the host; a name without a slash is a volume that Docker creates",
					Fix: fixSource(v.Source)}})
		}
	}
	return problems
}

// holds reports whether a folder exists once the workspace has been created.
func holds(folder, workspace string) bool {
	rel, err := filepath.Rel(folder, workspace)
	return err == nil && filepath.IsLocal(rel)
}

func (e *Engine) checkLimits(l resource.Limits) []preflight.Problem {
	var problems []preflight.Problem
	if there := e.info.NCPU; there > 0 && l.CPUs > float64(there) {
		problems = append(problems, preflight.Problem{Attribute: "limits.cpus",
			Summary: fmt.Sprintf("the machine has %d CPUs, not %g", there, l.CPUs),
			Advice: prose.Advice{What: "the engine refuses a limit that is above",
				Fix: fmt.Sprintf("write at most %d, or leave cpus out for no limit", there)}})
	}
	if there := e.info.MemTotal / mib; there > 0 && int64(l.MemoryMiB) > there {
		problems = append(problems, preflight.Problem{Attribute: "limits.memory", Warning: true,
			Summary: fmt.Sprintf("the machine has %d MiB of memory, not %d", there, l.MemoryMiB),
			Advice: prose.Advice{What: "a limit above that limits nothing: the machine runs out of memory before",
				Fix: "write less, or leave memory out"}})
	}
	return problems
}

// checkEntrypoint reports an image without the program that is to run, and warns of one whose entrypoint is not run. An
// image that is still to be pulled is not known.
func (s survey) checkEntrypoint(ctx context.Context, session resource.Session) []preflight.Problem {
	image, asked := s.images[session.Spec.Image]
	if !asked {
		image, _ = s.runtime.Engine.image(ctx, session.Spec.Image) // an engine that fails is reported where it is needed
		s.images[session.Spec.Image] = image
	}
	switch spec := session.Spec; {
	case image.id == "":
	case spec.RunsImage() && len(image.run(session.Command)) == 0:
		return []preflight.Problem{{Attribute: "entrypoint", Summary: fmt.Sprintf("%s has no program to run", spec.Image), Advice: noProgram(spec.Image)}}
	case spec.Entrypoint == nil && len(image.entrypoint) > 0:
		return []preflight.Problem{{Attribute: "image", Warning: true, Summary: fmt.Sprintf("the ENTRYPOINT of %s is not run", spec.Image),
			Advice: prose.Advice{What: fmt.Sprintf("it is %s, and a session runs only what its block names", resource.CommandWords(image.entrypoint)),
				Fix: `write entrypoint = "image" to run it, or entrypoint = [] if it is not needed`}}}
	}
	return nil
}
