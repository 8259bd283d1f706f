package project

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/sys/unix"

	"cosplay/internal/config"
	"cosplay/internal/hostfile"
	"cosplay/internal/machine"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// detachedFile is the configuration of a detached session. It may have secrets.
const detachedFile = "cosplay.hcl"

// detachedWords are its first lines.
const detachedWords = "# cosplay run --detach wrote this file; cosplay destroy removes it with its folder.\n\n"

// FolderOf is the folder of the detached session with a name; "" if there is none.
func FolderOf(name string) string {
	dir := filepath.Join(machine.Detached(), name)
	if info, err := os.Stat(dir); name == "" || strings.ContainsAny(name, "./") || err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// DetachedNames are the names of the user's detached sessions.
func DetachedNames() []string {
	entries, _ := os.ReadDir(machine.Detached()) // no folder has none
	return prose.Each(prose.Only(entries, fs.DirEntry.IsDir), fs.DirEntry.Name)
}

// Detached reports whether the project is that of a detached session, with its name.
func (f *Files) Detached() (name string, is bool) {
	return filepath.Base(f.Dir), filepath.Dir(f.Dir) == real(machine.Detached()) && f.Store.Path == filepath.Join(f.Dir, state.FileName)
}

// OpenDetached opens the project of a session that stays: a new folder with a configuration of this machine and the
// session alone. The caller calls Discard if the session is not created.
func OpenDetached(o Options, once Once) (p *Project, files map[string]*hcl.File, diags hcl.Diagnostics, err error) {
	named := once.Name != ""
	if !named {
		once.Name = "session"
	}
	here, err := locate(o)
	if err != nil {
		return nil, nil, nil, err
	}
	intent, diags, err := once.check(here)
	if err != nil || diags.HasErrors() {
		return nil, intent.Files, diags, err
	}
	if !named {
		once.Name = "fraction"
		if key := intent.Sessions[0].Target.Key; key != "" {
			once.Name = key
		}
	}
	if o.Dir, err = once.claim(named); err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if p == nil {
			_ = os.RemoveAll(o.Dir)
		}
	}()
	if err := once.write(o.Dir); err != nil {
		return nil, nil, nil, fmt.Errorf("writing the configuration of the session: %w", err)
	}
	return openWritten(o)
}

// openWritten opens the project that was written. Diagnostics mention no place in its file, which the user does not know.
func openWritten(o Options) (*Project, map[string]*hcl.File, hcl.Diagnostics, error) {
	p, files, err := prepare(o)
	if err != nil {
		return nil, nil, nil, err
	}
	intent, diags := config.Load(map[string][]byte{config.Unwritten: files[detachedFile]}, p.reading())
	if diags.HasErrors() {
		return nil, intent.Files, diags, nil
	}
	p.Intent, p.Clusters = intent.Apart()
	return p, intent.Files, diags, nil
}

// check reads the session as the flags describe it, and makes the paths in it absolute, since it gets another folder.
func (o *Once) check(here *Project) (*config.Intent, hcl.Diagnostics, error) {
	here.timestamp = time.Now().UTC().Format(time.RFC3339)
	intent, diags := config.Load(map[string][]byte{config.Unwritten: o.text()}, here.reading())
	if diags.HasErrors() {
		return intent, diags, nil
	}
	if err := o.settle(intent, here.checkSimulate); err != nil {
		return intent, nil, err
	}
	o.Workspace, o.Volumes = intent.Sessions[0].Workspace, intent.Sessions[0].Spec.Volumes
	if hostfile.Names(o.Simulate) && !filepath.IsAbs(o.Simulate) {
		o.Simulate = filepath.Join(here.Dir, o.Simulate)
	}
	return intent, diags, nil
}

// claim creates the folder of the session, which no other has: under a name that the user did not choose, the first with a
// number that is free.
func (o *Once) claim(named bool) (dir string, err error) {
	base := o.Name
	for number := 2; ; number++ {
		dir = filepath.Join(machine.Detached(), o.Name)
		_ = os.Remove(dir) // one that is empty: its run was killed before it wrote the configuration
		err = makeFolder(dir)
		switch {
		case !errors.Is(err, fs.ErrExist):
			return dir, err
		case named:
			return "", prose.Advice{What: fmt.Sprintf("there is a session %s already", o.Name), Fix: fmt.Sprintf("choose another --name, or remove it: cosplay destroy %s", o.Name)}
		}
		o.Name = fmt.Sprintf("%s-%d", base, number)
	}
}

// makeFolder creates a folder that only the user can read, with those above it.
func makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFolder(filepath.Dir(dir)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return err
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(giveToInvoker(f), f.Close())
}

// giveToInvoker gives a file that root has created to the user who called sudo.
func giveToInvoker(f *os.File) error {
	who, err := machine.Invoker()
	if os.Geteuid() != 0 || err != nil || who.UID == 0 {
		return err
	}
	return f.Chown(who.UID, who.GID)
}

// write writes the configuration.
func (o *Once) write(dir string) error {
	text, _, _ := config.Format(detachedFile, bytes.Join([][]byte{[]byte(detachedWords), o.host(), o.text()}, nil))
	f, err := os.OpenFile(filepath.Join(dir, detachedFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, giveToInvoker(f), f.Sync(), f.Close())
}

// host is the block of this machine, as far as flags describe it.
func (o *Once) host() []byte {
	if o.Simulate+o.Runtime+o.Compute == "" {
		return nil
	}
	file := hclwrite.NewEmptyFile()
	host := file.Body().AppendNewBlock("host", []string{config.LocalHost}).Body()
	for _, a := range []struct{ name, value string }{{"simulate", o.Simulate}, {"runtime", o.Runtime}, {"compute", o.Compute}} {
		if a.value != "" {
			host.SetAttributeValue(a.name, cty.StringVal(a.value))
		}
	}
	file.Body().AppendNewline()
	return file.Bytes()
}

// Forget removes the folder of a detached session of which nothing is left, so that its name is free. A folder with files
// of the user stays. For another project it does nothing. The caller has the lock.
func (p *Project) Forget() (kept bool, err error) {
	if _, detached := p.Detached(); !detached || p.Unfinished() {
		return false, nil
	}
	prior, _, err := p.Remembered()
	if err != nil || len(prior.Sessions)+len(prior.GPUs) > 0 {
		return false, err
	}
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if name := e.Name(); name != detachedFile && name != machine.ScratchDir && !strings.HasPrefix(name, state.FileName) {
			return true, nil
		}
	}
	return false, p.Discard(resource.Prior{})
}
