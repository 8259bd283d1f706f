package docker

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
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
)

// What lies in a session's folder: what the container sees under initd.Dir, and beside it the session itself, should
// the state be lost, and the line by which ssh knows it.
const (
	insideDir      = "inside"
	sessionFile    = "session.json"
	knownHostsFile = "known_hosts"
	figuresFile    = "figures"
	usageFile      = disguise.UsageFile // writable inside, unlike all else
	privateDir     = "private"          // initd.PrivateDir
	facadeFile     = "lib/" + driver.NVML
	cudaFacadeFile = "lib/" + driver.CUDA
)

// Where the facades find the host's own libraries: mounts on empty files of the folder.
var (
	driverFile     = behind(driver.NVML)
	cudaDriverFile = behind(driver.CUDA)
)

func inContainer(file string) string { return path.Join(initd.Dir, file) }

func behind(library string) string {
	return strings.TrimPrefix(cdi.Behind, initd.Dir+"/") + "/" + library
}

// sharedDir is beside the session folders; no session has a name with a dot in front.
const sharedDir = ".shared"

func (r Runtime) folder(session string) string { return filepath.Join(r.Base, session) }
func (r Runtime) inside(session string) string { return filepath.Join(r.folder(session), insideDir) }

// furnish writes a session's folder, or brings it up to date. A crash may leave
// any of it half written: it is derived, and written again before every start; but
// what programs count in is theirs, and stays. g is what comes with its slice.
func (r Runtime) furnish(s resource.Session, given resource.Handle, g grant) error {
	inside := r.inside(s.ID)
	for _, dir := range []struct { // the outermost first, which lets nobody else in
		path string
		mode os.FileMode
	}{
		{r.folder(s.ID), 0o700},
		{inside, 0o755},
		{filepath.Dir(filepath.Join(inside, facadeFile)), 0o755},
		{filepath.Dir(filepath.Join(inside, driverFile)), 0o755},
	} {
		if err := errors.Join(os.MkdirAll(dir.path, dir.mode), os.Chmod(dir.path, dir.mode)); err != nil {
			return fmt.Errorf("making the session folder: %w", err)
		}
	}
	config, err := json.Marshal(r.config(s, given.UUID, g.env))
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
		replace(filepath.Join(r.folder(s.ID), sessionFile), session, 0o600),
		r.share(filepath.Join(inside, filepath.Base(initd.Program)), initProgram),
		r.share(filepath.Join(inside, facadeFile), facade),
		replace(filepath.Join(inside, filepath.Base(initd.ConfigPath)), config, 0o600),
		replace(filepath.Join(inside, filepath.Base(initd.HostKeyPath)), pem.EncodeToMemory(key), 0o600),
		replace(filepath.Join(inside, driverFile), nil, 0o644),
		disguise.WriteFigures(filepath.Join(inside, figuresFile), disguise.FiguresOf(s, given)),
		disguise.InstallPython(inside, s),
		r.hide(s, g.env),
	)
	if err == nil && g.cuda {
		err = errors.Join(
			r.share(filepath.Join(inside, cudaFacadeFile), cudaFacade),
			replace(filepath.Join(inside, cudaDriverFile), nil, 0o644),
			disguise.MakeUsage(filepath.Join(inside, usageFile)),
		)
	}
	if err != nil {
		return err
	}
	return r.sealFiles(s.ID, g.cuda)
}

// hide writes the sensitive values of a session, which no other file of its folder
// has: for its user alone, in the container as well as here.
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
			return nil // the session's user is who runs this
		}
		return os.Chown(path, s.Spec.User.UID, s.Spec.User.GID)
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700), own(dir)); err != nil {
		return fmt.Errorf("making the session folder: %w", err)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(replace(path, content, 0o400), own(path)); err != nil {
			return fmt.Errorf("writing the sensitive values of the session: %w", err)
		}
	}
	return nil
}

// secrets are the sensitive values of a session. A variable that has one and to
// which cosplay adds is sensitive as a whole.
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

// config is what cosplay-init reads, without the sensitive values.
func (r Runtime) config(s resource.Session, slice string, granted map[string]string) initd.Config {
	env := map[string]string{
		"HOST_USER":                  s.Spec.User.Name,
		"HOST_UID":                   strconv.Itoa(s.Spec.User.UID),
		"HOST_GID":                   strconv.Itoa(s.Spec.User.GID),
		"NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
	}
	maps.Copy(env, disguise.Environment(s, slice))
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
		Command:        s.Command,
	}
}

// hostKey is the session's own. It is derived, not kept: so it stays the same
// when the container is replaced, and known_hosts follows from the state alone.
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

// KnownHosts is the line by which an ssh client knows a session, by the name of
// its container (HostKeyAlias) as well as by address and port.
func (r Runtime) KnownHosts(session string, s resource.SSH, port int) string {
	return fmt.Sprintf("%s,[%s]:%d %s\n", Name(session), runtime.Reachable(s.Bind), port, r.HostKey(session))
}

// KnownHostsFile is where that line lies.
func (r Runtime) KnownHostsFile(session string) string {
	return filepath.Join(r.folder(session), knownHostsFile)
}

// shared is a file that all sessions have alike, named by its content.
type shared struct {
	name  string
	write func(path string) error
}

// What all sessions have alike: cosplay-init, and the facades for the paths inside of a container.
var (
	initProgram = sharedFile(driver.Init, func() ([]byte, error) { return driver.Library(driver.Init) })
	facade      = sharedFacade(driver.NVML)
	cudaFacade  = sharedFacade(driver.CUDA)
)

func sharedFacade(name string) func() (shared, error) {
	return sharedFile(name, func() ([]byte, error) {
		return disguise.Facade(name, inContainer(behind(name)), inContainer(figuresFile))
	})
}

// sharedFile is not synced to disk, which would take longer than to start a container; so what is there is compared
// before this process first uses it, and whenever it has another time.
func sharedFile(name string, build func() ([]byte, error)) func() (shared, error) {
	return sync.OnceValues(func() (shared, error) {
		content, err := build()
		if err != nil {
			return shared{}, err
		}
		var known sync.Map // when the files were last changed, by path
		return shared{name + "-" + hash(content), func(path string) error {
			if time, ok := known.Load(path); ok && time == changed(path) {
				return nil
			}
			err := replace(path, content, 0o755)
			known.Store(path, changed(path))
			return err
		}}, nil
	})
}

// changed is when a file was last changed, in ns; 0 where there is none.
func changed(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

func present(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func hash(parts ...[]byte) string {
	sum := sha256.Sum256(bytes.Join(parts, []byte{0}))
	return hex.EncodeToString(sum[:8])
}

// sharing keeps sessions that are prepared at once from each writing the large files.
var sharing sync.Mutex

// share puts a shared file into a session's folder by a hard link, or as a copy where the file system has no links.
func (r Runtime) share(path string, file func() (shared, error)) error {
	f, err := file()
	if err != nil {
		return err
	}
	source := filepath.Join(r.Base, sharedDir, f.name)
	sharing.Lock()
	defer sharing.Unlock()
	for range 3 { // the end of another last session may take the shared folder away in between
		if err = os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			break
		}
		if err = f.write(source); err == nil {
			err = link(source, path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		err = f.write(path)
	}
	if err != nil {
		return fmt.Errorf("writing the session folder: %w", err)
	}
	return nil
}

// link makes path another name of source, in one step. Two names of one file are
// left alone: renaming one to the other would do nothing and leave both.
func link(source, path string) error {
	from, err := os.Stat(source)
	if err != nil {
		return err
	}
	if to, err := os.Stat(path); err == nil && os.SameFile(from, to) {
		return nil
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(source, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// replace writes a file in one step, unless it is there already. It is not synced to disk.
func replace(path string, content []byte, mode os.FileMode) error {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm() == mode && info.Size() == int64(len(content)) {
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
			return nil
		}
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(content)
	err = errors.Join(err, fresh.Chmod(mode), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		_ = os.Remove(fresh.Name())
	}
	return err
}

// makeWorkspace makes the folder of the session's work where it is missing. Made by root, it is the user's.
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

// clear removes a session's folder, and the shared one with the last of them.
func (r Runtime) clear(session string) error {
	if err := os.RemoveAll(r.folder(session)); err != nil {
		return fmt.Errorf("removing the session folder: %w", err)
	}
	if entries, err := os.ReadDir(r.Base); err == nil && len(entries) == 1 && entries[0].Name() == sharedDir {
		_ = os.RemoveAll(filepath.Join(r.Base, sharedDir)) // whoever needs it makes it anew
	}
	_ = os.Remove(r.Base) // the last one out; it stays while others are in it
	return nil
}
