package resource

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
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

// Values of a mode.
const (
	Off = 0
	On  = 1
)

// unit is what the value of a setting counts.
type unit int

const (
	mode unit = iota // Off or On
	megahertz
	milliwatts
	computeMode
	timeSlice
)

// Values of the compute mode, as NVML numbers them.
const (
	DefaultMode      = 0 // any process
	Prohibited       = 2 // none
	ExclusiveProcess = 3 // one process, and all clients of MPS through one
)

// TimeSlices names the lengths of the driver's time slices. The index of a name is the value of the setting, as
// nvidia-smi compute-policy --set-timeslice numbers them.
var TimeSlices = [...]string{"default", "short", "medium", "long"}

var settings = [settingCount]struct {
	feature   Feature // its name in plans, steps and requests, too
	key       string  // in JSON
	words     string
	unit      unit
	read      func(GPU) int // nil without a getter
	forgotten bool          // where persistence mode is off
	lasting   bool          // it outlives a reboot
}{
	MIGMode:         {feature: FeatureMIG, key: "mig", words: "MIG mode", read: func(g GPU) int { return Bit(g.MIG) }, lasting: true},
	PersistenceMode: {feature: FeaturePersistence, key: "persistence", words: "persistence mode", read: func(g GPU) int { return Bit(g.Persistence) }},
	SMClock:         {feature: FeatureClock, key: "clock_mhz", words: "SM clock", unit: megahertz, forgotten: true},
	PowerLimit:      {feature: FeaturePower, key: "power_mw", words: "power limit", unit: milliwatts, forgotten: true, read: func(g GPU) int { return g.PowerMW }},
	ComputeMode:     {feature: FeatureComputeMode, key: "compute_mode", words: "compute mode", unit: computeMode, forgotten: true, read: func(g GPU) int { return g.ComputeMode }},
	TimeSlice:       {feature: FeatureTimeSlice, key: "timeslice", words: "time slice", unit: timeSlice, read: func(g GPU) int { return *g.TimeSlice }},
}

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

// Mode reports whether the setting is Off or On.
func (s Setting) Mode() bool { return settings[s].unit == mode }

// Readable reports whether the setting can be read back.
func (s Setting) Readable() bool { return settings[s].read != nil }

// Forgotten reports whether the driver forgets the setting where persistence mode is off.
func (s Setting) Forgotten() bool { return settings[s].forgotten }

// Lasting reports whether the setting outlives a reboot of the host.
func (s Setting) Lasting() bool { return settings[s].lasting }

// Text writes a value: "on", "1575 MHz", "300 W".
func (s Setting) Text(value int) string {
	switch settings[s].unit {
	case megahertz:
		return Clock(value)
	case milliwatts:
		return Watts(value)
	case computeMode:
		return ComputeModeWords(value)
	case timeSlice:
		return TimeSliceWords(value)
	case mode:
	}
	return OnOff(value == On)
}

// ComputeModeWords names a compute mode: "exclusive process".
func ComputeModeWords(value int) string {
	switch value {
	case DefaultMode:
		return "default"
	case Prohibited:
		return "prohibited"
	case ExclusiveProcess:
		return "exclusive process"
	}
	return strconv.Itoa(value)
}

// TimeSliceWords names a length of time slices, as TimeSlices does; a number that has no name is written as it is.
func TimeSliceWords(value int) string {
	if value >= 0 && value < len(TimeSlices) {
		return TimeSlices[value]
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
	return settings[s].read(g), true
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
		text = append(strconv.AppendQuote(text, settings[which].key), ':')
		if which.Mode() {
			text = strconv.AppendBool(text, value == On)
		} else {
			text = strconv.AppendInt(text, int64(value), 10)
		}
	}
	return append(text, '}'), nil
}

// UnmarshalJSONFrom reads what MarshalJSON writes. An unknown setting is an error: a value that is dropped could not be
// restored.
func (s *Settings) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	*s = Settings{}
	begin, err := from.ReadToken()
	if err != nil || begin.Kind() == 'n' {
		return err
	}
	if begin.Kind() != '{' {
		return fmt.Errorf("%s stands where settings belong", begin)
	}
	for from.PeekKind() != '}' {
		key, err := from.ReadToken()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(AllSettings[:], func(which Setting) bool { return settings[which].key == key.String() })
		if i < 0 {
			return fmt.Errorf("unknown setting %q", key)
		}
		value, err := from.ReadValue()
		if err != nil {
			return err
		}
		if err := s.read(AllSettings[i], value); err != nil {
			return err
		}
	}
	_, err = from.ReadToken()
	return err
}

// UnmarshalJSON does the same for encoding/json.
func (s *Settings) UnmarshalJSON(data []byte) error {
	return s.UnmarshalJSONFrom(jsontext.NewDecoder(bytes.NewReader(data)))
}

func (s *Settings) read(which Setting, value jsontext.Value) error {
	text := string(value)
	if text == "null" {
		return nil
	}
	if which.Mode() && (text == "true" || text == "false") {
		*s = s.With(which, Bit(text == "true"))
		return nil
	}
	number, err := strconv.ParseFloat(text, 64)
	if which.Mode() || err != nil || number != math.Trunc(number) {
		return fmt.Errorf("%s: %s is no value of it", which.Words(), text)
	}
	*s = s.With(which, int(number))
	return nil
}
