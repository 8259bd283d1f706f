package diff

import (
	"bytes"
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
	Sensitive bool            `json:"sensitive,omitempty"` // Before and After are empty
	Before    json.RawMessage `json:"before,omitempty"`    // with its type
	After     json.RawMessage `json:"after,omitempty"`     // empty if it is known after apply
	Sealed    string          `json:"sealed,omitempty"`    // the hash of a sensitive value; empty if it is known after apply
}

// Outputs compares the outputs of the state with the next ones, by name. The values of unknown ones are known after
// apply. They are listed only if the plan changes anything.
func Outputs(was, next, unknown []resource.Output, changes bool) []OutputChange {
	before := map[string]resource.Output{}
	for _, o := range was {
		before[o.Name] = o
	}
	var all []OutputChange
	add := func(o resource.Output, known bool) {
		old, existed := before[o.Name]
		delete(before, o.Name)
		c := OutputChange{Name: o.Name, Action: Create, Sensitive: o.Sensitive || old.Sensitive, Before: old.Value}
		if existed {
			c.Action = Update
		}
		if known {
			c.After, c.Sealed = o.Value, o.Sealed
		}
		if known && !SameOutput(old, o) || !known && changes {
			all = append(all, c)
		}
	}
	for _, o := range next {
		add(o, true)
	}
	for _, o := range unknown {
		add(o, false)
	}
	for _, o := range before {
		all = append(all, OutputChange{Name: o.Name, Action: Delete, Sensitive: o.Sensitive, Before: o.Value})
	}
	for i := range all {
		if all[i].Sensitive {
			all[i].Before, all[i].After = nil, nil
		}
	}
	slices.SortFunc(all, func(a, b OutputChange) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// SameOutput compares values, whatever their JSON looks like.
func SameOutput(a, b resource.Output) bool {
	return a.Name == b.Name && a.Sensitive == b.Sensitive && a.Sealed == b.Sealed &&
		(bytes.Equal(compact(a.Value), compact(b.Value)) || reflect.DeepEqual(plainValue(a), plainValue(b)))
}

// compact is a value without the spaces that a state has, which is all that differs as a rule.
func compact(value json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return value
	}
	return out.Bytes()
}

func plainValue(o resource.Output) any {
	var v any
	_ = json.Unmarshal(o.Value, &v)
	return v
}
