package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"cosplay/internal/durable"
	"cosplay/internal/public"
)

// projects are those of the claims on this node. Each claim is another project, which joins its GPU by the ledger of the
// host: so the clock of a neighbour never changes, and a failure concerns one claim. Only claims that share a GPU are
// sessions of one project. Their files are in one folder.
type projects struct {
	cosplay  string // path of the program
	folder   string
	simulate string // like "8 x h200"; "" for the GPUs of the machine
	sharing  string // how claims share a whole GPU, as the sharing of a session names it; "" if they cannot
}

// project is one of them. Its name, which its files have, is of a claim or of a GPU that claims share.
type project struct {
	projects
	name string
}

const (
	ofClaim = "claim-" // and its UID
	ofGPU   = "shared-"
)

const (
	hostName = "node"
	runTime  = 5 * time.Minute // of a command of cosplay
	waitTime = time.Minute     // for one that was interrupted
	saidMost = 2000            // bytes of an error that are passed on
	noteMost = 1000            // bytes of the note of an event
)

var (
	uidForm     = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	sessionForm = regexp.MustCompile(ofClaim + `([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-[0-9]`)
	gpuForm     = regexp.MustCompile(`GPU-[0-9A-Za-z-]+`)
)

// configuration is that of a project, with the names that cosplay reads.
type configuration struct {
	Host    map[string]host    `json:"host"`
	Session map[string]session `json:"session,omitempty"`
}

type host struct {
	Runtime  string   `json:"runtime"`
	Simulate string   `json:"simulate,omitempty"`
	GPUs     []string `json:"gpus,omitempty"` // UUIDs
	Manage   []string `json:"manage,omitempty"`
}

type session struct {
	Target   string `json:"target,omitempty"`
	Fraction string `json:"fraction,omitempty"`
	GPU      string `json:"gpu,omitempty"`  // UUID
	GPUs     int    `json:"gpus,omitempty"` // of its host, all of which it has
	Slice    string `json:"slice,omitempty"`
	Sharing  string `json:"sharing,omitempty"`
	Fit      *fit   `json:"fit,omitempty"`
	Strict   bool   `json:"strict,omitempty"`
}

type fit struct {
	Tolerance string `json:"tolerance,omitempty"`
	MaxError  string `json:"max_error,omitempty"`
}

// sharingOf is how claims share a GPU: while any do, as they began, also if the driver has started again with another --sharing.
func (p projects) sharingOf(gpu string) string {
	c, _ := project{p, ofGPU + gpu}.read()
	for _, s := range c.Session {
		return s.Sharing
	}
	return p.sharing
}

func (p projects) host() host { return host{Runtime: "cdi", Simulate: p.simulate} }

// file is the path of a project's file: its configuration, its state.
func (p project) file(suffix string) string { return filepath.Join(p.folder, p.name+suffix) }

// read is the configuration of a project, without sessions if it has none.
func (p project) read() (c configuration, err error) {
	text, err := os.ReadFile(p.file(".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return configuration{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return c, fmt.Errorf("reading %s: %w", p.file(".json"), err)
	}
	return c, nil
}

func (p project) write(h host, sessions map[string]session) error {
	text, err := json.MarshalIndent(configuration{map[string]host{hostName: h}, sessions}, "", "  ")
	if err != nil {
		return err
	}
	if now, err := os.ReadFile(p.file(".json")); err == nil && bytes.Equal(now, text) {
		return nil // a disk that is full keeps nothing from being read or removed
	}
	return durable.WriteFile(p.file(".json"), text, 0o600)
}

// text is what the files of a project have: what is to be, what is, and what was begun.
func (p project) text() string {
	var all []byte
	for _, suffix := range []string{".json", ".state", ".state.journal"} {
		text, _ := os.ReadFile(p.file(suffix)) // cosplay reports why it cannot be read
		all = append(all, text...)
	}
	return string(all)
}

// gpus are the UUIDs of the GPUs that a project has, will have or had when its last command was killed, each once and in order.
func (p project) gpus() []string {
	all := gpuForm.FindAllString(p.name+p.text(), -1)
	slices.Sort(all)
	return slices.Compact(all)
}

// change runs a command that changes a project, and then keeps that it has ended by itself, and in which boot.
func (p project) change(ctx context.Context, command string) error {
	_ = os.Remove(p.file(".ended"))
	_, err := p.run(ctx, command, "--auto-approve")
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) && exit.ExitCode() == 1 {
		_ = os.WriteFile(p.file(".ended"), boot(), 0o600) //nolint:forbidigo // without the whole of it, the project is applied once more
	}
	return err
}

// unfinished is whether the last change of a project was killed, or the node has booted since. The journal of cosplay does not
// say so: one that is killed after it has read the journal of another, and before it begins its own, leaves none.
func (p project) unfinished() bool {
	ended, err := os.ReadFile(p.file(".ended"))
	return err != nil || !bytes.Equal(ended, boot())
}

// boot identifies the boot of the node.
func boot() []byte {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return id
}

// destroy removes all that a project has made, and then the project.
func (p project) destroy(ctx context.Context) error {
	// What is to be removed is in the state. A configuration that cosplay has refused would keep it from reading that.
	if err := p.write(p.host(), nil); err != nil {
		return err
	}
	if err := p.change(ctx, "destroy"); err != nil {
		return err
	}
	found, err := filepath.Glob(p.file(".[^j]*"))
	for _, file := range append(found, p.file(".json")) { // the configuration last: while it exists, the project may have something
		if failed := os.Remove(file); err == nil && !errors.Is(failed, fs.ErrNotExist) {
			err = failed
		}
	}
	return err
}

// all are the projects that there are.
func (p projects) all() (all []project, err error) {
	found, err := filepath.Glob(filepath.Join(p.folder, "*-*.json"))
	for _, file := range found {
		all = append(all, project{p, strings.TrimSuffix(filepath.Base(file), ".json")})
	}
	return all, err
}

// claims are the UIDs of the claims that a project has sessions of, also if its configuration no longer has them.
func (p project) claims() (all []types.UID) {
	text := p.name + "-0 "
	if strings.HasPrefix(p.name, ofGPU) {
		text = p.text()
	}
	for _, name := range sessionForm.FindAllStringSubmatch(text, -1) {
		all = append(all, types.UID(name[1]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// gpus reads the GPUs of the node.
func (p projects) gpus(ctx context.Context) ([]public.ExportedGPU, error) {
	node := project{p, "node"}
	if err := node.write(p.host(), nil); err != nil {
		return nil, err
	}
	var host public.HostExport
	err := node.ask(ctx, &host, "host", "export", hostName)
	return host.GPUs, err
}

// remember keeps what was read of the GPUs, and adds those that claims have and that the driver no longer reports: a driver that
// starts again publishes them as lost.
func (p projects) remember(gpus []public.ExportedGPU) []public.ExportedGPU {
	file := filepath.Join(p.folder, "gpus.json")
	var before []public.ExportedGPU
	text, _ := os.ReadFile(file)
	_ = json.Unmarshal(text, &before) // without it, such a GPU is published when it is back
	all, _ := p.all()
	for _, g := range before {
		used := slices.ContainsFunc(all, func(one project) bool { return slices.Contains(one.gpus(), g.UUID) })
		if used && !slices.ContainsFunc(gpus, func(found public.ExportedGPU) bool { return found.UUID == g.UUID }) {
			gpus = append(gpus, g)
		}
	}
	if text, err := json.Marshal(gpus); err == nil {
		_ = durable.WriteFile(file, text, 0o600)
	}
	return gpus
}

// ask reads what a command of cosplay writes as JSON, also if it fails.
func (p project) ask(ctx context.Context, answer any, args ...string) error {
	out, err := p.run(ctx, append(args, "--json")...)
	if failed := json.Unmarshal(out, answer); err == nil {
		err = failed
	}
	return err
}

// lastRun is when a command of cosplay has ended, in Unix time.
var lastRun atomic.Int64

// run runs a command of cosplay in a project.
func (p project) run(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	c := exec.CommandContext(ctx, p.cosplay, append([]string{"--no-color", "--chdir", p.folder, "--file", p.file(".json"), "--state", p.file(".state")}, args...)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = waitTime
	c.Env = append(os.Environ(), "COLUMNS=1000")
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	lastRun.Store(time.Now().Unix())
	if failed := keepDaemons(); failed != nil {
		klog.FromContext(ctx).Error(failed, "The control daemons of MPS end with the driver")
	}
	if err != nil {
		return out.Bytes(), fmt.Errorf("cosplay %s: %w: %s", args[0], cmp.Or(ctx.Err(), err), reason(out.String(), said.String()))
	}
	return out.Bytes(), nil
}

// source is the piece of the configuration in an error of cosplay. Users of a cluster do not know it.
var source = regexp.MustCompile(` on \S+ line \d+, in .*?\^+`)

// neighbour is the part of an error of cosplay that names the project of another claim, and its files.
var neighbour = regexp.MustCompile(` (Your project with state .*? of its apply|A project of user \S+ has the whole of GPU \d+ \(state .*?\))\.`)

// reason is what cosplay says to the user of a claim, in one line: an error, or in the result the steps that have failed.
func reason(result, said string) string {
	if at := strings.LastIndex(said, "Error: "); at >= 0 {
		said = said[at+len("Error: "):]
	} else if _, failed, some := strings.Cut(result, "\n✗ "); some {
		said, _, _ = strings.Cut(failed, "\n\n")
	} else if _, after, some := strings.Cut(result, "\nPlan: "); some {
		said = after // what could not be restored
	}
	said = strings.Join(strings.Fields(said), " ")
	said = neighbour.ReplaceAllString(source.ReplaceAllString(said, ":"), "")
	said = sessions.ReplaceAllString(files.ReplaceAllString(said, "a file of the node"), "the session")
	return cut(strings.ReplaceAll(said, "fit.max_error", "maxError"), saidMost)
}

// The files of projects and the names of sessions in an error of cosplay: they can be of claims of others.
var (
	files    = regexp.MustCompile(`/\S*/(claim|shared)-[^\s.,)]+[^\s,)]*`)
	sessions = regexp.MustCompile(`(session\.)?claim-[0-9a-f-]{36,}`)
)

// cut is the beginning of a text.
func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }
