package project

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/agent"
	"cosplay/internal/config"
	"cosplay/internal/resource"
	"cosplay/internal/runtime/process"
	"cosplay/internal/sim"
	"cosplay/internal/state"
)

// ScratchDir is the project's own folder for what can be made anew: simulated
// hosts and session folders.
const ScratchDir = ".cosplay"

// StdinName is what a configuration from standard input is called in messages.
const StdinName = "<stdin>"

// notYetRunnable refuses a runtime that is not there, and warns of what has no
// effect in the one that is.
func notYetRunnable(intent *config.Intent) hcl.Diagnostics {
	var diags hcl.Diagnostics
	auto := map[string]bool{}
	for _, h := range intent.Hosts {
		auto[h.Name] = h.Runtime == config.RuntimeAuto
		if h.Runtime == config.RuntimeDocker {
			at := h.Ranges.At("runtime")
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError,
				Summary:  "sessions in Docker are not yet part of cosplay",
				Detail:   "A later version will have them. Until then: runtime = \"process\", or leave it out.",
				Subject:  &at,
			})
		}
	}
	told := map[hcl.Range]bool{}
	for _, s := range intent.Sessions {
		if !auto[s.Host] {
			continue
		}
		for _, d := range s.WithoutContainer() {
			if !told[*d.Subject] { // once a block, not once an instance
				told[*d.Subject] = true
				diags = append(diags, d)
			}
		}
	}
	return diags
}

// host is an open host.
type host struct {
	agent       *agent.Client
	runtime     process.Runtime
	runtimeName string
}

// open connects to a host; its agent starts with the first question. A
// simulated host is made when it is first needed.
func (p *Project) open(c config.Host) (*host, error) {
	if h, ok := p.hosts[c.Name]; ok {
		return h, nil
	}
	library := c.NVML
	if c.Simulate != "" {
		dir := p.SimDir(c.Name)
		if err := ensureSimulated(dir, c); err != nil {
			return nil, err
		}
		library = sim.LibraryPath(dir)
	}
	options := agent.Options{Library: library}
	if p.lock != nil {
		options.Hold = p.lock.File()
	}
	h := &host{
		agent:       agent.New(options),
		runtime:     process.Runtime{Base: filepath.Join(p.Dir, ScratchDir, "sessions", p.stateName(), c.Name), Library: library},
		runtimeName: process.Name,
	}
	p.hosts[c.Name] = h
	return h, nil
}

// Runtime gives the runtime of a host, for commands that go into a session.
func (p *Project) Runtime(name string) (process.Runtime, error) {
	for _, c := range p.Intent.Hosts {
		if c.Name == name {
			h, err := p.open(c)
			if err != nil {
				return process.Runtime{}, err
			}
			return h.runtime, nil
		}
	}
	return process.Runtime{}, fmt.Errorf("the configuration has no host %q; put its block back", name)
}

// stateName tells the session folders of one state in a folder from another's.
func (p *Project) stateName() string {
	if p.Store.Path == filepath.Join(p.Dir, state.FileName) {
		return "default"
	}
	sum := sha256.Sum256([]byte(p.Store.Path))
	return hex.EncodeToString(sum[:6])
}

// SimDir is the folder of a simulated host.
func (p *Project) SimDir(host string) string {
	return filepath.Join(p.Dir, ScratchDir, "sim", host)
}

// ensureSimulated makes a simulated host, or makes sure that the one that is
// there is the one that the file describes.
func ensureSimulated(dir string, c config.Host) error {
	if sim.Is(dir) {
		if err := sameSimulation(dir, c); err != nil {
			return err
		}
		return sim.Relocate(dir)
	}
	models, err := SimulatedModels(c.Simulate)
	if err != nil {
		return err
	}
	if err := sim.Create(dir, models, sim.Options{Seed: c.Name, Simulates: c.Simulate}); err != nil {
		return fmt.Errorf("host %s: %w", c.Name, err)
	}
	return nil
}

func sameSimulation(dir string, c config.Host) error {
	h, err := sim.Open(dir)
	if err != nil {
		return fmt.Errorf("host %s: %w", c.Name, err)
	}
	defer h.Close()
	shown, err := h.Show()
	if err != nil {
		return fmt.Errorf("host %s: %w", c.Name, err)
	}
	if shown.Simulates != c.Simulate {
		return fmt.Errorf("host %s is simulated as %q, but the configuration says %q; run cosplay destroy with the old line, then remove %s and it is made anew", c.Name, shown.Simulates, c.Simulate, dir)
	}
	return nil
}

// SimulatedModels lists the GPUs of a simulated host: "1 x h200, 2 x l40s".
func SimulatedModels(spec string) ([]resource.Model, error) {
	parts, err := sim.ParseSpec(spec)
	if err != nil {
		return nil, err
	}
	var models []resource.Model
	for _, part := range parts {
		model, err := catalog.HostModel(part.Key)
		if err != nil {
			return nil, err
		}
		for range part.Count {
			models = append(models, model)
		}
	}
	return models, nil
}

// CheckSimulate says what is wrong with the text of "simulate".
func CheckSimulate(spec string) error {
	_, err := SimulatedModels(spec)
	return err
}

// readFiles reads what the configuration is made of.
func readFiles(dir, file string, mayBeEmpty bool) (map[string][]byte, error) {
	switch file {
	case "":
		files, err := config.ReadFiles(os.DirFS(dir))
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		if len(files) == 0 && !mayBeEmpty {
			return nil, fmt.Errorf("there is no *.hcl file in %s; cosplay init writes one", dir)
		}
		return files, nil
	case "-":
		data, err := io.ReadAll(os.Stdin)
		return map[string][]byte{StdinName: data}, err
	}
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, file)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", path)
	}
	return map[string][]byte{file: data}, err
}
