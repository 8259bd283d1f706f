package resource

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"

	"cosplay/internal/prose"
)

// Setting is what cosplay may change on a physical GPU. JSON has the settings in this order.
type Setting int

const (
	MIGMode         Setting = iota
	PersistenceMode         // without it the driver forgets the clock lock and the power limit
	SMClock                 // the lock of the SM clock; 0 is none
	PowerLimit              // the driver may round it
	ComputeMode             // which processes may use the GPU: DefaultMode, ExclusiveProcess or another value of NVML
	TimeSlice               // how long a process runs before the next one that shares the GPU: an index of TimeSlices
)

// AllSettings are the settings in their order.
var AllSettings = [...]Setting{MIGMode, PersistenceMode, SMClock, PowerLimit, ComputeMode, TimeSlice}

const settingCount = len(AllSettings)

// SettingOrder is the order in which settings are made. They are restored in the opposite order.
var SettingOrder = [settingCount]Setting{PersistenceMode, MIGMode, PowerLimit, SMClock, ComputeMode, TimeSlice}

// manageOrder is the order of their words in the documentation.
var manageOrder = [settingCount]Setting{MIGMode, SMClock, PowerLimit, PersistenceMode, ComputeMode, TimeSlice}

// Values of a mode.
const (
	Off = 0
	On  = 1
)

// Values of the compute mode, as NVML numbers them.
const (
	DefaultMode      = 0 // any process
	Prohibited       = 2 // none
	ExclusiveProcess = 3 // one process, and all clients of MPS through one
)

// TimeSlices names the lengths of the driver's time slices, as nvidia-smi compute-policy --set-timeslice numbers them.
var TimeSlices = []string{"default", "short", "medium", "long"}

// settings has a row for each setting. NVML's call for it is in the table drivers of package agent.
var settings = [settingCount]struct {
	feature   Feature          // its name in plans, steps and requests, too
	key       string           // in JSON
	words     string           // for people
	manage    string           // the word for it in manage
	smi       string           // the option of nvidia-smi that sets it
	text      func(int) string // writes a value; without it, a mode is on or off
	names     []string         // of its values, where they have names
	at        func(*GPU) any   // a pointer to where the GPU has it: *bool, *int or **int; nil without a getter
	forgotten bool             // where persistence mode is off
	lasting   bool             // it outlives a reboot
}{
	MIGMode: {feature: FeatureMIG, key: "mig", words: "MIG mode", manage: "mig-mode", smi: "-mig", lasting: true,
		at: func(g *GPU) any { return &g.MIG }},
	PersistenceMode: {feature: FeaturePersistence, key: "persistence", words: "persistence mode", manage: "persistence", smi: "-pm",
		at: func(g *GPU) any { return &g.Persistence }},
	SMClock: {feature: FeatureClock, key: "clock_mhz", words: "SM clock", manage: "clocks", smi: "-lgc", text: Clock, forgotten: true},
	PowerLimit: {feature: FeaturePower, key: "power_mw", words: "power limit", manage: "power", smi: "-pl", text: Watts, forgotten: true,
		at: func(g *GPU) any { return &g.PowerMW }},
	ComputeMode: {feature: FeatureComputeMode, key: "compute_mode", words: "compute mode", manage: "compute-mode", smi: "-c", forgotten: true,
		names: []string{"default", "1", "prohibited", "exclusive process"}, at: func(g *GPU) any { return &g.ComputeMode }},
	TimeSlice: {feature: FeatureTimeSlice, key: "timeslice", words: "time slice", manage: "timeslice", smi: "compute-policy --set-timeslice",
		names: TimeSlices, at: func(g *GPU) any { return &g.TimeSlice }},
}

// SlicesWord is the word of manage for MIG slices, which are no setting.
const SlicesWord = "slices"

// ManageWords are the words of manage.
func ManageWords() []string {
	words := prose.Each(manageOrder[:], Setting.ManageWord)
	return slices.Insert(words, 1, SlicesWord) // after MIG mode
}

// SettingSet is some of the settings.
type SettingSet [settingCount]bool

// SettingNamed finds a setting by the name of its feature.
func SettingNamed(name string) (Setting, bool) {
	return find(AllSettings[:], func(s Setting) bool { return s.String() == name })
}

// String is the name of the setting: that of its feature.
func (s Setting) String() string { return string(settings[s].feature) }

// Feature is what a GPU is without whose driver does not offer the setting.
func (s Setting) Feature() Feature { return settings[s].feature }

// Words names the setting for people.
func (s Setting) Words() string { return settings[s].words }

// Key is its key in JSON.
func (s Setting) Key() string { return settings[s].key }

// ManageWord is the word for it in manage.
func (s Setting) ManageWord() string { return settings[s].manage }

// SMI is the option of nvidia-smi that sets it.
func (s Setting) SMI() string { return settings[s].smi }

// Mode reports whether the setting is Off or On.
func (s Setting) Mode() bool { return settings[s].text == nil && settings[s].names == nil }

// Names are those of its values, from 0 on; nil if they have none.
func (s Setting) Names() []string { return settings[s].names }

// Readable reports whether the setting can be read back.
func (s Setting) Readable() bool { return settings[s].at != nil }

// Forgotten reports whether the driver forgets the setting where persistence mode is off.
func (s Setting) Forgotten() bool { return settings[s].forgotten }

// Lasting reports whether the setting outlives a reboot of the host.
func (s Setting) Lasting() bool { return settings[s].lasting }

// Text writes a value: "on", "1575 MHz", "300 W". A number that has no name is written as it is.
func (s Setting) Text(value int) string {
	row := settings[s]
	switch {
	case row.text != nil:
		return row.text(value)
	case s.Mode():
		return OnOff(value == On)
	case value >= 0 && value < len(row.names):
		return row.names[value]
	}
	return strconv.Itoa(value)
}

// MarshalText writes the name.
func (s Setting) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name; an unknown one is an error.
func (s *Setting) UnmarshalText(name []byte) error {
	known, is := SettingNamed(string(name))
	if !is {
		return fmt.Errorf("unknown setting %q", name)
	}
	*s = known
	return nil
}

// Bit is a mode as the value of a setting.
func Bit(on bool) int {
	if on {
		return On
	}
	return Off
}

// Now is a setting as the GPU shows it; false where it cannot be read.
func (g GPU) Now(s Setting) (value int, known bool) {
	if !s.Readable() || g.Unread(s.Feature()) {
		return 0, false
	}
	switch at := settings[s].at(&g).(type) {
	case *bool:
		return Bit(*at), true
	case *int:
		return *at, true
	case **int:
		return **at, true
	}
	return 0, false
}

// Show makes the GPU show a value of a setting that can be read.
func (g *GPU) Show(s Setting, value int) {
	switch at := settings[s].at(g).(type) {
	case *bool:
		*at = value == On
	case *int:
		*at = value
	case **int:
		*at = &value
	}
}

// Settings are values of the settings of a GPU. cosplay does not change a setting without one.
type Settings struct {
	given  [settingCount]bool
	values [settingCount]int // 0 where none is given
}

// Get is the value of a setting; false without one.
func (s Settings) Get(which Setting) (value int, given bool) {
	return s.values[which], s.given[which]
}

// Equal compares two settings, for tests that cannot see inside.
func (s Settings) Equal(o Settings) bool { return s == o }

// Has reports whether a setting has a value.
func (s Settings) Has(which Setting) bool { return s.given[which] }

// Value is the value of a setting, or 0.
func (s Settings) Value(which Setting) int { return s.values[which] }

// Is reports whether a setting has this value.
func (s Settings) Is(which Setting, value int) bool {
	return s.given[which] && s.values[which] == value
}

// All are the settings that have values.
func (s Settings) All() iter.Seq2[Setting, int] {
	return func(yield func(Setting, int) bool) {
		for _, which := range AllSettings {
			if s.given[which] && !yield(which, s.values[which]) {
				return
			}
		}
	}
}

// With is the settings with one value more.
func (s Settings) With(which Setting, value int) Settings {
	s.given[which], s.values[which] = true, value
	return s
}

// Without is the settings without the value of one.
func (s Settings) Without(which Setting) Settings { return s.Copy(which, Settings{}) }

// Copy is the settings with one as another has it, also where that has no value.
func (s Settings) Copy(which Setting, from Settings) Settings {
	s.given[which], s.values[which] = from.given[which], from.values[which]
	return s
}

// Over is the settings, and where they have no value that of others.
func (s Settings) Over(others Settings) Settings {
	for which, value := range s.All() {
		others = others.With(which, value)
	}
	return others
}

// MarshalJSON writes the settings that have values.
func (s Settings) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for which, value := range s.All() {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(strconv.AppendQuote(text, which.Key()), ':')
		if which.Mode() {
			text = strconv.AppendBool(text, value == On)
		} else {
			text = strconv.AppendInt(text, int64(value), 10)
		}
	}
	return append(text, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes. An unknown setting is an error: a value that is dropped could not be
// restored.
func (s *Settings) UnmarshalJSON(data []byte) error {
	*s = Settings{}
	var values map[string]any
	if err := jsonv2.Unmarshal(data, &values); err != nil {
		return err
	}
	for key, value := range values {
		which, known := find(AllSettings[:], func(which Setting) bool { return which.Key() == key })
		on, isMode := value.(bool)
		number, isNumber := value.(float64)
		switch {
		case !known:
			return fmt.Errorf("unknown setting %q", key)
		case value == nil:
		case isMode && which.Mode():
			*s = s.With(which, Bit(on))
		case isNumber && !which.Mode() && number == math.Trunc(number):
			*s = s.With(which, int(number))
		default:
			return fmt.Errorf("%s: %v is no value of it", which.Words(), value)
		}
	}
	return nil
}
