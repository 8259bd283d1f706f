package project

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/ledger"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// Statement is an import block whose object was found, and may state the baseline of the GPU that the object is on.
type Statement struct {
	config.Import
	Found *Import
}

// On is the GPU of the object; ok is false where it has none yet.
func (s Statement) On() (key resource.GPUKey, ok bool) {
	return s.Found.Session.Slice.On(), s.Found.GPU.UUID != ""
}

// Stated is what import blocks state together of each GPU. prior and live are from before the imports. It refuses
// blocks that contradict each other or a baseline on record, and values that the GPU cannot have.
func Stated(all []Statement, prior resource.Prior, live resource.Live) (map[resource.GPUKey]resource.Settings, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	stated, first := map[resource.GPUKey]resource.Settings{}, map[resource.GPUKey]map[resource.Setting]config.Import{}
	for _, one := range all {
		key, ok := one.On()
		if !ok {
			continue
		}
		if first[key] == nil {
			first[key] = map[resource.Setting]config.Import{}
		}
		gpu := words.GPU(live, key.Host, key.UUID)
		for setting, value := range one.Baseline.All() {
			refuse := func(what, detail string, args ...any) {
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: fmt.Sprintf(what, gpu), Detail: fmt.Sprintf(detail, args...), Subject: &one.Range})
			}
			says, attribute := named(one.Baseline, setting), config.BaselineAttribute(setting)
			if other, twice := first[key][setting]; twice {
				if was, _ := other.Baseline.Get(setting); was != value {
					refuse("two import blocks state different baselines of %s", "This one states %s, and the one at %s line %d states %s. A GPU has one baseline. Correct %s in one of them.",
						says, other.Range.Filename, other.Range.Start.Line, named(other.Baseline, setting), attribute)
				}
				continue
			}
			first[key][setting] = one.Import
			if why := impossible(one.Found.GPU, setting, value); why != "" {
				refuse("%s cannot have the baseline that an import block states", "%s. Correct %s.", why, attribute)
				continue
			}
			if record, is := onRecord(key, prior, live); is {
				if was, known := record.Get(setting); !known || was != value {
					refuse("%s has another baseline on record", "The import block states %s. The baseline on record has %s, and it stays as long as a project holds the GPU. Remove %s from the block; or run cosplay destroy for what is on the GPU, and import it again.",
						says, named(record, setting), attribute)
					continue
				}
			}
			stated[key] = stated[key].With(setting, value)
		}
	}
	return stated, diags
}

// onRecord is the baseline of a GPU that a project holds.
func onRecord(key resource.GPUKey, prior resource.Prior, live resource.Live) (resource.Settings, bool) {
	if held, ours := prior.GPU(key.Host, key.UUID); ours {
		return held.Baseline, true
	}
	page, inHand := live.Page(key.Host, key.UUID)
	return page.Baseline, inHand
}

// impossible says why a GPU cannot have a value; "" if it can.
func impossible(g resource.GPU, setting resource.Setting, value int) string {
	switch m := g.Model; {
	case setting == resource.PowerLimit && m.PowerMaxMW > 0 && (value < m.PowerMinMW || value > m.PowerMaxMW):
		return fmt.Sprintf("Its power limit can be %d W to %d W, and not %d W", m.PowerMinMW/1000, m.PowerMaxMW/1000, value/1000)
	case setting == resource.MIGMode && value == resource.On && !m.MIG():
		return "It has no MIG mode"
	}
	return ""
}

// named is a setting with its value, in words.
func named(s resource.Settings, setting resource.Setting) string {
	value := ledger.Exact(s, setting)
	if value == "" {
		value = "unknown"
	}
	return setting.Words() + " " + value
}

// Restores says what destroy restores by the statement of an import; "" without one.
func (i *Import) Restores() string {
	var all []string
	for setting := range i.Stated.All() {
		all = append(all, named(i.Stated, setting))
	}
	return strings.Join(all, ", ")
}
