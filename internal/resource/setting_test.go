package resource

import (
	"encoding/json"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
)

// TestSettingsJSON: the keys and their order are those of every earlier version, and what is unknown is not dropped.
func TestSettingsJSON(t *testing.T) {
	all := Settings{}.With(PowerLimit, 320_000).With(SMClock, 0).With(PersistenceMode, On).With(MIGMode, Off)
	for text, want := range map[string]Settings{
		`{}`: {},
		`{"mig":false,"persistence":true,"clock_mhz":0,"power_mw":320000}`: all,
		`{"clock_mhz":1575}`: Settings{}.With(SMClock, 1575),
	} {
		var read Settings
		if err := json.Unmarshal([]byte(text), &read); err != nil || read != want {
			t.Errorf("%s: %+v, %v", text, read, err)
		}
		if err := jsonv2.Unmarshal([]byte(text), &read); err != nil || read != want {
			t.Errorf("%s: %+v, %v", text, read, err)
		}
		if written, err := json.Marshal(want); err != nil || string(written) != text {
			t.Errorf("%s, want %s, %v", written, text, err)
		}
	}
	for _, text := range []string{`null`, `{"mig":null}`} {
		read := all
		if err := json.Unmarshal([]byte(text), &read); err != nil || read != (Settings{}) && text != "null" { // which encoding/json skips
			t.Errorf("%s: %+v, %v", text, read, err)
		}
	}
	for _, text := range []string{`{"fan":1}`, `{"mig":1}`, `{"power_mw":true}`, `{"power_mw":1.5}`, `{"power_mw":"1"}`, `{"power_mw":[1]}`, `{"mig"}`, `[]`, `{`} {
		if json.Unmarshal([]byte(text), new(Settings)) == nil || jsonv2.Unmarshal([]byte(text), new(Settings)) == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// TestSettingTable: each setting has a unique name and a place in the order.
func TestSettingTable(t *testing.T) {
	seen := map[Setting]bool{}
	for _, s := range SettingOrder {
		named, known := SettingNamed(s.String())
		if !known || named != s || seen[s] || !s.Feature().Managed() || s.Words() == "" {
			t.Errorf("%d is %q, %q", s, s, s.Words())
		}
		seen[s] = true
	}
}
