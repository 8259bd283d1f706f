// Package gpucosplay reads the state of gpu-cosplay, an earlier tool, for users who come from it. Its state is input from
// outside: each value is checked. Pure.
package gpucosplay

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"cosplay/internal/pattern"
	"cosplay/internal/resource"
)

// Folder is that of its files in the home of a user, and File its state there.
const (
	Folder = ".cache/gpu-cosplay"
	File   = "state.json"
)

// Bounds of a state. A host has few GPUs, each with few sessions.
const (
	MaxBytes    = 1 << 20
	maxSessions = 256
	maxText     = 4096 // bytes
)

// Session is a session as gpu-cosplay records it.
type Session struct {
	Name        string
	Card        string // its key of the catalog: "rtx_2060"
	ContainerID string
	Container   string // name
	GPU         int    // index
	Profile     string // "1g.18gb"; "" is the whole GPU
	SliceUUID   string
	SSHPort     int // 0 without sshd
	Image       string
	Workspace   string
	ClockMHz    int // of its lock; 0 without one

	before resource.Settings // of the GPU, as far as this session knows them
}

// record is a session as JSON has it. Fields that a later version of gpu-cosplay adds are ignored.
type record struct {
	Name        string   `json:"name"`
	Card        string   `json:"card_key"`
	ContainerID string   `json:"container_id"`
	Container   string   `json:"container_name"`
	GPU         *int     `json:"gpu_index"`
	Profile     *string  `json:"mig_profile_name"`
	SliceUUID   *string  `json:"mig_uuid"`
	ClockMHz    *int     `json:"clock_mhz"`
	PowerW      *int     `json:"power_limit_w"`
	SSHPort     int      `json:"ssh_port"`
	VRAMGB      *float64 `json:"vram_cap_gb"`
	Workspace   string   `json:"workspace_mount"`
	Image       string   `json:"image"`

	OriginalPowerW      *int  `json:"original_power_limit_w"`
	OriginalMIG         bool  `json:"original_mig_enabled"`
	OriginalPersistence *bool `json:"original_persistence_mode"`
}

var (
	containerForm = pattern.Of(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$`)
	idForm        = pattern.Of(`^[0-9a-f]{64}$`)
	cardForm      = pattern.Of(`^[a-z0-9_]{1,64}$`)
	profileForm   = pattern.Of(`^[0-9a-z.+_]{1,64}$`)
	uuidForm      = pattern.Of(`^MIG-[0-9A-Za-z/-]{1,120}$`)
)

// Parse reads a state, by name. The error names every value that is wrong.
func Parse(data []byte) ([]Session, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("it exceeds %d KiB, the limit for such a state", MaxBytes>>10)
	}
	var records map[string]json.RawMessage
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	if err := json.Unmarshal(data, &records); err != nil {
		return nil, fmt.Errorf("it is not the JSON that gpu-cosplay writes: %w", err)
	}
	if len(records) > maxSessions {
		return nil, fmt.Errorf("it has %d sessions, and cosplay reads %d at most", len(records), maxSessions)
	}
	var (
		all    []Session
		faults []error
	)
	for _, name := range slices.Sorted(maps.Keys(records)) {
		s, err := session(name, records[name])
		if err != nil {
			faults = append(faults, fmt.Errorf("session %.200q: %w", name, err))
			continue
		}
		all = append(all, s)
	}
	return all, errors.Join(faults...)
}

func session(name string, data json.RawMessage) (Session, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return Session{}, err
	}
	if err := r.check(name); err != nil {
		return Session{}, err
	}
	s := Session{Name: r.Name, Card: r.Card, ContainerID: r.ContainerID, Container: r.Container, GPU: *r.GPU, Profile: value(r.Profile),
		SliceUUID: value(r.SliceUUID), SSHPort: r.SSHPort, Image: r.Image, Workspace: r.Workspace, ClockMHz: value(r.ClockMHz)}
	if s.Profile != "" { // on a whole GPU it did not set MIG mode, whatever it recorded
		s.before = s.before.With(resource.MIGMode, resource.Bit(r.OriginalMIG))
	}
	if r.OriginalPersistence != nil {
		s.before = s.before.With(resource.PersistenceMode, resource.Bit(*r.OriginalPersistence))
	}
	if r.PowerW != nil && r.OriginalPowerW != nil {
		s.before = s.before.With(resource.PowerLimit, *r.OriginalPowerW*1000)
	}
	return s, nil
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// check refuses what gpu-cosplay does not write.
func (r record) check(name string) error {
	var faults []error
	wrong := func(is bool, field string, value any, form string) {
		if is {
			faults = append(faults, fmt.Errorf("%s is %.200q, and not %s", field, fmt.Sprint(value), form))
		}
	}
	within := func(field string, p *int, low, high int) {
		wrong(p != nil && (*p < low || *p > high), field, value(p), fmt.Sprintf("a number from %d to %d", low, high))
	}
	wrong(r.Name != name, "name", r.Name, "the key of its entry")
	wrong(!containerForm().MatchString(r.Name), "name", r.Name, "the name of a container")
	wrong(!containerForm().MatchString(r.Container), "container_name", r.Container, "the name of a container")
	wrong(!idForm().MatchString(r.ContainerID), "container_id", r.ContainerID, "the ID of a container")
	wrong(!cardForm().MatchString(r.Card), "card_key", r.Card, "the key of a GPU, like rtx_2060")
	wrong(r.GPU == nil, "gpu_index", "missing", "the index of a GPU")
	wrong(r.Profile != nil && !profileForm().MatchString(*r.Profile), "mig_profile_name", value(r.Profile), "a MIG profile, like 1g.18gb")
	wrong(r.SliceUUID != nil && !uuidForm().MatchString(*r.SliceUUID), "mig_uuid", value(r.SliceUUID), "the UUID of a MIG slice")
	wrong(!strings.HasPrefix(r.Workspace, "/"), "workspace_mount", r.Workspace, "an absolute path")
	for field, text := range map[string]string{"workspace_mount": r.Workspace, "image": r.Image} {
		wrong(len(text) > maxText || strings.ContainsRune(text, 0), field, text, fmt.Sprintf("a text of at most %d bytes", maxText))
	}
	within("gpu_index", r.GPU, 0, 255)
	within("clock_mhz", r.ClockMHz, 1, 10_000)
	within("power_limit_w", r.PowerW, 1, 10_000)
	within("original_power_limit_w", r.OriginalPowerW, 1, 10_000)
	within("ssh_port", &r.SSHPort, 0, 65_535)
	return errors.Join(faults...)
}

// Baselines are, by the index of the GPU, the settings from before gpu-cosplay. It records them for each session, and what
// a later session found was set by an earlier one: a mode was off if any of them found it off.
func Baselines(all []Session) map[int]resource.Settings {
	found := map[int]resource.Settings{}
	for _, s := range all {
		b := found[s.GPU]
		for setting, was := range s.before.All() {
			if !b.Has(setting) || setting.Mode() && was == resource.Off {
				b = b.With(setting, was)
			}
		}
		found[s.GPU] = b
	}
	return found
}
