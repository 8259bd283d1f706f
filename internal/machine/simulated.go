package machine

import (
	"fmt"
	"path/filepath"
	"slices"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// SimDir is the folder of a simulated host.
func (m *Machine) SimDir(host string) string {
	return filepath.Join(m.Dir, ScratchDir, "sim", host)
}

// ensureSimulated creates a simulated host, or changes the present one to what the configuration describes. inUse
// reports whether the ledger has a holder of a GPU.
func ensureSimulated(dir string, c config.Host, inUse func(uuid string) bool) error {
	models, err := SimulatedModels(c.Simulate)
	if err != nil {
		return err
	}
	options := sim.Options{Seed: c.Name, Simulates: c.Simulate}
	if sim.Is(dir) {
		err = sim.Relocate(dir)
	} else {
		err = sim.Create(dir, models, options)
	}
	if err == nil {
		err = update(dir, c, models, options, inUse)
	}
	if err != nil {
		return fmt.Errorf("host %s: %w", c.Name, err)
	}
	return nil
}

func update(dir string, c config.Host, models []resource.Model, options sim.Options, inUse func(uuid string) bool) error {
	h, err := sim.Open(dir)
	if err != nil {
		return err
	}
	defer h.Close()
	shown, err := h.Show()
	if err != nil {
		return err
	}
	if shown.Simulates != c.Simulate {
		if err := h.Resize(models, options, inUse); err != nil {
			return fmt.Errorf("simulate = %q cannot become %q: %w. Fix: restore the old value and run cosplay destroy, then remove %s; cosplay creates the host again",
				shown.Simulates, c.Simulate, err, dir)
		}
	}
	return h.SetCompute(c.Compute == config.ComputeNone)
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
		models = append(models, slices.Repeat([]resource.Model{model}, part.Count)...)
	}
	return models, nil
}

// CheckSimulate says what is wrong with the text of "simulate".
func CheckSimulate(spec string) error {
	_, err := SimulatedModels(spec)
	return err
}
