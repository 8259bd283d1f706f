package docker

import (
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"cosplay/internal/initd"
	"cosplay/internal/inside"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Labels of cosplay's containers.
const (
	labelLineage = "cosplay.lineage"
	labelHost    = "cosplay.host"
	labelSession = "cosplay.session" // the session's ID
	labelAddress = "cosplay.address"
	labelHash    = "cosplay.hash"
	labelGPU     = "cosplay.gpu"   // UUID
	labelSlice   = "cosplay.slice" // UUID of the MIG slice or of the whole GPU
	labelSeal    = "cosplay.seal"
	labelCommand = "cosplay.command" // "yes" where the session runs a program
	labelSerial  = "cosplay.serial"  // of the state after the run that created the container
	labelNetwork = "cosplay.network" // where the session names one
	labelPrivate = "cosplay.private" // "yes" where sensitive values are in files of the session's user
)

// called is the name of the container of a session in the state.
func (r Runtime) called(session string) string {
	return cmp.Or(r.Owner.Names[session], resource.BodyName(session))
}

func (r Runtime) labels(s resource.Session, slice string) map[string]string {
	l := map[string]string{
		labelLineage: r.Owner.Lineage,
		labelHost:    r.Host.Name,
		labelSession: s.ID,
		labelAddress: s.Address.String(),
		labelHash:    s.Hash(r.Owner.Key),
		labelGPU:     s.Slice.GPU,
		labelSlice:   slice,
		labelSerial:  strconv.Itoa(r.Owner.Serial),
		labelPrivate: "yes",
	}
	if s.HasProgram() {
		l[labelCommand] = "yes"
	}
	if s.Spec.Network != "" && container.NetworkMode(s.Spec.Network).IsUserDefined() {
		l[labelNetwork] = s.Spec.Network
	}
	l[labelSeal] = r.seal(l)
	return l
}

func (r Runtime) seal(l map[string]string) string {
	return hex.EncodeToString(r.MAC("seal", l[labelLineage], l[labelHost], l[labelSession], l[labelHash], l[labelSlice]))
}

// owns reports whether a container belongs to this state and host. Labels can be forged, so they are sealed; or the
// state has the container's ID, since the seal of a lost state may be of another key. Labels can also be copied, as
// docker commit does: so the container must have the session's name or, after docker rename, the session's folder.
func (r Runtime) owns(c container.Summary) bool {
	return r.claims(c) && (r.sealed(c) || slices.Contains(r.Owner.Bodies, c.ID))
}

// claims reports whether the labels of a container name this state and host.
func (r Runtime) claims(c container.Summary) bool {
	l := c.Labels
	return r.Owner.Lineage != "" && l[labelLineage] == r.Owner.Lineage && l[labelHost] == r.Host.Name &&
		(r.named(c) || furnished(c))
}

// sealed reports whether the owner of the key has made a container's labels.
func (r Runtime) sealed(c container.Summary) bool {
	return r.Owner.Key != "" && hmac.Equal([]byte(c.Labels[labelSeal]), []byte(r.seal(c.Labels)))
}

// named compares all names: a container has another one for each container that links to it.
func (r Runtime) named(c container.Summary) bool {
	return slices.Contains(c.Names, "/"+r.called(c.Labels[labelSession]))
}

// furnished does not compare where the session folders are: a project may be moved.
func furnished(c container.Summary) bool {
	return slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool {
		return m.Destination == initd.Dir && strings.HasSuffix(m.Source, string(filepath.Separator)+filepath.Join(c.Labels[labelSession], inside.Dir))
	})
}

// ours are the containers of this state and host, of one session or of all.
func (r Runtime) ours(ctx context.Context, session string) ([]container.Summary, error) {
	var labels []string
	if session != "" {
		labels = append(labels, labelSession+"="+session)
	}
	found, err := r.claimed(ctx, labels...)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(c container.Summary) bool { return !r.owns(c) })
	for _, c := range r.Owner.Imported {
		if c.Host != r.Host.Name || session != "" && c.Session != session {
			continue
		}
		imported, err := r.imported(ctx, c)
		if err != nil {
			return nil, err
		}
		found = append(found, imported...)
	}
	return found, nil
}

// imported is a container that cosplay did not create, with the labels by which its session finds it.
func (r Runtime) imported(ctx context.Context, c resource.Body) ([]container.Summary, error) {
	found, err := r.Engine.containers(ctx, "looking for the container "+short(c.ID), filters.Arg("id", c.ID))
	for i := range found {
		found[i].Labels = r.importedLabels(c)
	}
	return found, err
}

// containers lists the containers that all filters match, whatever their state.
func (e *Engine) containers(ctx context.Context, doing string, matching ...filters.KeyValuePair) ([]container.Summary, error) {
	ctx, cancel := soon(ctx)
	defer cancel()
	found, err := e.client.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(matching...)})
	return found, e.explain(doing, err, subject{})
}

// claimed are the containers whose labels name this state and host.
func (r Runtime) claimed(ctx context.Context, labels ...string) ([]container.Summary, error) {
	if r.Owner.Lineage == "" {
		return nil, nil
	}
	labels = append(labels, labelLineage+"="+r.Owner.Lineage, labelHost+"="+r.Host.Name)
	wanted := prose.Each(labels, func(label string) filters.KeyValuePair { return filters.Arg("label", label) })
	found, err := r.Engine.containers(ctx, "listing the sessions' containers", wanted...)
	return slices.DeleteFunc(found, func(c container.Summary) bool { return !r.claims(c) }), err
}

// foreignNames are the names of the containers that other states of cosplay have, sorted.
func (r Runtime) foreignNames(ctx context.Context) ([]string, error) {
	all, err := r.Engine.containers(ctx, "listing the containers", filters.Arg("label", labelLineage))
	var names []string
	for _, c := range all {
		if c.Labels[labelLineage] == r.Owner.Lineage {
			continue
		}
		for _, name := range c.Names {
			names = append(names, strings.TrimPrefix(name, "/"))
		}
	}
	slices.Sort(names)
	return names, err
}

// pick chooses a session's container: the one with its name, else the only one. If neither exists, it returns an
// error and any of them.
func (r Runtime) pick(session string, found []container.Summary) (container.Summary, error) {
	if i := slices.IndexFunc(found, r.named); i >= 0 {
		return found[i], nil
	}
	slices.SortFunc(found, func(a, b container.Summary) int { return cmp.Compare(a.ID, b.ID) })
	if len(found) == 1 {
		return found[0], nil
	}
	var names []string
	for _, c := range found {
		names = append(names, fmt.Sprintf("%s (%s)", strings.TrimPrefix(strings.Join(c.Names, " "), "/"), short(c.ID)))
	}
	return found[0], fmt.Errorf("session %s has %d containers and none is called %s: %s; give one that name (docker rename) or remove those that are not to stay (docker rm -f)",
		session, len(found), r.called(session), strings.Join(names, ", "))
}

// find returns a session's container, whatever its name is; nil is none.
func (r Runtime) find(ctx context.Context, session string) (*container.InspectResponse, error) {
	found, err := r.ours(ctx, session)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	one, err := r.pick(session, found)
	if err != nil {
		return nil, err
	}
	return r.inspectOwn(ctx, one.ID)
}

// inspect reads a container by ID or name; nil is none.
func (e *Engine) inspect(ctx context.Context, ref string) (*container.InspectResponse, error) {
	ctx, cancel := soon(ctx)
	defer cancel()
	there, err := e.client.ContainerInspect(ctx, ref)
	switch {
	case errdefs.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, e.explain("looking at the container "+ref, err, subject{name: ref})
	}
	return &there, nil
}

// Stranger is a container by any name or ID, to be imported, with the GPU that it was given, and the lineage and the host
// that its labels name. nil is none.
func (r Runtime) Stranger(ctx context.Context, ref string) (c *resource.Body, called, lineage, host string, err error) {
	there, err := r.inspect(ctx, ref)
	if err != nil || there == nil {
		return nil, "", "", "", err
	}
	l := there.Config.Labels
	body := resource.Body{ID: there.ID, Host: r.Host.Name, Runtime: name, State: stateOf(there.State.Status),
		Image: there.Image, SliceID: givenDevice(there), Foreign: true}
	return &body, strings.TrimPrefix(there.Name, "/"), l[labelLineage], l[labelHost], nil
}

// nameTaken returns an error if a foreign container has the name of a session's.
func (r Runtime) nameTaken(ctx context.Context, session, name string) error {
	there, err := r.inspect(ctx, name)
	if err != nil || there == nil || there.Name != "/"+name { // the engine also accepts the beginning of an ID
		return err
	}
	for _, c := range r.Owner.Imported {
		switch {
		case c.ID != there.ID:
		case c.Session == session:
			return nil
		default:
			return prose.Advice{What: fmt.Sprintf("the name %s is that of an imported container of this project, %s", name, short(there.ID)), Fix: "give one of the two session blocks another name"}
		}
	}
	if l := there.Config.Labels; hmac.Equal([]byte(l[labelSeal]), []byte(r.seal(l))) && l[labelSession] == session {
		return nil // the project's, created meanwhile
	}
	return r.Engine.notOurs(there)
}

// rename gives a session's container its name.
func (r Runtime) rename(ctx context.Context, s resource.Session, there *container.InspectResponse) error {
	if there.Name == "/"+s.BodyName() {
		return nil
	}
	if err := r.nameTaken(ctx, s.ID, s.BodyName()); err != nil {
		return err
	}
	ctx, cancel := soon(ctx)
	defer cancel()
	err := r.Engine.client.ContainerRename(ctx, there.ID, s.BodyName())
	doing := "giving the container " + strings.TrimPrefix(there.Name, "/") + " its name " + s.BodyName()
	return r.Engine.explain(doing, err, subject{name: s.BodyName()})
}

// runsHere reports whether a process of this machine runs in a container: its control group has the container's ID in its
// name.
func runsHere(pid int, container string) bool {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && strings.Contains(string(groups), container)
}

// short is an ID as the docker command prints it.
func short(id string) string { return id[:min(12, len(id))] }
