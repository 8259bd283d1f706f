package docker

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"cosplay/driver"
	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
	"cosplay/internal/initd"
	"cosplay/internal/initd/environ"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/shared"
)

// The files of a session's folder: what the container sees under initd.Dir, and beside it the session itself, for a
// lost state, and the line by which ssh knows it.
const (
	insideDir      = "inside"
	emptyDir       = "empty" // what the container sees in place of the project's scratch folder
	sessionFile    = "session.json"
	knownHostsFile = "known_hosts"
	figuresFile    = "figures"
	usageFile      = disguise.UsageFile // writable inside, unlike all else but the report
	reportFile     = disguise.ReportFile
	readyFile      = "ready"   // initd.ReadyPath
	privateDir     = "private" // initd.PrivateDir
	facadeFile     = "lib/" + driver.NVML
	cudaFacadeFile = "lib/" + driver.CUDA
)

// The host's own libraries, for the facades: mounts on empty files of the folder.
var (
	driverFile     = behind(driver.NVML)
	cudaDriverFile = behind(driver.CUDA)
)

func inContainer(file string) string { return path.Join(initd.Dir, file) }

func behind(library string) string {
	return strings.TrimPrefix(cdi.Behind, initd.Dir+"/") + "/" + library
}

func (r Runtime) folder(session string) string { return filepath.Join(r.Base, session) }
func (r Runtime) inside(session string) string { return filepath.Join(r.folder(session), insideDir) }
func (r Runtime) empty(session string) string  { return filepath.Join(r.folder(session), emptyDir) }

// furnish writes a session's folder, or updates it. After a crash any file may be incomplete: the files are derived,
// and written again before every start. The usage file belongs to the programs, and stays. g is the grant of the
// slice, and image the name or ID of the container's.
func (r Runtime) furnish(ctx context.Context, s resource.Session, given resource.Handle, g grant, image string) error {
	inside := r.inside(s.ID)
	for _, dir := range []struct { // the outermost first, which is closed to other users
		path string
		mode os.FileMode
	}{
		{r.folder(s.ID), 0o700},
		{inside, 0o755},
		{r.empty(s.ID), 0o555},
		{filepath.Dir(filepath.Join(inside, facadeFile)), 0o755},
		{filepath.Dir(filepath.Join(inside, driverFile)), 0o755},
	} {
		if err := errors.Join(os.MkdirAll(dir.path, dir.mode), os.Chmod(dir.path, dir.mode)); err != nil {
			return fmt.Errorf("making the session folder: %w", err)
		}
	}
	of := r.config(s, given.UUID, g.env)
	var err error
	if of.Command, err = r.program(ctx, s, image); err != nil {
		return err
	}
	config, err := json.Marshal(of)
	if err != nil {
		return err
	}
	key, err := ssh.MarshalPrivateKey(r.hostKey(s.ID), "")
	if err != nil {
		return err
	}
	session, err := json.Marshal(s)
	if err != nil {
		return err
	}
	err = errors.Join(
		shared.Replace(filepath.Join(r.folder(s.ID), sessionFile), session, 0o600),
		r.share(filepath.Join(inside, filepath.Base(initd.Program)), initProgram),
		r.share(filepath.Join(inside, facadeFile), facade),
		shared.Replace(filepath.Join(inside, filepath.Base(initd.ConfigPath)), config, 0o600),
		shared.Replace(filepath.Join(inside, filepath.Base(initd.HostKeyPath)), pem.EncodeToMemory(key), 0o600),
		shared.Replace(filepath.Join(inside, driverFile), nil, 0o644),
		disguise.WriteFigures(filepath.Join(inside, figuresFile), disguise.AllFigures(s, given)...),
		disguise.CopyPython(r.Base, inside, s),
		disguise.LinkProbes(r.Base, inside),
		r.hide(s, g.env),
	)
	if err == nil && g.cuda {
		err = errors.Join(
			r.share(filepath.Join(inside, cudaFacadeFile), cudaFacade),
			shared.Replace(filepath.Join(inside, cudaDriverFile), nil, 0o644),
			disguise.MakeUsage(filepath.Join(inside, usageFile), len(s.Slices())),
			disguise.MakeReport(filepath.Join(inside, reportFile), s),
		)
	}
	if err != nil {
		return err
	}
	return r.sealFiles(s.ID, g.cuda)
}

// hide writes the sensitive values of a session to files that its user alone can read, in the container and on the
// host. No other file of the folder has them.
func (r Runtime) hide(s resource.Session, granted map[string]string) error {
	dir := filepath.Join(r.inside(s.ID), privateDir)
	secrets := r.secrets(s, granted)
	if len(secrets) == 0 {
		return os.RemoveAll(dir)
	}
	files, err := environ.Private(secrets)
	if err != nil {
		return err
	}
	own := func(path string) error {
		if os.Geteuid() != 0 {
			return nil // this process is the session's user
		}
		return os.Chown(path, s.Spec.User.UID, s.Spec.User.GID)
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700), own(dir)); err != nil {
		return fmt.Errorf("making the session folder: %w", err)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(shared.Replace(path, content, 0o400), own(path)); err != nil {
			return fmt.Errorf("writing the sensitive values of the session: %w", err)
		}
	}
	return nil
}

// secrets are the sensitive values of a session. A sensitive variable to which cosplay adds is sensitive as a whole.
func (r Runtime) secrets(s resource.Session, granted map[string]string) map[string]string {
	secrets := maps.Clone(s.Secret)
	for name := range secrets {
		if value, is := granted[name]; is {
			secrets[name] = value
		}
	}
	return secrets
}

// Usage is what the programs of a session use of its GPU's memory. That of a
// session without the disguise of CUDA is fs.ErrNotExist.
func (r Runtime) Usage(session string) (disguise.Usage, error) {
	return disguise.ReadUsage(filepath.Join(r.inside(session), usageFile))
}

// Reports are what the programs of sessions did, by the index of each session whose programs report it.
func (r Runtime) Reports(sessions []string) iter.Seq2[int, resource.Report] {
	return disguise.ReadReports(r.Base, filepath.Join(insideDir, reportFile), sessions)
}

// config is the configuration of cosplay-init, without the sensitive values and the program.
func (r Runtime) config(s resource.Session, slice string, granted map[string]string) initd.Config {
	env := map[string]string{
		"HOST_USER":                  s.Spec.User.Name,
		"HOST_UID":                   strconv.Itoa(s.Spec.User.UID),
		"HOST_GID":                   strconv.Itoa(s.Spec.User.GID),
		"NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
	}
	maps.Copy(env, disguise.Environment(s, slice, true))
	maps.Copy(env, disguise.MPS(s, pipesInside))
	maps.Copy(env, granted)
	for name := range s.Secret {
		delete(env, name)
	}
	user := s.Spec.User
	return initd.Config{
		User:           initd.User{Name: user.Name, UID: uint32(user.UID), GID: uint32(user.GID), Group: user.Group, Sudo: s.Spec.Sudo},
		AuthorizedKeys: s.Spec.SSH.AuthorizedKeys,
		SSH:            initd.SSH{Enabled: s.Spec.SSH.Enabled},
		Env:            env,
		Volumes:        newVolumes(s.Spec.Volumes),
	}
}

// newVolumes are the paths in the container of the volumes that the engine may have to create.
func newVolumes(all []resource.Volume) (paths []string) {
	for _, v := range all {
		if v.Named() && !v.ReadOnly {
			paths = append(paths, v.Target)
		}
	}
	return paths
}

// hostKey is the host key of a session. It is derived, not kept: it stays the same when the container is replaced,
// and known_hosts follows from the state alone.
func (r Runtime) hostKey(session string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(r.mac("host key", r.Host, session))
}

// HostKey is the public half of a session's host key, as in authorized_keys.
func (r Runtime) HostKey(session string) string {
	public, err := ssh.NewPublicKey(r.hostKey(session).Public())
	if err != nil {
		panic(err) // an ed25519 key is one
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

// KnownHosts is the line by which an ssh client identifies a session: by the name of its container (HostKeyAlias),
// and by address and port. Its comment is a sum that only the state's key can make.
func (r Runtime) KnownHosts(session string, s resource.SSH, port int) string {
	line := hostNames(session, s, port) + " " + r.HostKey(session)
	return line + " " + r.knownSum(line) + "\n"
}

// knows reports whether a text is that line, without computing the host key, which takes a fifth of the time of
// cosplay ssh.
func (r Runtime) knows(text, session string, s resource.SSH, port int) bool {
	at := strings.LastIndexByte(text, ' ')
	return at > 0 && strings.HasPrefix(text, hostNames(session, s, port)+" ") && text[at+1:] == r.knownSum(text[:at])+"\n"
}

func hostNames(session string, s resource.SSH, port int) string {
	return fmt.Sprintf("%s,[%s]:%d", resource.BodyName(session), runtime.Reachable(s.Bind), port)
}

func (r Runtime) knownSum(line string) string {
	return hex.EncodeToString(r.mac("known host", line)[:8])
}

// KnownHostsFile is the path of the file with that line.
func (r Runtime) KnownHostsFile(session string) string {
	return filepath.Join(r.folder(session), knownHostsFile)
}

// The files that are the same for all sessions: cosplay-init, and the facades with the paths inside a container.
var (
	initProgram = sync.OnceValues(func() (*shared.File, error) {
		program, err := driver.Library(driver.Init)
		return shared.NewFile(driver.Init, program, 0o755), err
	})
	facade     = sharedFacade(driver.NVML)
	cudaFacade = sharedFacade(driver.CUDA)
)

func sharedFacade(name string) func() (*shared.File, error) {
	return sync.OnceValues(func() (*shared.File, error) {
		library, err := disguise.Facade(name, inContainer(behind(name)), inContainer(figuresFile))
		return shared.NewFile(name, library, 0o755), err
	})
}

// share puts a shared file into a session's folder.
func (r Runtime) share(path string, file func() (*shared.File, error)) error {
	f, err := file()
	if err != nil {
		return err
	}
	return f.Link(r.Base, path)
}

func present(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// makeWorkspace creates the session's workspace if it is missing. If root creates it, it belongs to the user.
func makeWorkspace(path string, user resource.User) error {
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

// clear removes a session's folder, and the shared one with the last session.
func (r Runtime) clear(session string) error {
	if err := os.RemoveAll(r.folder(session)); err != nil {
		return fmt.Errorf("removing the session folder: %w", err)
	}
	shared.Remove(r.Base)
	return nil
}
