package config

import (
	"encoding/json"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/prose"
)

// savedPlan is the source of values that a saved plan contains.
const savedPlan = "the saved plan"

// Saved returns the values of the variables, for a saved plan. It leaves out sensitive values: the user has to pass
// them again.
func (i *Intent) Saved() map[string]json.RawMessage {
	saved := map[string]json.RawMessage{}
	for _, v := range i.Variables {
		if v.Sensitive || !v.Value.IsWhollyKnown() {
			continue
		}
		if written, err := ctyjson.Marshal(v.Value, cty.DynamicPseudoType); err == nil { // this always succeeds: variables hold no capsules
			saved[v.Name] = written
		}
	}
	return saved
}

// Secrets are the names of the sensitive variables.
func (i *Intent) Secrets() []string {
	secrets := prose.Only(i.Variables, func(v Variable) bool { return v.Sensitive })
	return prose.Each(secrets, func(v Variable) string { return v.Name })
}

// FromSaved returns inputs with the values that Saved wrote.
func FromSaved(saved map[string]json.RawMessage) ([]Input, error) {
	var all []Input
	for _, name := range sortedKeys(saved) {
		v, err := ctyjson.Unmarshal(saved[name], cty.DynamicPseudoType)
		if err != nil {
			return nil, fmt.Errorf("variable %q: %w", name, err)
		}
		all = append(all, Input{From: savedPlan, Name: name, Value: &v, MayBeUnknown: true})
	}
	return all, nil
}
