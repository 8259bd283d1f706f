package disguise

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/renameio/v2"

	"cosplay/internal/shared"
)

// tree is a folder that many sessions have. It is once in the shared folder, with a manifest, and sessions have
// a symbolic link to it.
type tree struct {
	name  string
	files map[string]*shared.File
	links map[string]string // symbolic links in it: the path that each leads to

	writing sync.Mutex
	listed  map[string]bool // by folder
}

// RealDir is the name of the folder with links to the driver's libraries, where no program searches.
const RealDir = "real"

// isTree reports whether a listed file of a session's folder is a link to a tree.
func isTree(file string) bool { return file == PythonDir || file == RealDir }

var (
	trees     = map[string]*tree{}
	treesLock sync.Mutex
)

// oneTree returns the tree that was made from the same things before, or makes it.
func oneTree(kind, of string, build func() (map[string]string, error)) (*tree, error) {
	treesLock.Lock()
	defer treesLock.Unlock()
	if known := trees[kind+of]; known != nil {
		return known, nil
	}
	files, err := build()
	if err != nil {
		return nil, err
	}
	t := &tree{files: map[string]*shared.File{}, links: map[string]string{}, listed: map[string]bool{}}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		if kind == RealDir {
			t.links[name] = content
		} else {
			t.files[name] = shared.NewFile(filepath.Base(name), []byte(content), 0o644)
			content = t.files[name].Name // which has its digest
		}
		fmt.Fprintf(&all, "%q %q\n", name, content)
	}
	t.name = kind + "-" + shared.Digest([]byte(all.String()))
	trees[kind+of] = t
	return t, nil
}

// link makes a path in a session's folder a link to the tree. base is the folder of the session folders.
func (t *tree) link(base, path string) error {
	to := filepath.Join("..", shared.Dir, t.name)
	for range 3 { // the end of another session may remove the shared folder in between
		err := t.write(filepath.Join(base, shared.Dir, t.name))
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() { // of an earlier cosplay
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return shared.Lead(base, path, to)
}

// write writes the files that are not there, and the manifest.
func (t *tree) write(folder string) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	_, err := os.Lstat(filepath.Join(folder, manifestFile))
	wrote := err != nil || !t.listed[folder]
	for name, file := range t.files {
		path := filepath.Join(folder, name)
		fresh, err := file.Write(path)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
				fresh, err = file.Write(path)
			}
		}
		if err != nil {
			return err
		}
		wrote = wrote || fresh
	}
	for name, to := range t.links {
		fresh, err := lead(filepath.Join(folder, name), to)
		if err != nil {
			return err
		}
		wrote = wrote || fresh
	}
	if !wrote {
		return nil
	}
	names := slices.Sorted(maps.Keys(t.files))
	err = WriteManifest(folder, "", slices.AppendSeq(names, maps.Keys(t.links)), nil, nil)
	t.listed[folder] = err == nil
	return err
}

// lead makes a path a symbolic link, unless it is that, and reports whether it was not.
func lead(path, to string) (fresh bool, err error) {
	if now, err := os.Readlink(path); err == nil && now == to {
		return false, nil
	}
	return true, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), renameio.Symlink(to, path))
}
