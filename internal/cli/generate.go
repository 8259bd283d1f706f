package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/recovery"
	"cosplay/internal/resource"
)

// generateFlag is that of commands which can write the blocks of what they found.
func generateFlag(f *pflag.FlagSet, name *string, what string) {
	f.StringVar(name, "generate", "", "write "+what+" into this new `FILE` of the project, as cosplay fmt formats it")
}

// newFile checks the name of a file to generate, and returns its path.
func (inv *invocation) newFile(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	_, err := os.Lstat(path)
	switch {
	case inv.file != "":
		return "", errors.New("--generate writes a file for a project that reads all files of its folder; leave out --file")
	case name != filepath.Base(name) || !strings.HasSuffix(name, ".hcl") || strings.HasPrefix(name, "."):
		return "", fmt.Errorf("--generate %s: it is the name of a file in the project's folder that ends in .hcl, like worker.hcl", name)
	case err == nil:
		return "", fmt.Errorf("--generate %s: the file exists, and cosplay changes no configuration. Fix: choose another name", name)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	return path, nil
}

// generated is a file that is written once the user has agreed.
type generated struct {
	path string // "" for none
	text []byte
	env  bool // it has values of environment variables, which may be secrets
}

// write writes the file, unless one has appeared meanwhile. Only its owner may read values of environment variables.
func (g generated) write() error {
	if g.path == "" {
		return nil
	}
	mode := os.FileMode(0o644)
	if g.env {
		mode = 0o600
	}
	file, err := os.OpenFile(g.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("writing the generated file: %w", err)
	}
	_, err = file.Write(g.text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", g.path, err), os.Remove(g.path))
	}
	return nil
}

// remove removes the file after a failure, so that the same command can be run again.
func (g generated) remove() error {
	if g.path == "" {
		return nil
	}
	return os.Remove(g.path)
}

// announce says that the file was written.
func (inv *invocation) announce(g generated) {
	if g.path != "" && !inv.json {
		fmt.Fprintf(inv.Out, "Wrote %s.\n", filepath.Base(g.path))
		inv.warnOfEnv(g)
	}
}

// warnOfEnv says that a generated file has values which may be secrets.
func (inv *invocation) warnOfEnv(g generated) {
	if g.env {
		fmt.Fprintf(inv.Out, "%s has the values of environment variables in clear text, so its mode is 0600. Check them before you commit it.\n", filepath.Base(g.path))
	}
}

// blockFor generates the block of the session that an import is for, and opens the project with it.
func (inv *invocation) blockFor(draft func(*opened) (config.Draft, error), name string) (*opened, generated, error) {
	var g generated
	p, err := inv.open(project.Options{MayBeEmpty: true})
	if err != nil {
		return nil, g, err
	}
	if g.path, err = inv.newFile(p.Dir, name); err != nil {
		return nil, g, err
	}
	d, err := draft(p)
	if err != nil {
		return nil, g, err
	}
	text := config.Generated{Comments: d.Notes, Dir: p.Dir, Hosts: len(p.Intent.Hosts)}
	d.Notes = nil
	text.Drafts = []config.Draft{d}
	g.env = text.HasEnv()
	if g.text, err = config.Generate(name, text); err != nil {
		return nil, g, err
	}
	p, err = inv.open(project.Options{Unwritten: map[string][]byte{name: g.text}})
	return p, g, err
}

// blocksOf generates the blocks of the sessions of a rebuilt state that the configuration lacks.
func (inv *invocation) blocksOf(p *opened, r *recovery.Rebuilt, name string) (g generated, err error) {
	if g.path, err = inv.newFile(p.Dir, name); err != nil {
		return g, err
	}
	text := config.Generated{Dir: p.Dir, Hosts: len(p.Intent.Hosts), Comments: []string{"Sessions of the state that was rebuilt, and that the configuration lacked."}}
	known := p.Addresses()
	for _, s := range r.Prior.Sessions {
		switch {
		case slices.ContainsFunc(known, func(a resource.Address) bool { return a.Name == s.Address.Name }):
		case s.Target.Key == "" && s.Request.Fraction == 0:
			text.Left = append(text.Left, fmt.Sprintf("%s: what is left of it does not say what it was created from.", s.Address))
		default:
			d := config.Draft{Session: s.Session}
			for secret := range s.Sealed {
				d.Notes = append(d.Notes, fmt.Sprintf("env.%s is sensitive, and no state has its value: add it, or the next apply changes the session.", secret))
			}
			slices.Sort(d.Notes)
			text.Drafts = append(text.Drafts, d)
		}
	}
	if len(text.Drafts)+len(text.Left) == 0 {
		return generated{}, errors.New("--generate: the configuration has every session that was found. Fix: leave out --generate")
	}
	g.env = text.HasEnv()
	g.text, err = config.Generate(name, text)
	return g, err
}
