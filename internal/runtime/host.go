package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/resource"
	"cosplay/internal/shared"
)

// Host is where a runtime runs the sessions of one state.
type Host struct {
	Name    string         // in the configuration
	Folders string         // path of the folder that holds the session folders; each runtime adds its suffix
	Shown   string         // the folder in a session's folder that its programs see; "" is all of it
	Owner   resource.Owner // of the sessions
	Library string         // absolute path of the host's NVML library; "" is the system's
	SimDir  string         // folder of a simulated host, its library and state in it; "" for hardware
	Version string         // of cosplay
}

// Folder is the path of a session's folder.
func (h Host) Folder(session string) string { return filepath.Join(h.Folders, session) }

// Inside is the path of the folder that a session's programs see.
func (h Host) Inside(session string) string { return filepath.Join(h.Folders, session, h.Shown) }

// Usage is what the programs of a session use of its GPU's memory. That of a session without the disguise of CUDA is
// fs.ErrNotExist.
func (h Host) Usage(session string) (disguise.Usage, error) {
	return disguise.ReadUsage(filepath.Join(h.Inside(session), disguise.UsageFile))
}

// Reports are what the programs of sessions did, by the index of each session whose programs report it.
func (h Host) Reports(sessions []string) iter.Seq2[int, resource.Report] {
	return disguise.ReadReports(h.Folders, filepath.Join(h.Shown, disguise.ReportFile), sessions)
}

// InteriorAt is what the programs of a session should find. They see their folder at a path; counts reports whether
// their memory is counted.
func (h Host) InteriorAt(path string, s resource.Session, counts bool) (Interior, error) {
	inside := h.Inside(s.ID)
	err := disguise.LinkProbes(h.Folders, inside)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // Exec reports a missing session
		return Interior{}, err
	}
	interior := Interior{Who: filepath.Join(path, driver.Who), Probe: filepath.Join(path, driver.Probe), Folder: h.Folder(s.ID)}
	if counts {
		interior.UsageFile = filepath.Join(inside, disguise.UsageFile)
	}
	if disguise.NeedsPython(s) {
		interior.PythonIn = filepath.Join(path, disguise.PythonDir)
	}
	return interior, nil
}

// Clear removes a session's folder, and with the last one what they shared.
func (h Host) Clear(session string) error {
	if err := os.RemoveAll(h.Folder(session)); err != nil {
		return fmt.Errorf("removing the session folder: %w", err)
	}
	shared.Remove(h.Folders)
	return nil
}
