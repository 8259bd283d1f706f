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
	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// SimsDir is the folder of simulated hosts, in a project's scratch folder or in that of a run.
const SimsDir = "sim"

// SimDir is the folder of a simulated host.
func (m *Machine) SimDir(host string) string {
	return filepath.Join(cmp.Or(m.Sims, filepath.Join(m.Dir, ScratchDir, SimsDir)), host)
}

// simulation is the simulated host of a block.
type simulation struct {
	block  config.Host
	dir    string // the project's, in which the file of an export is
	folder string // of the host
	book   ledger.Book
}

func (m *Machine) simulation(c config.Host) simulation {
	return simulation{block: c, dir: m.Dir, folder: m.SimDir(c.Name), book: ledger.Book{Dir: m.Ledger(c)}}
}

// blueprint is what a simulated host is made of.
type blueprint struct {
	text   string         // the value of simulate; of an export with the digest of the file, so that a change of the file shows
	export *resource.Host // nil for GPUs of the catalog
}

// digestMark separates the name of an exported host's file from a digest of its content.
const digestMark = "@sha256:"

func fromExport(text string) bool { return strings.Contains(text, hostfile.Ending+digestMark) }

// ensure creates the host, or changes the present one to what the block describes.
func (s simulation) ensure() error {
	if err := s.follow(); err != nil {
		return fmt.Errorf("host %s: %w", s.block.Name, err)
	}
	return nil
}

func (s simulation) follow() error {
	var (
		h        *sim.Host // nil if there is none
		now      string    // what it was made of
		computes bool
		err      error
	)
	if sim.Is(s.folder) {
		if err = sim.Relocate(s.folder); err == nil {
			h, err = sim.Open(s.folder)
		}
		if err != nil {
			return err
		}
		defer h.Close()
		if now, computes, err = h.Made(); err != nil {
			return err
		}
	}
	want := blueprint{text: now} // of a recovery, which may lack the file of the export
	if s.block.Simulate != now || !fromExport(now) {
		if want, err = s.blueprint(); err != nil {
			return err
		}
	}
	switch {
	case now == want.text:
	case h == nil:
		err = s.create(want)
	case !fromExport(now) && want.export == nil:
		err = s.resize(h, now, want)
	default:
		if err = s.unused(h); err != nil {
			return fmt.Errorf("it simulates %s and cannot become %s: %w. Fix: run cosplay reset, which removes what the project has there, or restore what simulate named before",
				now, want.text, err)
		}
		err = s.create(want)
	}
	if none := s.block.Compute == config.ComputeNone; err == nil && (none != computes || now != want.text) {
		err = s.setCompute(none)
	}
	return err
}

func (s simulation) blueprint() (b blueprint, err error) {
	spec := s.block.Simulate
	if !hostfile.Names(spec) {
		return blueprint{text: spec}, CheckSimulate(s.dir, spec)
	}
	export, digest, err := readExport(s.dir, spec)
	return blueprint{text: spec + digestMark + digest, export: &export}, err
}

// create makes a new host, and replaces one that exists.
func (s simulation) create(of blueprint) error {
	options := sim.Options{Seed: s.block.Name, Simulates: of.text}
	if of.export == nil {
		models, err := catalogModels(of.text)
		if err != nil {
			return err
		}
		return sim.Create(s.folder, models, options)
	}
	options.Seed += "\x00" + of.text // another boot than that of the host that it replaces
	if err := sim.CreateLike(s.folder, *of.export, options); err != nil {
		return err
	}
	boot, err := sim.BootID(s.folder)
	if err != nil {
		return err
	}
	for _, g := range of.export.GPUs {
		refused := slices.DeleteFunc(slices.Clone(g.Degraded), func(d resource.Degradation) bool { return !d.Set })
		if len(refused) == 0 {
			continue
		}
		if err := s.book.RecordGivenUp(g.UUID, boot, of.export.Driver, refused); err != nil {
			return err
		}
	}
	return nil
}

// resize gives a host of GPUs of the catalog more or fewer of them.
func (s simulation) resize(h *sim.Host, now string, want blueprint) error {
	models, err := catalogModels(want.text)
	if err != nil {
		return err
	}
	if err := h.Resize(models, sim.Options{Seed: s.block.Name, Simulates: want.text}, s.held); err != nil {
		return fmt.Errorf("simulate = %q cannot become %q: %w. Fix: restore the old value and run cosplay destroy, then remove %s; cosplay creates the host again",
			now, want.text, err, s.folder)
	}
	return nil
}

// setCompute opens the host again, since it may be a new one.
func (s simulation) setCompute(none bool) error {
	h, err := sim.Open(s.folder)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.SetCompute(none)
}

// unused fails if a project holds a GPU of the host.
func (s simulation) unused(h *sim.Host) error {
	shown, err := h.Show()
	if err != nil {
		return err
	}
	for _, g := range shown.GPUs {
		if s.held(g.UUID) {
			return fmt.Errorf("a project uses GPU %d", g.Index)
		}
	}
	return nil
}

// held reports whether a project holds a GPU of the host. A ledger that cannot be read may have a holder.
func (s simulation) held(uuid string) bool {
	pages, err := s.book.Read()
	return err != nil || slices.ContainsFunc(pages, func(h resource.Page) bool { return h.UUID == uuid && len(h.Holders) > 0 })
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
	return prose.Each(host.GPUs, func(g resource.GPU) resource.Model { return g.Model }), err
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
