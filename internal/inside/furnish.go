package inside

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/initd"
	"cosplay/internal/initd/environ"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/shared"
)

// Furnish writes a session's folder for a container that cosplay creates, or updates it. After a crash any file may be
// incomplete: the files are derived, and written again before every start. command is what cosplay-init runs, if it runs
// anything.
func (in Sessions) Furnish(s resource.Session, given resource.Handle, g Grant, command []string) error {
	if err := in.dress(s, given, g.CUDA); err != nil {
		return err
	}
	inside := in.Inside(s.ID)
	of := in.config(s, given.UUID, g.Env)
	of.Command = command
	config, err := json.Marshal(of)
	if err != nil {
		return err
	}
	key, err := ssh.MarshalPrivateKey(in.hostKey(s.ID), "")
	if err != nil {
		return err
	}
	if err := errors.Join(
		in.share(filepath.Join(inside, filepath.Base(initd.Program)), initProgram),
		shared.Replace(filepath.Join(inside, filepath.Base(initd.ConfigPath)), config, 0o600),
		shared.Replace(filepath.Join(inside, filepath.Base(initd.HostKeyPath)), pem.EncodeToMemory(key), 0o600),
		in.hide(s, g.Env),
	); err != nil {
		return err
	}
	return in.WriteManifest(s.ID, g.CUDA)
}

// dress writes what of a session's folder is the same in every container: the disguise and the session's record. The
// usage file belongs to the programs, and stays.
func (in Sessions) dress(s resource.Session, given resource.Handle, cuda bool) error {
	inside := in.Inside(s.ID)
	for _, dir := range []struct { // the outermost first, which is closed to other users
		path string
		mode os.FileMode
	}{
		{in.Folder(s.ID), 0o700},
		{inside, 0o755},
		{in.empty(s.ID), 0o555},
		{filepath.Dir(filepath.Join(inside, facadeFile)), 0o755},
		{filepath.Dir(filepath.Join(inside, driverFile)), 0o755},
	} {
		if err := errors.Join(os.MkdirAll(dir.path, dir.mode), os.Chmod(dir.path, dir.mode)); err != nil {
			return fmt.Errorf("making the session folder: %w", err)
		}
	}
	err := errors.Join(
		in.record(s),
		in.share(filepath.Join(inside, facadeFile), facade),
		shared.Replace(filepath.Join(inside, driverFile), nil, 0o644),
		disguise.WriteFigures(filepath.Join(inside, figuresFile), s.Target, s.Devices(given)...),
		disguise.CopyPython(in.Folders, inside, s),
		disguise.LinkProbes(in.Folders, inside),
	)
	if err != nil || !cuda {
		return err
	}
	return errors.Join(
		in.share(filepath.Join(inside, cudaFacadeFile), cudaFacade),
		shared.Replace(filepath.Join(inside, cudaDriverFile), nil, 0o644),
		disguise.MakeUsage(filepath.Join(inside, UsageFile), len(s.Slices())),
		disguise.MakeReport(filepath.Join(inside, reportFile), s),
	)
}

// hide writes the sensitive values of a session to files that its user alone can read, in the container and on the
// host. No other file of the folder has them.
func (in Sessions) hide(s resource.Session, granted map[string]string) error {
	dir := filepath.Join(in.Inside(s.ID), privateDir)
	if len(s.Secret) == 0 {
		return os.RemoveAll(dir)
	}
	secrets := maps.Clone(s.Secret)
	for name := range secrets { // one to which cosplay adds is sensitive as a whole
		if value, is := granted[name]; is {
			secrets[name] = value
		}
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

// config is the configuration of cosplay-init, without the sensitive values and the program.
func (in Sessions) config(s resource.Session, slice string, granted map[string]string) initd.Config {
	user := s.Spec.User
	return initd.Config{
		User:           initd.User{Name: user.Name, UID: uint32(user.UID), GID: uint32(user.GID), Group: user.Group, Sudo: s.Spec.Sudo},
		AuthorizedKeys: s.Spec.SSH.AuthorizedKeys,
		SSH:            initd.SSH{Enabled: s.Spec.SSH.Enabled},
		Env:            in.Environment(s, slice, granted),
		Volumes:        newVolumes(s.Spec.Volumes),
	}
}

// Environment is what every program of a session gets, without the sensitive values. slice is the UUID of its slice, and
// granted the variables of its Grant.
func (in Sessions) Environment(s resource.Session, slice string, granted map[string]string) map[string]string {
	env := map[string]string{
		"HOST_USER":                  s.Spec.User.Name,
		"HOST_UID":                   strconv.Itoa(s.Spec.User.UID),
		"HOST_GID":                   strconv.Itoa(s.Spec.User.GID),
		"NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
	}
	maps.Copy(env, disguise.Environment(s, slice, true))
	maps.Copy(env, disguise.MPS(s, pipes))
	maps.Copy(env, granted)
	for name := range s.Secret {
		delete(env, name)
	}
	return env
}

// newVolumes are the paths in the container of the volumes that an engine may have to create.
func newVolumes(all []resource.Volume) (paths []string) {
	for _, v := range all {
		if v.Named() && !v.ReadOnly {
			paths = append(paths, v.Target)
		}
	}
	return paths
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
		library, err := disguise.Facade(name, InContainer(behind(name)), InContainer(figuresFile))
		return shared.NewFile(name, library, 0o755), err
	})
}

// share puts a shared file into a session's folder.
func (in Sessions) share(path string, file func() (*shared.File, error)) error {
	f, err := file()
	if err != nil {
		return err
	}
	return f.Link(in.Folders, path)
}

// WriteManifest records what of a session's folder a check of files covers.
func (in Sessions) WriteManifest(session string, cuda bool) error {
	files := []string{facadeFile, figuresFile}
	if config := filepath.Base(initd.ConfigPath); present(filepath.Join(in.Inside(session), config)) {
		files = append(files, config)
	}
	var counted []string
	if cuda {
		files, counted = append(files, cudaFacadeFile), []string{filepath.Join(Dir, UsageFile)}
	}
	python, err := disguise.PythonPart(in.Inside(session))
	if err != nil {
		return err
	}
	files = append(files, python...)
	private, err := os.ReadDir(filepath.Join(in.Inside(session), privateDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, file := range private {
		files = append(files, filepath.Join(privateDir, file.Name()))
	}
	for i := range files {
		files[i] = filepath.Join(Dir, files[i])
	}
	return disguise.WriteManifest(in.Folder(session), in.Version, files, counted, in.libraries(cuda))
}

// libraries are the files of the driver behind the facades.
func (in Sessions) libraries(cuda bool) []string {
	nvml, err := in.library()
	if err != nil {
		return nil // it is reported where it is needed
	}
	all := []string{nvml}
	if cuda {
		all = append(all, disguise.CUDALibrary(nvml))
	}
	return slices.DeleteFunc(all, func(library string) bool { return !present(library) })
}

// Interior is what the session's programs should find.
func (in Sessions) Interior(s resource.PriorSession) (runtime.Interior, error) {
	interior, err := in.InteriorAt(initd.Dir, s.Session, present(filepath.Join(in.Inside(s.ID), cudaFacadeFile)))
	interior.OwnRoot, interior.Env = true, in.Environment(s.Session, s.SliceID(), nil)
	return interior, err
}
