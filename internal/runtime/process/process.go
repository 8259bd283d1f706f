// Package process runs sessions without Docker: a session is a folder with its
// figures, and no standing process. Programs are started in it one at a time,
// with the session's environment and libraries in front.
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cosplay/internal/disguise"
	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

const (
	figuresFile = "session.json"
	libraryDir  = "lib"
)

// Runtime keeps the session folders of one host of a project.
type Runtime struct {
	Base    string // the folder that holds them
	Library string // NVML library that programs must find; "" is the system's
	Key     string // of the state, for hashes
}

// figures is what a session's folder tells of it.
type figures struct {
	Session resource.Session `json:"session"`
	Slice   string           `json:"slice"`          // UUID of the MIG slice or of the whole GPU
	CUDA    bool             `json:"cuda,omitempty"` // whether the CUDA driver is disguised, too

	Secret map[string]string `json:"secret_env,omitempty"` // which the session leaves out
}

// Prepare writes the session's folder, or brings it up to date, and makes its
// workspace if it is missing.
func (r Runtime) Prepare(_ context.Context, s resource.Session, given resource.Handle) (resource.Container, error) {
	dir := filepath.Join(r.Base, s.ID)
	if err := os.MkdirAll(filepath.Join(dir, libraryDir), 0o700); err != nil {
		return resource.Container{}, fmt.Errorf("making the session folder: %w", err)
	}
	if err := os.MkdirAll(s.Workspace, 0o755); err != nil {
		return resource.Container{}, fmt.Errorf("making the workspace: %w", err)
	}
	was, before := readFigures(dir)
	cuda, err := r.install(dir, s, given.UUID)
	if err == nil && cuda && before == nil && was.Session.Target.MemoryMiB != s.Target.MemoryMiB {
		// What it came to on another GPU says nothing of this one.
		err = disguise.ForgetPeak(filepath.Join(dir, disguise.UsageFile))
	}
	if err != nil {
		return resource.Container{}, err
	}
	if err := r.seal(dir, cuda); err != nil {
		return resource.Container{}, err
	}
	content, err := json.MarshalIndent(figures{Session: s, Slice: given.UUID, CUDA: cuda, Secret: s.Secret}, "", "  ")
	if err != nil {
		return resource.Container{}, err
	}
	// Last, since the folder counts as made once its figures are there.
	if err := durable.WriteFile(filepath.Join(dir, figuresFile), append(content, '\n'), 0o400); err != nil {
		return resource.Container{}, fmt.Errorf("writing the session's figures: %w", err)
	}
	return r.container(dir, s, given.UUID), nil
}

func (r Runtime) container(dir string, s resource.Session, sliceID string) resource.Container {
	return resource.Container{ID: dir, Session: s.ID, Host: s.Slice.Host, Runtime: resource.RuntimeProcess, State: resource.Running, Hash: s.Seal(r.Key).Hash(r.Key), SliceID: sliceID}
}

// install puts the disguise in front of the host's NVML library and CUDA driver,
// where the session's programs look first. It reports whether there is the latter.
func (r Runtime) install(dir string, s resource.Session, sliceID string) (cuda bool, err error) {
	library := r.Library
	if library == "" {
		if library, err = disguise.SystemLibrary(); err != nil {
			return false, err
		}
	}
	if err := disguise.Install(dir, s, sliceID, library); err != nil {
		return false, err
	}
	driver := disguise.CUDALibrary(library)
	if driver == "" {
		return false, nil
	}
	return true, disguise.InstallCUDA(dir, driver)
}

// Usage is what the programs of a session use of its GPU's memory. That of a
// session without the disguise of CUDA is fs.ErrNotExist.
func (r Runtime) Usage(session string) (disguise.Usage, error) {
	return disguise.ReadUsage(filepath.Join(r.Base, session, disguise.UsageFile))
}

// Unprepare removes a session's folder, never its workspace, and tells what its
// programs used.
func (r Runtime) Unprepare(_ context.Context, session string) (resource.Use, error) {
	if session == "." || session != filepath.Base(session) || !filepath.IsLocal(session) {
		return resource.Use{}, fmt.Errorf("%q is not the id of a session", session)
	}
	dir := filepath.Join(r.Base, session)
	// The figures first: what is left of a cut-off removal must not look whole.
	if err := durable.Remove(filepath.Join(dir, figuresFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return resource.Use{}, err
	}
	used := disguise.LastUse(filepath.Join(dir, disguise.UsageFile))
	if err := os.RemoveAll(dir); err != nil {
		return used, fmt.Errorf("removing the session folder: %w", err)
	}
	_ = os.Remove(r.Base) // the last one out; it stays while others are in it
	return used, nil
}

// List tells which sessions have a folder. One whose figures were edited has
// another hash than the state remembers.
func (r Runtime) List(context.Context) ([]resource.Container, error) {
	entries, err := os.ReadDir(r.Base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the session folders: %w", err)
	}
	var all []resource.Container
	for _, e := range entries {
		dir := filepath.Join(r.Base, e.Name())
		f, err := readFigures(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist): // half made or half removed
			all = append(all, resource.Container{ID: dir, Session: e.Name(), Runtime: resource.RuntimeProcess, State: resource.Stopped})
		case errors.Is(err, errDamaged):
			all = append(all, resource.Container{ID: dir, Session: e.Name(), Runtime: resource.RuntimeProcess, State: resource.Running, Hash: "damaged"})
		case err != nil:
			return nil, err
		default:
			c := r.container(dir, f.Session, f.Slice)
			if c.Damaged, err = disguise.Glance(dir); err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	return all, nil
}

var errDamaged = errors.New("the session's figures are damaged; cosplay apply writes them anew")

func readFigures(dir string) (figures, error) {
	var f figures
	data, err := os.ReadFile(filepath.Join(dir, figuresFile))
	if err != nil {
		return f, err
	}
	if json.Unmarshal(data, &f) != nil || f.Session.ID != filepath.Base(dir) {
		return f, fmt.Errorf("%s: %w", dir, errDamaged)
	}
	f.Session.Secret = f.Secret
	return f, nil
}
