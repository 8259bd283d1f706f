// Package process runs sessions without Docker: a session is a folder, and no process runs permanently. Exec starts
// each program with the session's environment, and with the session's libraries in front.
package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"cosplay/internal/disguise"
	"cosplay/internal/durable"
	"cosplay/internal/preflight"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/shared"
)

const figuresFile = "session.json"

// Runtime keeps the session folders of one host of a project.
type Runtime struct {
	Base    string // the folder that holds them
	Library string // NVML library that programs must find; "" is the system's
	Key     string // of the state, for hashes
	Serial  int    // of the state after the run that creates the sessions
	Version string // of cosplay

	Stamped map[string]*resource.Body // with stamps, as the state has them, by session

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
	dir := filepath.Join(r.Base, s.ID)
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
	if err := r.seal(dir, cuda); err != nil {
		return resource.Body{}, err
	}
	made := r.body(dir, s, given.UUID)
	made.Serial = r.Serial
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
	return disguise.NewStamper(r.Base, of.nvml, of.cuda, figuresFile)
}

func (r Runtime) body(dir string, s resource.Session, sliceID string) resource.Body {
	return resource.Body{ID: dir, Session: s.ID, Host: s.Slice.Host, Runtime: name, State: resource.Running, Hash: s.Seal(r.Key).Hash(r.Key), SliceID: sliceID}
}

// install puts the facades where the session's programs look before they find the host's
// NVML library and CUDA driver. It reports whether there is a CUDA driver.
func (r Runtime) install(dir string, s resource.Session, given resource.Handle) (cuda bool, err error) {
	of, err := r.found()
	if err != nil {
		return false, err
	}
	return of.cuda != "", errors.Join(disguise.Install(dir, s, given, of.nvml, of.cuda), disguise.LinkProbes(r.Base, dir))
}

// Usage is the GPU memory that the programs of a session use. For a session without the
// disguise of CUDA it returns fs.ErrNotExist.
func (r Runtime) Usage(session string) (disguise.Usage, error) {
	return disguise.ReadUsage(filepath.Join(r.Base, session, disguise.UsageFile))
}

// Reports are what the programs of sessions did, by the index of each session whose programs report it.
func (r Runtime) Reports(sessions []string) iter.Seq2[int, resource.Report] {
	return disguise.ReadReports(r.Base, disguise.ReportFile, sessions)
}

// Unprepare removes a session's folder, never its workspace, and returns what its programs used.
func (r Runtime) Unprepare(_ context.Context, session string) (resource.Use, error) {
	if err := runtime.CheckSession(session); err != nil {
		return resource.Use{}, err
	}
	dir := filepath.Join(r.Base, session)
	// session.json first: the remainder of an interrupted removal must not look complete.
	if err := durable.Remove(filepath.Join(dir, figuresFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return resource.Use{}, err
	}
	used := disguise.LastUse(filepath.Join(dir, disguise.UsageFile))
	if err := os.RemoveAll(dir); err != nil {
		return used, fmt.Errorf("removing the session folder: %w", err)
	}
	shared.Remove(r.Base)
	return used, nil
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
	r := Runtime{Base: h.Folders, Library: h.Library, Key: h.Owner.Key, Serial: h.Owner.Serial, Stamped: h.Owner.Stamped, Version: h.Version}
	r.found = sync.OnceValues(r.find)
	return r
}

// Survey prepares the check of sessions that are to be created.
func (r Runtime) Survey(context.Context) (runtime.Survey, error) {
	return runtime.Survey{Check: func(_ context.Context, s resource.Session, _ map[string]bool) []preflight.Problem {
		return runtime.CheckWorkspace(s.Workspace)
	}}, nil
}
