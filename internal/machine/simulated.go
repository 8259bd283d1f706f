package machine

import (
	"fmt"
	"path/filepath"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// SimDir is the folder of a simulated host.
func (m *Machine) SimDir(host string) string {
	return filepath.Join(m.Dir, ScratchDir, "sim", host)
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
		return fmt.Errorf("host %s is simulated as %q, but the configuration says %q; run cosplay destroy with the old line, then remove %s, and cosplay recreates it", c.Name, shown.Simulates, c.Simulate, dir)
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
