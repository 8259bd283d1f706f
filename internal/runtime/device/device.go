// Package device runs sessions as CDI devices: a session is a specification of the Container Device Interface, by which
// any engine gives any container the session's slice in its disguise. cosplay creates no container.
package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
	"cosplay/internal/initd"
	"cosplay/internal/inside"
	"cosplay/internal/preflight"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/shared"
)

const (
	name         = "cdi" // in the configuration and the state
	folderSuffix = ".devices"
	bodyFile     = "device.json"
)

// Driver is the runtime whose sessions are devices for the containers of others.
var Driver = runtime.Driver{
	Runtime: resource.Runtime{
		Name: name, Title: "CDI", Where: "as CDI devices", Body: "CDI device",
		Ignores:  []string{"workspace", "command"},
		Rewrites: true, RenewsInPlace: true, LeavesFiles: true, Named: true, Devices: true,
		RemoveCommand: "rm",
	},
	Auto:         func(bool) bool { return false }, // only a host that names it
	FolderSuffix: folderSuffix,
	Runs:         func(p resource.Process, c resource.Body) bool { return p.Marked(mark(c.Session)) },
	Open:         func(h runtime.Host) runtime.Runtime { return open(h) },
	Readdress: func(h runtime.Host, session string, to resource.Address) error {
		return open(h).Readdress(session, to)
	},
}

// Runtime writes the devices of one host of a project.
type Runtime struct{ inside.Sessions }

func open(h runtime.Host) Runtime {
	h.Folders += folderSuffix
	return Runtime{inside.On(h)}
}

// Of is the device of a session.
func Of(session string) cdi.Device { return cdi.Device{Vendor: cdi.ForOthers, Name: session} }

// mark is what a process of the session has in its environment, or one of its ancestors.
func mark(session string) string { return resource.DeviceVariable + "=" + Of(session).Qualified() }

// record is the content of a session's bodyFile.
type record struct {
	Body          resource.Body `json:"body"`
	Specification string        `json:"specification"` // as it was written
	Digest        string        `json:"digest"`        // in the variables of containers
}

// Prepare writes the session's folder and the specification of its device.
func (r Runtime) Prepare(_ context.Context, s resource.Session, given resource.Handle) (made resource.Body, err error) {
	if err := runtime.CheckSession(s.ID); err != nil {
		return made, err
	}
	if r.Folders, err = filepath.Abs(r.Folders); err != nil { // mounts need absolute paths
		return made, err
	}
	device := Of(s.ID)
	if err := r.taken(s.ID); err != nil {
		return made, err
	}
	edits, err := r.Give(device, s, given)
	if err != nil {
		return made, err
	}
	specification, err := device.Specification(edits)
	if err != nil {
		return made, err
	}
	digest := shared.Digest(append(specification, disguise.MadeFrom(r.Folder(s.ID))...))
	edits.Env[resource.DeviceDigest] = digest
	if specification, err = device.Specification(edits); err != nil {
		return made, err
	}
	made = resource.Body{ID: device.File(r.Specs), Session: s.ID, Host: s.Slice.Host, Runtime: name, State: resource.Running,
		Hash: s.Seal(r.Owner.Key).Hash(r.Owner.Key), SliceID: given.UUID, Serial: r.Owner.Serial}
	content, err := json.Marshal(record{made, string(specification), digest})
	if err != nil {
		return made, err
	}
	if err := shared.Replace(filepath.Join(r.Folder(s.ID), bodyFile), content, 0o600); err != nil {
		return made, err
	}
	return made, device.Write(r.Specs, edits) // last: the device exists once engines find it
}

// taken is an error if a device of this name is another project's.
func (r Runtime) taken(session string) error {
	file := Of(session).File(r.Specs)
	there, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && r.owns(session, there) {
		return nil
	}
	if err != nil {
		return err
	}
	return prose.Advice{What: fmt.Sprintf("%s is the device of another project", file), Fix: "rename this session or the folder of this project; or remove the file, if its project was removed"}
}

// owns reports whether a specification is that of a session of this project, by the session folder that it names. A
// project's folder may have moved since, and a specification that names none may be the session's own, damaged.
func (r Runtime) owns(session string, specification []byte) bool {
	was, found := r.recorded(session)
	named := ""
	if edits, err := cdi.Parse(specification); err == nil {
		for _, m := range edits.Mounts {
			if m.Container == initd.Dir {
				named = m.Host
			}
		}
	}
	if named == "" {
		return found
	}
	there, err := os.Stat(named)
	if errors.Is(err, fs.ErrNotExist) {
		inside, err := filepath.Abs(r.Inside(session))
		return err == nil && named == inside || found && string(specification) == was.Specification
	}
	own, missing := os.Stat(r.Inside(session))
	return err == nil && missing == nil && os.SameFile(there, own)
}

// Unprepare removes the device and the session's folder, and returns what the session's programs used.
func (r Runtime) Unprepare(_ context.Context, session string) (resource.Use, error) {
	if err := runtime.CheckSession(session); err != nil {
		return resource.Use{}, err
	}
	if r.taken(session) == nil {
		if err := Of(session).Remove(r.Specs); err != nil {
			return resource.Use{}, err
		}
	}
	return disguise.LastUse(filepath.Join(r.Inside(session), disguise.UsageFile)), r.Clear(session)
}

// List lists the sessions that have a device. After a reboot no specification is left, and so no device.
func (r Runtime) List(context.Context) ([]resource.Body, error) {
	inspector := disguise.Inspector{Version: r.Version}
	containers := sync.OnceValues(containers)
	var all []resource.Body
	for session, err := range r.sessions() {
		if err != nil {
			return nil, err
		}
		was, found := r.recorded(session)
		now, err := os.ReadFile(Of(session).File(r.Specs))
		if !found || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c := was.Body
		c.ID = Of(session).File(r.Specs)
		sight, err := inspector.Glance(r.Folder(session))
		if err != nil {
			return nil, err
		}
		c.Damaged, c.Outdated, c.Use = sight.Damaged, sight.Outdated, sight.Use
		if string(now) != was.Specification {
			c.Damaged = "its specification was changed"
		}
		there, err := containers()
		if err != nil {
			return nil, err
		}
		c.Earlier = prose.Each(r.earlier(session, there), func(c container) int { return c.pid })
		all = append(all, c)
	}
	return all, nil
}

// sessions are the IDs of those that have a folder.
func (r Runtime) sessions() func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		entries, err := os.ReadDir(r.Folders)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield("", fmt.Errorf("list the session folders: %w", err))
			return
		}
		for _, e := range entries {
			if e.Name() != shared.Dir && !yield(e.Name(), nil) {
				return
			}
		}
	}
}

func (r Runtime) recorded(session string) (was record, found bool) {
	content, err := os.ReadFile(filepath.Join(r.Folder(session), bodyFile))
	return was, err == nil && json.Unmarshal(content, &was) == nil && was.Body.Session == session
}

// Remains reads each session folder as far as possible. All folders belong to the project.
func (r Runtime) Remains(ctx context.Context) ([]resource.Remains, error) {
	listed, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	bodies := map[string]resource.Body{}
	for _, c := range listed {
		bodies[c.Session] = c
	}
	var all []resource.Remains
	for session, err := range r.sessions() {
		if err != nil {
			return nil, err
		}
		one := resource.Remains{Session: resource.Session{ID: session, Runtime: name}, Body: bodies[session], Proven: true}
		if s, found, err := r.Recorded(session); err != nil {
			return nil, err
		} else if found {
			one.Session = s
		}
		if one.Body.ID == "" {
			one.Body = resource.Body{ID: Of(session).File(r.Specs), Session: session, Host: r.Name, Runtime: name, State: resource.Stopped}
		}
		all = append(all, one)
	}
	return all, nil
}

// Altered lists what has changed in the session's folder, and in the driver behind it, since the folder was written.
func (r Runtime) Altered(_ context.Context, s resource.PriorSession) (map[string]string, error) {
	return disguise.Altered(r.Folder(s.ID))
}

// Survey prepares the check of sessions that are to be created.
func (r Runtime) Survey(context.Context) (runtime.Survey, error) {
	var host []preflight.Problem
	if !cdi.Writable(r.Specs) {
		host = append(host, preflight.Problem{Summary: "you cannot write CDI specifications",
			Advice: prose.Advice{What: r.Specs + " belongs to root, and engines read devices there", Fix: "run cosplay as root, or give the folder to your user"}})
	}
	there, err := containers()
	return runtime.Survey{Host: host, Check: func(_ context.Context, s resource.Session, removed map[string]bool) []preflight.Problem {
		if err := Of(s.ID).Check(); err != nil {
			return []preflight.Problem{{Summary: "CDI does not accept the name of its device", Advice: prose.Advice{
				What: err.Error(), Fix: "rename the session or the folder of this project, both of which are in it"}}}
		}
		if err := r.taken(s.ID); err != nil && !removed[Of(s.ID).File(r.Specs)] {
			advice := prose.Advice{What: err.Error()}
			_ = errors.As(err, &advice)
			return []preflight.Problem{{Summary: "the name of its device is taken", Advice: advice}}
		}
		if len(s.Secret) > 0 {
			return []preflight.Problem{{Attribute: "env", Summary: "a CDI device cannot have sensitive values",
				Advice: prose.Advice{What: "every user can read its specification, and the variables of containers", Fix: "give sensitive values to the container by its engine (docker run --env-file, a secret)"}}}
		}
		return r.running(s.ID, there)
	}}, err
}

// running warns of containers that have the device of a session, which a plan writes again.
func (r Runtime) running(session string, there []container) []preflight.Problem {
	pids := prose.Each(append(r.holding(session, there), r.earlier(session, there)...), func(c container) int { return c.pid })
	slices.Sort(pids)
	if pids = slices.Compact(pids); len(pids) == 0 {
		return nil
	}
	return []preflight.Problem{{Warning: true, Summary: "running containers keep the device as it is now",
		Advice: prose.Advice{What: "engines give devices to containers when they start, and one runs: " + resource.DeviceHolders(pids),
			Fix: "after the apply, " + resource.RestartContainer + "; cosplay drift names those that are left"}}}
}
