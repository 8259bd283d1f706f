// Package process runs sessions without Docker: a session is a folder, and no process runs permanently. Exec starts
// each program with the session's environment, and with the session's libraries in front.
package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"cosplay/internal/disguise"
	"cosplay/internal/durable"
	"cosplay/internal/preflight"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

const figuresFile = "session.json"

// Runtime keeps the session folders of one host of a project.
type Runtime struct {
	runtime.Host
	found func() (behind, error) // found once: a search reads the loader's configuration
}

// behind are the paths of the host's own libraries.
type behind struct{ nvml, cuda string }

func (r Runtime) find() (l behind, err error) {
	if l.nvml = r.Library; l.nvml == "" {
		l.nvml, err = disguise.SystemLibrary()
	}
	if err == nil {
		l.cuda = disguise.CUDALibrary(l.nvml)
	}
	return l, err
}

// Prepare creates or updates the session's folder, and creates its workspace if it does not exist.
func (r Runtime) Prepare(_ context.Context, s resource.Session, given resource.Handle) (resource.Body, error) {
	dir := r.Folder(s.ID)
	// The folder holds sensitive values, so an existing one is closed as well.
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, disguise.LibraryDir), 0o700), os.Chmod(dir, 0o700)); err != nil {
		return resource.Body{}, fmt.Errorf("create the session folder: %w", err)
	}
	if err := durable.MakeFolder(s.Workspace, 0o755); err != nil {
		return resource.Body{}, fmt.Errorf("create the workspace: %w", err)
	}
	was, before := readFigures(dir)
	cuda, err := r.install(dir, s, given)
	if err == nil && cuda && before == nil && was.Session.Target.MemoryMiB != s.Target.MemoryMiB {
		// The peak memory use on another GPU does not apply to this one.
		err = disguise.ForgetPeak(filepath.Join(dir, disguise.UsageFile))
	}
	if err != nil {
		return resource.Body{}, err
	}
	if err := r.writeManifest(dir, cuda); err != nil {
		return resource.Body{}, err
	}
	made := r.body(dir, s, given.UUID)
	made.Serial = r.Owner.Serial
	// Last, since the folder counts as complete once session.json exists.
	err = r.writeFigures(dir, figures{Body: &made, Session: s, Slice: given.UUID, CUDA: cuda, Secret: s.Secret})
	if err == nil {
		r.stamp(&made)
	}
	return made, err
}

// stamp stamps the body of an intact session folder. Without a stamp, List inspects all of the folder.
func (r Runtime) stamp(c *resource.Body) {
	stamper, err := r.stamper()
	if err != nil {
		return
	}
	defer stamper.Close()
	c.Stamp, _ = stamper.Stamp(c.Session)
}

func (r Runtime) stamper() (*disguise.Stamper, error) {
	of, err := r.found()
	if err != nil {
		return nil, err
	}
	return disguise.NewStamper(r.Folders, of.nvml, of.cuda, figuresFile)
}

func (r Runtime) body(dir string, s resource.Session, sliceID string) resource.Body {
	return resource.Body{ID: dir, Session: s.ID, Host: s.Slice.Host, Runtime: name, State: resource.Running,
		Hash: s.Seal(r.Owner.Key).Hash(r.Owner.Key), SliceID: sliceID}
}

// install puts the facades where the session's programs look before they find the host's
// NVML library and CUDA driver. It reports whether there is a CUDA driver.
func (r Runtime) install(dir string, s resource.Session, given resource.Handle) (cuda bool, err error) {
	of, err := r.found()
	if err != nil {
		return false, err
	}
	err = errors.Join(disguise.Install(dir, s, given, of.nvml, of.cuda), disguise.LinkProbes(r.Folders, dir))
	return of.cuda != "", err
}

// Unprepare removes a session's folder, never its workspace, and returns what its programs used.
func (r Runtime) Unprepare(_ context.Context, session string) (resource.Use, error) {
	if err := runtime.CheckSession(session); err != nil {
		return resource.Use{}, err
	}
	dir := r.Folder(session)
	// session.json first: the remainder of an interrupted removal must not look complete.
	if err := durable.Remove(filepath.Join(dir, figuresFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return resource.Use{}, err
	}
	return disguise.LastUse(filepath.Join(dir, disguise.UsageFile)), r.Clear(session)
}

// name is the name of the runtime in the configuration and the state.
const name = "process"

// Driver is the runtime whose sessions are folders, in which processes of the host find the disguise.
var Driver = runtime.Driver{
	Runtime: resource.Runtime{
		Name: name, Title: "process", Where: "as processes", Body: "session folder",
		Rewrites: true, RenewsInPlace: true,
		RemoveCommand: "rm -r",
	},
	Auto: func(bool) bool { return true },
	Runs: runs,
	Open: func(h runtime.Host) runtime.Runtime { return open(h) },
	Readdress: func(h runtime.Host, session string, to resource.Address) error {
		return open(h).Readdress(session, to)
	},
}

func open(h runtime.Host) Runtime {
	r := Runtime{Host: h}
	r.found = sync.OnceValues(r.find)
	return r
}

// Survey prepares the check of sessions that are to be created.
func (r Runtime) Survey(context.Context) (runtime.Survey, error) {
	return runtime.Survey{Check: func(_ context.Context, s resource.Session, _ map[string]bool) []preflight.Problem {
		return runtime.CheckWorkspace(s.Workspace)
	}}, nil
}
