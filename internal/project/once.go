package project

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/machine"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// Once is a session that no configuration has, for one command, beside those of
// the project. What is said of it is as people type it; what is empty is left to
// cosplay.
type Once struct {
	Target    string
	Host, GPU string
	Image     string
	Workspace string
	Volumes   []OnceVolume
	Env       map[string]string // told to nobody: it may hold tokens

	// For a folder whose configuration names no host.
	Simulate string
	Runtime  string

	name string
}

// OnceVolume is one --volume.
type OnceVolume struct {
	Source, Target string
	ReadOnly       bool
}

// runsDir holds, in the project's scratch folder, a folder with a state for each
// such session: it is a project of its own, that knows this one's hosts.
const runsDir = "runs"

// begin gives it a name that no other has.
func (o *Once) begin() error {
	id := make([]byte, 3)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	o.name = "run-" + hex.EncodeToString(id)
	return nil
}

func (p *Project) runs() string { return filepath.Join(p.Dir, machine.ScratchDir, runsDir) }

// text is its configuration.
func (o *Once) text() []byte {
	file := hclwrite.NewEmptyFile()
	session := file.Body().AppendNewBlock("session", []string{o.name}).Body()
	for _, a := range []struct{ name, value string }{
		{"target", o.Target}, {"host", o.Host}, {"image", o.Image}, {"workspace", o.Workspace},
	} {
		if a.value != "" {
			session.SetAttributeValue(a.name, cty.StringVal(a.value))
		}
	}
	if index, err := strconv.ParseInt(o.GPU, 10, 32); err == nil {
		session.SetAttributeValue("gpu", cty.NumberIntVal(index))
	} else if o.GPU != "" {
		session.SetAttributeValue("gpu", cty.StringVal(o.GPU))
	}
	if len(o.Env) > 0 {
		var pairs []hclwrite.ObjectAttrTokens
		for _, name := range slices.Sorted(maps.Keys(o.Env)) {
			pairs = append(pairs, hclwrite.ObjectAttrTokens{
				Name:  hclwrite.TokensForValue(cty.StringVal(name)),
				Value: hclwrite.TokensForFunctionCall("sensitive", hclwrite.TokensForValue(cty.StringVal(o.Env[name]))),
			})
		}
		session.SetAttributeRaw("env", hclwrite.TokensForObject(pairs))
	}
	for _, v := range o.Volumes {
		volume := session.AppendNewBlock("volume", nil).Body()
		volume.SetAttributeValue("source", cty.StringVal(v.Source))
		volume.SetAttributeValue("target", cty.StringVal(v.Target))
		volume.SetAttributeValue("read_only", cty.BoolVal(v.ReadOnly))
	}
	return file.Bytes()
}

// OpenOnce opens a project of its own for one session, on the hosts and with the
// targets of the folder's configuration, if there is one. Its state is in a folder
// of its own.
func OpenOnce(o Options, once Once) (*Project, map[string]*hcl.File, hcl.Diagnostics, error) {
	o.HostsOnly, o.MayBeEmpty = true, true
	p, files, err := prepare(o)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := once.begin(); err != nil {
		return nil, nil, nil, err
	}
	p.setState(filepath.Join(p.runs(), once.name, state.FileName))
	p.once = true
	files[config.Unwritten] = once.text()
	reading := p.reading()
	reading.OnlyUnwritten = true
	intent, diags := config.Load(files, reading)
	if diags.HasErrors() {
		return nil, intent.Files, diags, nil
	}
	if err := once.settle(intent); err != nil {
		return nil, nil, nil, err
	}
	p.Intent = intent
	return p, intent.Files, diags, nil
}

// settle gives the session what only cosplay says of it: nobody else knows its
// name, so nobody logs in, and a container does not outlive a reboot. The machine
// that no configuration names is what the flags say.
func (o *Once) settle(intent *config.Intent) error {
	session := &intent.Sessions[0]
	session.Spec.SSH.Enabled, session.Spec.Restart = false, "no"
	if o.Simulate == "" && o.Runtime == "" {
		return nil
	}
	host := &intent.Hosts[0]
	if host.Ranges.Decl != (hcl.Range{}) {
		return fmt.Errorf("the configuration here says what host %q is like; leave --simulate and --runtime out, or run cosplay in another folder", host.Name)
	}
	if o.Simulate != "" {
		if err := machine.CheckSimulate(o.Simulate); err != nil {
			return fmt.Errorf("--simulate: %w", err)
		}
		host.Simulate = o.Simulate
	}
	switch o.Runtime {
	case "":
	default:
		if names := append(resource.RuntimeNames(""), config.RuntimeAuto); !slices.Contains(names, o.Runtime) {
			return fmt.Errorf("--runtime %s: choose one of %s", o.Runtime, strings.Join(names, ", "))
		}
		host.Runtime = o.Runtime
	}
	return nil
}

// Discard removes the state and the folders of a session that was for once, when nothing
// else is left of it. The caller has the lock.
func (p *Project) Discard(prior resource.Prior) error {
	if len(prior.Sessions)+len(prior.GPUs) > 0 || p.Unfinished() {
		return errors.New("not everything could be taken down; cosplay reset in this folder tries again, and so does the next cosplay run")
	}
	for _, h := range p.Machine.Hosts() {
		for _, dir := range append(h.SessionFolders(), filepath.Dir(h.Folders), filepath.Dir(filepath.Dir(h.Folders))) {
			_ = os.Remove(dir) // unless there is something in it
		}
	}
	if err := removeRun(filepath.Dir(p.Store.Path)); err != nil {
		return err
	}
	_ = os.Remove(p.runs())
	_ = os.Remove(filepath.Join(p.Dir, machine.ScratchDir))
	return nil
}

// removeRun removes the folder of a run. It tries again while another run, which checks
// for runs that were killed, creates its lock there.
func removeRun(dir string) (err error) {
	for range 20 {
		if err = os.RemoveAll(dir); !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return err
}

// Killed are the names of the commands for once in this folder that were killed
// and have left something.
func (p *Project) Killed() []string {
	entries, _ := os.ReadDir(p.runs())
	var all []string
	for _, e := range entries {
		if wasKilled(filepath.Join(p.runs(), e.Name(), state.FileName)) {
			all = append(all, e.Name())
		}
	}
	return all
}

// KilledRuns are the folders of those that hold a GPU, by lineage.
func (p *Project) KilledRuns(live resource.Live) map[string]string {
	folders := map[string]string{}
	for _, h := range Holders(live) {
		if dir, once := FolderOfRun(h.State); once && wasKilled(h.State) {
			folders[h.Lineage] = dir
		}
	}
	return folders
}

// wasKilled reports whether something is left of a command for once, and nobody
// is at work on it.
func wasKilled(statePath string) bool {
	store := state.Store{Path: statePath}
	_, err := os.Lstat(store.JournalPath())
	if store.Stamp() == "" && err != nil {
		return false
	}
	seen, err := durable.Inspect(store.LockPath())
	return err == nil && !seen.Held
}

// FolderOfRun is the folder in which a command for once was typed, where a state
// is one's.
func FolderOfRun(statePath string) (dir string, once bool) {
	runs := filepath.Dir(filepath.Dir(statePath))
	scratch := filepath.Dir(runs)
	return filepath.Dir(scratch), filepath.Base(runs) == runsDir && filepath.Base(scratch) == machine.ScratchDir
}

// lastBreath is how long to wait for what a process may still be doing that was
// killed: its agent ends what it has begun. For one that lives it is not waited.
func (p *Project) lastBreath() time.Duration {
	seen, err := p.LockState()
	if err == nil && seen.Held && seen.By != nil && errors.Is(syscall.Kill(seen.By.PID, 0), syscall.ESRCH) {
		return RecoveryWait
	}
	return 0
}

// RemoveKilled removes what runs in a folder have left that were killed, and returns how
// many it removed.
func RemoveKilled(ctx context.Context, o Options, a ApplyOptions) (removed int, err error) {
	killed, err := openKilled(ctx, o)
	for _, p := range killed {
		_, result, failed := p.Remove(ctx, a)
		if failed == nil {
			failed = p.Discard(result.Prior)
		}
		if failed == nil {
			removed++
		}
		_ = p.Close()
		err = errors.Join(err, failed)
	}
	return removed, err
}

// openKilled opens the runs of a folder that were killed and have left something, each
// locked.
func openKilled(ctx context.Context, o Options) ([]*Project, error) {
	here, err := locate(o)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(here.runs())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // or another's
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*Project
	for _, e := range entries {
		one := o
		one.StatePath = filepath.Join(here.runs(), e.Name(), state.FileName)
		p, _, err := OpenForRecovery(one)
		if err != nil {
			return all, err
		}
		if p.Store.Stamp() == "" && !p.Unfinished() { // it has only just begun, or not come far
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
				_ = os.RemoveAll(filepath.Dir(p.Store.Path))
			}
			continue
		}
		p.once = true
		if p.Lock(ctx, "run", p.lastBreath()) != nil { // it is alive, or nobody's of ours
			continue
		}
		if p.Store.Stamp() == "" && !p.Unfinished() { // it has come to its end just now
			_ = p.Discard(resource.Prior{})
			_ = p.Close()
			continue
		}
		all = append(all, p)
	}
	return all, nil
}
