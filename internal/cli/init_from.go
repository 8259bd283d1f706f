package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/gpucosplay"
	"cosplay/internal/machine"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/recovery"
	"cosplay/internal/resource"
	"cosplay/internal/runtime/docker"
	"cosplay/internal/terminal"
)

// fromFlag is the flag of init with the state of gpu-cosplay. Without a path it stands for the one in the user's home.
const fromFlag, inHome = "from-gpu-cosplay", "~/" + gpucosplay.Folder + "/" + gpucosplay.File

// takeover is what init writes from the sessions of gpu-cosplay.
type takeover struct {
	path     string // of their state
	sessions []gpucosplay.Session
	host     config.Host
	drafts   []config.Draft
	left     []string // why some cannot be taken over
}

// initFrom writes a configuration that imports the sessions of gpu-cosplay.
func (inv *invocation) initFrom(ctx context.Context, path, simulate string) error {
	if err := emptyFolder(); err != nil {
		return err
	}
	if simulate != "" {
		if _, err := machine.SimulatedModels("", simulate); err != nil {
			return err
		}
	}
	if rest, home := strings.CutPrefix(path, "~/"); home {
		path = filepath.Join(machine.HomeDir(), rest)
	}
	t := takeover{path: path, host: config.Host{Name: config.LocalHost, Simulate: simulate, Runtime: docker.Driver.Name}}
	if simulate != "" {
		t.host.Name = "lab"
	}
	var err error
	if t.sessions, err = readGPUCosplay(path); err != nil {
		return err
	}
	done := inv.slow("Reading the sessions of gpu-cosplay")
	file := generated{path: starterFile}
	file.text, err = inv.takenOver(ctx, &t)
	done()
	if err != nil {
		return err
	}
	file.env = config.Generated{Drafts: t.drafts}.HasEnv()
	if err := file.write(); err != nil {
		return err
	}
	fmt.Fprintf(inv.Out, "Wrote %s: %s of gpu-cosplay, with an import block for each.\n", starterFile, prose.Count(len(t.drafts), "session"))
	inv.warnOfEnv(file)
	for _, why := range t.left {
		fmt.Fprintf(inv.Out, "Left out: %s\n", prose.Stop(terminal.Safe(why)))
	}
	fmt.Fprintf(inv.Out, "gpu-cosplay must not change the GPU any more. Before the apply: mv %s %s\n", terminal.ShellWord(path), terminal.ShellWord(path+".imported"))
	fmt.Fprintln(inv.Out, "Next: cosplay plan")
	return nil
}

func readGPUCosplay(path string) ([]gpucosplay.Session, error) {
	data, _, err := durable.ReadOwned(path, gpucosplay.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no state of gpu-cosplay at %s. Fix: name it, as --%s=PATH", path, fromFlag)
	}
	var all []gpucosplay.Session
	if err == nil {
		all, err = gpucosplay.Parse(data)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the state of gpu-cosplay %s cannot be read, and nothing was written: %w", path, err)
	case len(all) == 0:
		return nil, fmt.Errorf("the state of gpu-cosplay %s has no session, so there is nothing to take over. Fix: cosplay init, which writes a file to start with", path)
	}
	return all, nil
}

// takenOver is the text of the configuration, once each import in it was tried.
func (inv *invocation) takenOver(ctx context.Context, t *takeover) ([]byte, error) {
	p, err := inv.openGenerated(t.text)
	if err != nil {
		return nil, err
	}
	before := gpucosplay.Baselines(t.sessions)
	for _, s := range t.sessions {
		there, notes, err := recovery.Describe(ctx, p.Project, t.host.Name, s.ContainerID)
		if err != nil {
			return nil, fmt.Errorf("nothing was written: %w", err)
		}
		d, err := draftOf(s, there)
		if err == nil && slices.ContainsFunc(t.drafts, func(o config.Draft) bool { return o.Session.Address == d.Session.Address }) {
			err = fmt.Errorf("another session has the name %s as well", d.Session.Address.Name)
		}
		if err != nil {
			t.leave(s.Name, err)
			continue
		}
		d.Notes = append(d.Notes, notes...)
		d.Baseline = before[s.GPU]
		t.drafts = append(t.drafts, d)
	}
	if p, err = inv.openGenerated(t.text); err != nil {
		return nil, err
	}
	failed, err := recovery.TryImports(ctx, p.Project)
	if err != nil {
		return nil, fmt.Errorf("nothing was written: %w", err)
	}
	t.drafts = slices.DeleteFunc(t.drafts, func(d config.Draft) bool {
		why := failed[d.Session.Address]
		if why != nil {
			t.leave(d.Import, why)
		}
		return why != nil
	})
	if len(t.drafts) == 0 {
		return nil, fmt.Errorf("no session of gpu-cosplay can be taken over, and nothing was written:\n  %s", strings.Join(t.left, "\n  "))
	}
	return t.text(p.Dir)
}

// leave leaves a session out. The advice of an import is about its block, which is not written.
func (t *takeover) leave(name string, why error) {
	t.left = append(t.left, fmt.Sprintf("%s: %s", name, strings.Join(strings.Fields(prose.AdviceOf(why).What), " ")))
}

// text is the configuration so far.
func (t *takeover) text(dir string) ([]byte, error) {
	slices.SortFunc(t.drafts, func(a, b config.Draft) int { return a.Session.Address.Compare(b.Session.Address) })
	g := config.Generated{Dir: dir, Hosts: 1, Host: &t.host, Drafts: t.drafts, Comments: []string{
		"Sessions of gpu-cosplay, from " + t.path + ".",
		"  cosplay plan      shows what is imported    cosplay apply     imports it: the containers stay as they are",
		"  cosplay destroy   removes it, and restores the GPU as gpu-cosplay found it",
		"After the apply, remove the import blocks: they have no effect any more, and after a destroy the plan cannot find their objects.",
	}}
	for _, why := range t.left {
		g.Left = append(g.Left, "Not taken over: "+why)
	}
	return config.Generate(starterFile, g)
}

// openGenerated opens the project of a folder as if it had the file that cosplay generates.
func (inv *invocation) openGenerated(text func(dir string) ([]byte, error)) (*opened, error) {
	dir, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	content, err := text(dir)
	if err != nil {
		return nil, err
	}
	return inv.open(project.Options{Unwritten: map[string][]byte{starterFile: content}})
}

// draftOf is the block of a session of gpu-cosplay, whose container was described; nil if it does not exist.
func draftOf(s gpucosplay.Session, there *resource.Session) (d config.Draft, err error) {
	target, err := catalog.Target(s.Card)
	switch {
	case err != nil:
		return d, fmt.Errorf("it presents %s, which the catalog lacks", s.Card)
	case there == nil:
		return d, errors.New("its container does not exist any more")
	}
	key := gpucosplay.Adapt(there)
	there.Address, there.Target = resource.One(labelOf(s.Name)), target
	if there.Workspace == "" {
		there.Workspace = s.Workspace
	}
	if s.Profile == "" {
		there.Request.Sharing = resource.SharingExclusive
	}
	d = config.Draft{Session: *there, Import: there.Spec.Name}
	if key != "" {
		d.Keys = []string{key}
	}
	place := fmt.Sprintf("GPU %d", s.GPU)
	if s.Profile != "" {
		place = fmt.Sprintf("slice %s of %s", s.Profile, place)
	}
	d.Notes = []string{fmt.Sprintf("%s on %s, with gpu-cosplay's disguise. cosplay's own: cosplay apply --replace %s", target.ShortName(), place, there.Address.Short())}
	if s.SSHPort != 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("Until then, log in as before: ssh -p %d localhost", s.SSHPort))
	}
	return d.WithoutSecrets(), nil
}

// labelOf is the name of a session of gpu-cosplay as that of a block.
func labelOf(name string) string {
	label := strings.ReplaceAll(resource.SafeName(name), ".", "-")
	if label[0] >= '0' && label[0] <= '9' || label[0] == '-' {
		label = "session-" + label
	}
	return label
}
