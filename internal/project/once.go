package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
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
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/state"
	"cosplay/internal/terminal"
)

// Once is the session of cosplay run: for one command, or detached, and in no configuration
// of the user. Values are as users type them; cosplay chooses those that are empty.
type Once struct {
	Target    string
	Fraction  string // instead of a target
	GPUs      int    // 0 is one
	Sharing   string
	Host, GPU string
	Image     string
	Workspace string
	Volumes   []resource.Volume
	Env       map[string]string // never printed: it may contain tokens

	Alone bool // leave the configuration out: the simulated host is the only one

	// For a folder whose configuration names no host.
	Simulate string
	Runtime  string
	Compute  string // of a simulated host

	// For a session that stays: OpenDetached.
	Name    string // of a session for one command, cosplay chooses it
	Command []string
	TTL     string
}

func (f *Files) runs() string { return machine.RunsOf(f.Dir) }

// ownSims is where a run that describes a simulated host has it, as long as it runs; "" if
// the project is not a run.
func (f *Files) ownSims() string {
	if _, once := FolderOfRun(f.Store.Path); once {
		return filepath.Join(filepath.Dir(f.Store.Path), machine.SimsDir)
	}
	return ""
}

// text is its configuration.
func (o *Once) text() []byte {
	file := hclwrite.NewEmptyFile()
	session := file.Body().AppendNewBlock("session", []string{o.Name}).Body()
	for _, a := range []struct{ name, value string }{
		{"target", o.Target}, {"sharing", o.Sharing}, {"host", o.Host}, {"image", o.Image}, {"workspace", o.Workspace}, {"ttl", o.TTL},
	} {
		if a.value != "" {
			session.SetAttributeValue(a.name, cty.StringVal(a.value))
		}
	}
	if part, err := strconv.ParseFloat(o.Fraction, 64); err == nil {
		session.SetAttributeValue("fraction", cty.NumberFloatVal(part))
	} else if o.Fraction != "" {
		session.SetAttributeValue("fraction", cty.StringVal(o.Fraction))
	}
	if o.GPUs != 0 {
		session.SetAttributeValue("gpus", cty.NumberIntVal(int64(o.GPUs)))
	}
	if index, err := strconv.ParseInt(o.GPU, 10, 32); err == nil {
		session.SetAttributeValue("gpu", cty.NumberIntVal(index))
	} else if o.GPU != "" {
		session.SetAttributeValue("gpu", cty.StringVal(o.GPU))
	}
	if len(o.Command) > 0 {
		session.SetAttributeValue("command", cty.TupleVal(prose.Each(o.Command, cty.StringVal)))
	}
	var env []hclwrite.ObjectAttrTokens
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		env = append(env, hclwrite.ObjectAttrTokens{
			Name:  hclwrite.TokensForValue(cty.StringVal(name)),
			Value: hclwrite.TokensForFunctionCall("sensitive", hclwrite.TokensForValue(cty.StringVal(o.Env[name]))),
		})
	}
	if len(env) > 0 {
		session.SetAttributeRaw("env", hclwrite.TokensForObject(env))
	}
	for _, v := range o.Volumes {
		volume := session.AppendNewBlock("volume", nil).Body()
		volume.SetAttributeValue("source", cty.StringVal(v.Source))
		volume.SetAttributeValue("target", cty.StringVal(v.Target))
		volume.SetAttributeValue("read_only", cty.BoolVal(v.ReadOnly))
	}
	return file.Bytes()
}

// OpenOnce opens a separate project for one session, with the hosts and targets of the
// folder's configuration, if there is one. The project has its own folder and state.
func OpenOnce(o Options, once Once) (*Project, map[string]*hcl.File, hcl.Diagnostics, error) {
	o.HostsOnly, o.MayBeEmpty = true, true
	p, files, err := prepare(o)
	if err != nil {
		return nil, nil, nil, err
	}
	once.Name = fmt.Sprintf("run-%06x", rand.IntN(1<<24))
	if err := p.setState(filepath.Join(p.runs(), once.Name, state.FileName)); err != nil {
		return nil, nil, nil, err
	}
	p.once = true
	if once.Alone {
		clear(files)
	}
	files[config.Unwritten] = once.text()
	reading := p.reading()
	reading.OnlyUnwritten = true
	intent, diags := config.Load(files, reading)
	if diags.HasErrors() {
		return nil, intent.Files, diags, nil
	}
	intent, p.Clusters = intent.Apart()
	if len(intent.Sessions) == 0 {
		return nil, nil, nil, errors.New("cosplay run does not run in a Kubernetes cluster. Fix: run it in another folder with --simulate, or write a session block and run cosplay manifests")
	}
	if err := once.settle(intent, p.checkSimulate); err != nil {
		return nil, nil, nil, err
	}
	// Only cosplay knows the session's name, so it has no ssh. Its container does not restart after a reboot.
	spec := &intent.Sessions[0].Spec
	spec.SSH.Enabled, spec.Restart = false, "no"
	if once.Simulate != "" {
		p.Machine.Sims = p.ownSims()
	}
	p.Intent = intent
	return p, intent.Files, diags, nil
}

// settle checks the workspace. If no configuration names a host, the flags describe this
// machine.
func (o *Once) settle(intent *config.Intent, check func(spec string) error) error {
	session := &intent.Sessions[0]
	elsewhere := slices.ContainsFunc(intent.Hosts, func(h config.Host) bool { return session.MayBeOn(h.Name) && h.Connect != "" })
	if info, err := os.Stat(session.Workspace); o.Workspace != "" && !elsewhere && (err != nil || !info.IsDir()) {
		return fmt.Errorf("--workspace %s: there is no such folder. Fix: correct the path, or create the folder: mkdir -p %s", o.Workspace, terminal.ShellWords([]string{session.Workspace}))
	}
	if o.Simulate == "" && o.Runtime == "" && o.Compute == "" {
		return nil
	}
	return o.describe(&intent.Hosts[0], check)
}

// describe sets what flags say of the host.
func (o *Once) describe(host *config.Host, check func(spec string) error) error {
	if host.Ranges.Decl != (hcl.Range{}) {
		return fmt.Errorf("the configuration here describes host %q. Fix: remove --simulate, --runtime and --compute, or run cosplay in another folder", host.Name)
	}
	if names := config.Computes(); o.Compute != "" && !slices.Contains(names, o.Compute) {
		return fmt.Errorf("--compute %s: choose one of %s", o.Compute, strings.Join(names, ", "))
	}
	if o.Compute != "" && o.Simulate == "" {
		return errors.New("--compute is a setting of simulated hosts, and this machine's GPUs compute by themselves. Fix: add --simulate \"1 x h200\", or remove --compute")
	}
	host.Compute = o.Compute
	if o.Simulate != "" {
		if err := check(o.Simulate); err != nil {
			return fmt.Errorf("--simulate: %w", err)
		}
		host.Simulate = o.Simulate
	}
	if names := append(resource.RunRuntimes(), config.RuntimeAuto); o.Runtime != "" && !slices.Contains(names, o.Runtime) {
		return fmt.Errorf("--runtime %s: choose one of %s", o.Runtime, strings.Join(names, ", "))
	}
	host.Runtime = cmp.Or(o.Runtime, host.Runtime)
	return nil
}

// Discard removes the state and the folders of a run's session, after all else was
// removed. The caller has the lock.
func (p *Project) Discard(prior resource.Prior) error {
	if len(prior.Sessions)+len(prior.GPUs) > 0 || p.Unfinished() {
		again := "cosplay reset in this folder tries again, and so does the next cosplay run"
		if name, detached := p.Detached(); detached {
			again = "cosplay destroy " + name + " tries again"
		}
		return errors.New("not everything could be removed; " + again)
	}
	p.Machine.Rest() // agents write to their simulated hosts
	for _, h := range p.Machine.Hosts() {
		if h.Config.Connect != "" {
			continue // the machine over there has removed them
		}
		for _, dir := range append(h.SessionFolders(), filepath.Dir(h.Folders), filepath.Dir(filepath.Dir(h.Folders))) {
			_ = os.Remove(dir) // fails if it is not empty
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

// Killed are the names of the runs in this folder that were killed and left something.
func (f *Files) Killed() []string {
	entries, _ := os.ReadDir(f.runs())
	var all []string
	for _, e := range entries {
		if wasKilled(filepath.Join(f.runs(), e.Name(), state.FileName)) {
			all = append(all, e.Name())
		}
	}
	return all
}

// KilledRuns are the folders of the killed runs that hold a GPU, by lineage.
func (f *Files) KilledRuns(live resource.Live) map[string]string {
	folders := map[string]string{}
	for _, h := range Holders(live) {
		if dir, once := FolderOfRun(h.State); once && !Elsewhere(h) && wasKilled(h.State) {
			folders[h.Lineage] = dir
		}
	}
	return folders
}

// wasKilled reports whether a run left something, and no process has its lock.
func wasKilled(statePath string) bool {
	seen, err := durable.Inspect(state.Store{Path: statePath}.LockPath())
	return err == nil && !seen.Held && leftSomething(statePath)
}

// leftSomething reports whether a run has begun: it has a state, a journal or a simulated
// host, or its lock names it, which it does until it ends.
func leftSomething(statePath string) bool {
	store := state.Store{Path: statePath}
	_, err := os.Lstat(store.JournalPath())
	_, simErr := os.Lstat(filepath.Join(filepath.Dir(statePath), machine.SimsDir))
	seen, lockErr := durable.Inspect(store.LockPath())
	return store.Stamp() != "" || err == nil || simErr == nil || lockErr == nil && seen.By != nil
}

// FolderOfRun is the folder in which cosplay run was started; once is false if the state
// is not that of a run.
func FolderOfRun(statePath string) (dir string, once bool) {
	runs := filepath.Dir(filepath.Dir(statePath))
	dir = filepath.Dir(filepath.Dir(runs))
	return dir, runs == machine.RunsOf(dir)
}

// RemoveKilled removes what killed runs left in a folder, and returns their number.
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
	for _, p := range killed {
		if err == nil {
			p.forgetSimulated(ctx)
		}
	}
	return removed, err
}

// forgetSimulated removes the simulated host of a killed run from the project's scratch
// folder, where earlier versions of cosplay made one for all runs, unless it is in use.
func (p *Project) forgetSimulated(ctx context.Context) {
	host := p.Intent.Host(p.Unnamed)
	if host == nil || host.Simulate == "" || p.Machine.Sims != "" {
		return
	}
	pages, _, err := p.Machine.Records(*host).Ledger(ctx, "")
	if err != nil || slices.ContainsFunc(pages, func(page resource.Page) bool { return len(page.Holders) > 0 }) {
		return
	}
	dir := p.Machine.SimDir(p.Unnamed)
	_ = os.RemoveAll(dir)
	_ = os.Remove(filepath.Dir(dir)) // fails if it is not empty
	_ = os.Remove(filepath.Join(p.Dir, machine.ScratchDir))
}

// openKilled opens and locks the runs of a folder that were killed and left something.
func openKilled(ctx context.Context, o Options) ([]*Project, error) {
	here, err := locate(o)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(here.runs())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // no run, or another user's
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
		if !leftSomething(one.StatePath) { // it has just started, or was killed before it had its lock
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()).Abs() > time.Hour {
				_ = os.RemoveAll(filepath.Dir(p.Store.Path))
			}
			continue
		}
		p.once = true
		if p.Lock(ctx, "run", 0) != nil { // it still runs, or belongs to another user
			continue
		}
		if p.Store.Stamp() == "" && !p.Unfinished() { // it has ended meanwhile
			_ = p.Discard(resource.Prior{})
			_ = p.Close()
			continue
		}
		all = append(all, p)
	}
	return all, nil
}
