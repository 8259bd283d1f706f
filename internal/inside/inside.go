// Package inside makes what a session needs in a container, whatever starts that container: the session's folder, the
// mounts, the device nodes of its slice, the environment of its programs and its ssh identity. It asks no engine: what
// only the image knows, the caller passes.
package inside

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cosplay/driver"
	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/shared"
)

// Sessions are those of one state on one host that are in containers.
type Sessions struct {
	runtime.Host
	Specs  string     // the folder of CDI specifications
	Driver cdi.Driver // NVIDIA's, of this machine
}

// On are the sessions in containers on a host.
func On(h runtime.Host) Sessions {
	h.Shown = Dir
	return Sessions{Host: h, Specs: cdi.Dir}
}

// The files of a session's folder: what the container sees under initd.Dir, and beside it the session itself, for a
// lost state, and the line by which ssh knows it.
const (
	Dir       = "inside"
	EmptyDir  = "empty" // what the container sees in place of the project's scratch folder
	UsageFile = disguise.UsageFile
	ReadyFile = "ready" // initd.ReadyPath

	sessionFile    = "session.json"
	knownHostsFile = "known_hosts"
	figuresFile    = "figures"
	reportFile     = disguise.ReportFile // writable inside, as the usage file and unlike all else
	privateDir     = "private"           // initd.PrivateDir
	facadeFile     = "lib/" + driver.NVML
	cudaFacadeFile = "lib/" + driver.CUDA
)

// The host's own libraries, for the facades: mounts on empty files of the folder.
var (
	driverFile     = behind(driver.NVML)
	cudaDriverFile = behind(driver.CUDA)
)

func behind(library string) string {
	return strings.TrimPrefix(cdi.Behind, initd.Dir+"/") + "/" + library
}

// InContainer is the path in a container of a file of the inside folder.
func InContainer(file string) string { return path.Join(initd.Dir, file) }

func (in Sessions) empty(session string) string { return filepath.Join(in.Folder(session), EmptyDir) }

// MAC is a message authentication code of some words, which only the owner of the state can make.
func (in Sessions) MAC(words ...string) []byte {
	content, err := json.Marshal(words)
	if err != nil {
		panic(err) // strings only: it cannot fail
	}
	sum := hmac.New(sha256.New, []byte(in.Owner.Key))
	sum.Write(content)
	return sum.Sum(nil)
}

// Recorded is the session in a session's folder, as it was furnished; none if the folder is missing or damaged.
func (in Sessions) Recorded(session string) (s resource.Session, found bool, err error) {
	data, err := os.ReadFile(filepath.Join(in.Folder(session), sessionFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	found = err == nil && json.Unmarshal(data, &s) == nil && s.ID == session
	return s, found, err
}

// Readdress writes the address that a session has now into its folder, for a state that is rebuilt: the labels of a
// container cannot be changed.
func (in Sessions) Readdress(session string, to resource.Address) error {
	return in.Rewrite(session, func(s *resource.Session) { s.Address = to })
}

// Rewrite changes the session in a session's folder. A folder that does not exist, or that is damaged, is no error.
func (in Sessions) Rewrite(session string, change func(*resource.Session)) error {
	if err := runtime.CheckSession(session); err != nil {
		return err
	}
	s, found, err := in.Recorded(session)
	if !found {
		return err
	}
	change(&s)
	return in.record(s)
}

func (in Sessions) record(s resource.Session) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return shared.Replace(filepath.Join(in.Folder(s.ID), sessionFile), data, 0o600)
}

// MakeWorkspace creates a session's workspace if it is missing. If root creates it, it belongs to the user.
func MakeWorkspace(path string, user resource.User) error {
	var missing []string
	for dir := path; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, dir)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("making the workspace: %w", err)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	for _, dir := range missing {
		if err := os.Chown(dir, user.UID, user.GID); err != nil {
			return fmt.Errorf("giving the workspace to %s: %w", user.Name, err)
		}
	}
	return nil
}

func present(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
