package main

import (
	"bytes"
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
	"time"

	"k8s.io/apimachinery/pkg/types"

	"cosplay/internal/durable"
	"cosplay/internal/public"
)

// projects are those of the claims on this node. Each claim is another project, which joins its GPU by the ledger of the
// host: so the clock of a neighbour never changes, and a failure concerns one claim. Their files are in one folder.
type projects struct {
	cosplay  string // path of the program
	folder   string
	simulate string // like "8 x h200"; "" for the GPUs of the machine
}

// wanted is a device of a claim: a session.
type wanted struct {
	placement
	parameters
	requests []string
}

const (
	hostName = "node"
	runTime  = 5 * time.Minute // of a command of cosplay
	saidMost = 2000            // bytes of an error that are passed on
)

var uidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// file is the path of a claim's file: its configuration, its state.
func (p projects) file(uid types.UID, suffix string) string {
	return filepath.Join(p.folder, "claim-"+string(uid)+suffix)
}

// sessionName is that of a device of a claim.
func sessionName(uid types.UID, device int) string { return fmt.Sprintf("claim-%s-%d", uid, device) }

// host is the block of the node's GPUs.
func (p projects) host() map[string]any {
	host := map[string]any{"runtime": "cdi"}
	if p.simulate != "" {
		host["simulate"] = p.simulate
	}
	return map[string]any{hostName: host}
}

// configuration is that of a claim, as JSON.
func (p projects) configuration(uid types.UID, devices []wanted) ([]byte, error) {
	sessions := map[string]any{}
	for i, d := range devices {
		session := map[string]any{"target": d.Target, "gpu": d.gpu.UUID}
		if slice := d.slice(); slice != "" {
			session["slice"] = slice
		} else {
			session["sharing"] = "exclusive"
		}
		fit := map[string]any{}
		if d.Tolerance != "" {
			fit["tolerance"] = d.Tolerance
		}
		if d.MaxError != "" {
			fit["max_error"] = d.MaxError
		}
		if len(fit) > 0 {
			session["fit"] = fit
		}
		if d.Strict {
			session["strict"] = true
		}
		sessions[sessionName(uid, i)] = session
	}
	all := map[string]any{"host": p.host()}
	if len(sessions) > 0 {
		all["session"] = sessions
	}
	return json.MarshalIndent(all, "", "  ")
}

// prepare creates the devices of a claim, or finds them as they are, and returns their CDI names.
func (p projects) prepare(ctx context.Context, uid types.UID, devices []wanted) (names []string, err error) {
	if !uidForm.MatchString(string(uid)) {
		return nil, fmt.Errorf("%.40q is not the UID of a claim", uid)
	}
	configuration, err := p.configuration(uid, devices)
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(p.file(uid, ".json"), configuration, 0o600); err != nil {
		return nil, err
	}
	p.finish(ctx, gpusOf(devices), uid)
	if _, err := p.run(ctx, uid, "apply", "--auto-approve"); err != nil {
		return nil, err
	}
	out, err := p.run(ctx, uid, "devices", "--json")
	if err != nil {
		return nil, err
	}
	var listed public.Devices
	if err := json.Unmarshal(out, &listed); err != nil {
		return nil, fmt.Errorf("reading the devices of the claim: %w", err)
	}
	for i := range devices {
		address := "session." + sessionName(uid, i)
		for _, d := range listed.Devices {
			if d.Session == address {
				names = append(names, d.Device)
			}
		}
		if len(names) != i+1 {
			return nil, fmt.Errorf("%s has no device", address)
		}
	}
	return names, nil
}

// finish brings to their end the other claims on these GPUs whose last command was killed: one that has acquired a GPU and
// not set its modes yet would keep all others off it. Why it cannot, that claim's own call reports.
func (p projects) finish(ctx context.Context, gpus []string, except types.UID) {
	known, _ := p.known()
	for _, uid := range known {
		configuration, err := os.ReadFile(p.file(uid, ".json"))
		if _, none := os.Stat(p.file(uid, ".state.journal")); err != nil || none != nil || uid == except {
			continue
		}
		on := func(gpu string) bool { return bytes.Contains(configuration, []byte(gpu)) }
		if removed := !bytes.Contains(configuration, []byte(`"session"`)); removed || slices.ContainsFunc(gpus, on) {
			_, _ = p.run(ctx, uid, "apply", "--auto-approve")
		}
	}
}

// remove destroys the devices of a claim. A claim without a project is no error.
func (p projects) remove(ctx context.Context, uid types.UID) error {
	if !uidForm.MatchString(string(uid)) {
		return fmt.Errorf("%.40q is not the UID of a claim", uid)
	}
	if _, err := os.Stat(p.file(uid, ".json")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// What is to be removed is in the state. A configuration that cosplay has refused would keep it from reading that.
	bare, err := p.configuration(uid, nil)
	if err == nil {
		err = durable.WriteFile(p.file(uid, ".json"), bare, 0o600)
	}
	if err != nil {
		return err
	}
	if _, err := p.run(ctx, uid, "destroy", "--auto-approve"); err != nil {
		return err
	}
	// The configuration last: while it exists, the claim may have something.
	for _, suffix := range []string{".state", ".state.*", ".json"} {
		found, err := filepath.Glob(p.file(uid, suffix))
		if err != nil {
			return err
		}
		for _, file := range found {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// known are the claims that have a project.
func (p projects) known() (all []types.UID, err error) {
	found, err := filepath.Glob(p.file("*", ".json"))
	for _, file := range found {
		uid := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "claim-"), ".json")
		if uidForm.MatchString(uid) {
			all = append(all, types.UID(uid))
		}
	}
	return all, err
}

// gpus reads the GPUs of the node.
func (p projects) gpus(ctx context.Context) ([]public.ExportedGPU, error) {
	file := filepath.Join(p.folder, "node.json")
	configuration, err := json.MarshalIndent(map[string]any{"host": p.host()}, "", "  ")
	if err == nil {
		err = durable.WriteFile(file, configuration, 0o600)
	}
	if err != nil {
		return nil, err
	}
	out, err := p.command(ctx, "--chdir", p.folder, "--file", file, "--state", filepath.Join(p.folder, "node.state"), "host", "export", hostName)
	if err != nil {
		return nil, err
	}
	var host public.HostExport
	if err := json.Unmarshal(out, &host); err != nil {
		return nil, fmt.Errorf("reading the GPUs of the node: %w", err)
	}
	return host.GPUs, nil
}

// run runs a command of cosplay in the project of a claim.
func (p projects) run(ctx context.Context, uid types.UID, args ...string) ([]byte, error) {
	return p.command(ctx, append([]string{"--chdir", p.folder, "--file", p.file(uid, ".json"), "--state", p.file(uid, ".state")}, args...)...)
}

func (p projects) command(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	c := exec.CommandContext(ctx, p.cosplay, append([]string{"--no-color"}, args...)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = time.Minute
	c.Env = append(os.Environ(), "COLUMNS=1000")
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("cosplay %s: %w: %s", args[len(args)-2], err, reason(said.String()))
	}
	return out.Bytes(), nil
}

// source is the piece of the configuration in an error of cosplay. Users of a cluster do not know it.
var source = regexp.MustCompile(` on \S+ line \d+, in .*?\^+`)

// reason is what an error of cosplay says, in one line.
func reason(said string) string {
	if at := strings.LastIndex(said, "Error: "); at >= 0 {
		said = said[at+len("Error: "):]
	}
	said = source.ReplaceAllString(strings.Join(strings.Fields(said), " "), ":")
	return said[:min(len(said), saidMost)]
}
