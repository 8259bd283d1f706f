package machine

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/hostfile"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// SimsDir is the folder of simulated hosts, in a project's scratch folder or in that of a run.
const SimsDir = "sim"

// SimDir is the folder of a simulated host.
func (m *Machine) SimDir(host string) string {
	return filepath.Join(cmp.Or(m.Sims, filepath.Join(m.Dir, ScratchDir, SimsDir)), host)
}

// ensureSimulated creates a simulated host, or changes the present one to what the configuration describes.
func (m *Machine) ensureSimulated(c config.Host) error {
	dir := m.SimDir(c.Name)
	now, computes, err := made(dir)
	want := blueprint{text: now} // of a recovery, which may lack the file of the export
	if err == nil && (c.Simulate != now || !fromExport(now)) {
		want, err = m.blueprint(c.Simulate)
	}
	if err == nil {
		err = m.follow(dir, c, now, want)
	}
	if none := c.Compute == config.ComputeNone; err == nil && (none != computes || now != want.text) {
		err = setCompute(dir, none)
	}
	if err != nil {
		return fmt.Errorf("host %s: %w", c.Name, err)
	}
	return nil
}

// made is what the host in a folder was made of, "" if there is none, and its setting of compute.
func made(dir string) (simulates string, compute bool, err error) {
	if !sim.Is(dir) {
		return "", false, nil
	}
	h, err := sim.Open(dir)
	if err != nil {
		return "", false, err
	}
	defer h.Close()
	return h.Made()
}

func setCompute(dir string, none bool) error {
	h, err := sim.Open(dir)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.SetCompute(none)
}

// blueprint is what a simulated host is made of.
type blueprint struct {
	text   string         // the value of simulate; of an export with the digest of the file, so that a change of the file shows
	export *resource.Host // nil for GPUs of the catalog
}

func (m *Machine) blueprint(spec string) (b blueprint, err error) {
	if !hostfile.Names(spec) {
		return blueprint{text: spec}, CheckSimulate(m.Dir, spec)
	}
	export, digest, err := readExport(m.Dir, spec)
	return blueprint{text: spec + digestMark + digest, export: &export}, err
}

// digestMark separates the name of an exported host's file from a digest of its content.
const digestMark = "@sha256:"

func fromExport(text string) bool { return strings.Contains(text, hostfile.Ending+digestMark) }

// follow makes the host in a folder, which is made of something else or does not exist, what it has to be.
func (m *Machine) follow(dir string, c config.Host, now string, want blueprint) (err error) {
	inUse := m.inLedger(c)
	switch {
	case now == want.text:
		err = sim.Relocate(dir)
	case now == "":
		err = m.create(dir, c, want)
	case !fromExport(now) && want.export == nil:
		err = resize(dir, c.Name, now, want, inUse)
	default:
		if err = unusedBy(dir, inUse); err != nil {
			return fmt.Errorf("it simulates %s and cannot become %s: %w. Fix: run cosplay reset, which removes what the project has there, or restore what simulate named before",
				now, want.text, err)
		}
		err = m.create(dir, c, want)
	}
	return err
}

// create makes a new host, and replaces one that exists.
func (m *Machine) create(dir string, c config.Host, of blueprint) error {
	options := sim.Options{Seed: c.Name, Simulates: of.text}
	if of.export == nil {
		models, err := catalogModels(of.text)
		if err != nil {
			return err
		}
		return sim.Create(dir, models, options)
	}
	options.Seed += "\x00" + of.text // another boot than that of the host that it replaces
	if err := sim.CreateLike(dir, *of.export, options); err != nil {
		return err
	}
	boot, err := sim.BootID(dir)
	if err != nil {
		return err
	}
	book := m.Book(c)
	for _, g := range of.export.GPUs {
		refused := slices.DeleteFunc(slices.Clone(g.Degraded), func(d resource.Degradation) bool { return !d.Set })
		if len(refused) == 0 {
			continue
		}
		if err := book.RecordGivenUp(g.UUID, boot, of.export.Driver, refused); err != nil {
			return err
		}
	}
	return nil
}

// resize gives a host of GPUs of the catalog more or fewer of them.
func resize(dir, name, now string, want blueprint, inUse func(uuid string) bool) error {
	if err := sim.Relocate(dir); err != nil {
		return err
	}
	h, err := sim.Open(dir)
	if err != nil {
		return err
	}
	defer h.Close()
	models, err := catalogModels(want.text)
	if err != nil {
		return err
	}
	if err := h.Resize(models, sim.Options{Seed: name, Simulates: want.text}, inUse); err != nil {
		return fmt.Errorf("simulate = %q cannot become %q: %w. Fix: restore the old value and run cosplay destroy, then remove %s; cosplay creates the host again",
			now, want.text, err, dir)
	}
	return nil
}

// unusedBy fails if a project holds a GPU of the host in a folder.
func unusedBy(dir string, inUse func(uuid string) bool) error {
	h, err := sim.Open(dir)
	if err != nil {
		return err
	}
	defer h.Close()
	shown, err := h.Show()
	if err != nil {
		return err
	}
	for _, g := range shown.GPUs {
		if inUse(g.UUID) {
			return fmt.Errorf("a project uses GPU %d", g.Index)
		}
	}
	return nil
}

// catalogModels lists the GPUs of "1 x h200, 2 x l40s".
func catalogModels(spec string) ([]resource.Model, error) {
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
		models = append(models, slices.Repeat([]resource.Model{model}, part.Count)...)
	}
	return models, nil
}

// Simulated is a simulated host as it is first created, without a name. The path of an exported host's file is relative
// to a folder.
func Simulated(dir, spec string) (resource.Host, error) {
	if hostfile.Names(spec) {
		host, _, err := readExport(dir, spec)
		return host, err
	}
	var host resource.Host
	models, err := catalogModels(spec)
	for i, m := range models {
		host.GPUs = append(host.GPUs, Complete(resource.GPU{Index: i, UUID: fmt.Sprintf("GPU-%d", i), Model: m,
			MIGCapable: m.MIG(), PowerMW: m.PowerDefaultMW, SMClockMHz: m.ClocksMHz[0], LowClockReason: true}))
	}
	return host, err
}

// SimulatedModels lists the GPUs of a simulated host.
func SimulatedModels(dir, spec string) (models []resource.Model, err error) {
	host, err := Simulated(dir, spec)
	for _, g := range host.GPUs {
		models = append(models, g.Model)
	}
	return models, err
}

// CheckSimulate says what is wrong with the text of "simulate".
func CheckSimulate(dir, spec string) error {
	if hostfile.Names(spec) {
		_, _, err := readExport(dir, spec)
		return err
	}
	parts, err := sim.ParseSpec(spec)
	for _, part := range parts {
		if err == nil {
			err = catalog.CheckHost(part.Key)
		}
	}
	return err
}
