package diff

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// OutputChange is an output that will have another value than the state has.
type OutputChange struct {
	Name      string          `json:"name"`
	Action    Action          `json:"action"`
	Sensitive bool            `json:"sensitive,omitempty"` // then there is neither value
	Before    json.RawMessage `json:"before,omitempty"`    // with its type
	After     json.RawMessage `json:"after,omitempty"`     // not there when it is known after apply
	Sealed    string          `json:"sealed,omitempty"`    // what the state keeps of a sensitive one; not there when it is known after apply
}

// Outputs compares those of the state with those to be, by name. Those that are not known yet are told only of a plan
// that changes something, which makes them known.
func Outputs(was, next, unknown []resource.Output, changes bool) []OutputChange {
	var all []OutputChange
	for _, o := range next {
		c := OutputChange{Name: o.Name, Action: Create, Sensitive: o.Sensitive, After: o.Value, Sealed: o.Sealed}
		if i := outputNamed(was, o.Name); i >= 0 {
			if SameOutput(was[i], o) {
				continue
			}
			c.Action, c.Before = Update, was[i].Value
			c.Sensitive = o.Sensitive || was[i].Sensitive
		}
		all = append(all, c)
	}
	for _, o := range unknown {
		c := OutputChange{Name: o.Name, Action: Create, Sensitive: o.Sensitive}
		if i := outputNamed(was, o.Name); i >= 0 {
			c.Action, c.Before = Update, was[i].Value
			c.Sensitive = o.Sensitive || was[i].Sensitive
		}
		if changes {
			all = append(all, c)
		}
	}
	for _, o := range was {
		if outputNamed(next, o.Name) < 0 && outputNamed(unknown, o.Name) < 0 {
			all = append(all, OutputChange{Name: o.Name, Action: Delete, Sensitive: o.Sensitive, Before: o.Value})
		}
	}
	for i := range all {
		if all[i].Sensitive {
			all[i].Before, all[i].After = nil, nil
		}
	}
	slices.SortFunc(all, func(a, b OutputChange) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func outputNamed(all []resource.Output, name string) int {
	return slices.IndexFunc(all, func(o resource.Output) bool { return o.Name == name })
}

// SameOutput compares values as values, however they are laid out.
func SameOutput(a, b resource.Output) bool {
	return a.Name == b.Name && a.Sensitive == b.Sensitive && a.Sealed == b.Sealed && reflect.DeepEqual(plainValue(a), plainValue(b))
}

func plainValue(o resource.Output) any {
	var v any
	_ = json.Unmarshal(o.Value, &v)
	return v
}
