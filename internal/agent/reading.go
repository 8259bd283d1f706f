package agent

import (
	"reflect"
	"slices"

	"cosplay/internal/resource"
)

// reading is a host in an answer. It contains each model once: a model is long, with its
// clocks and profiles, and most hosts have one.
type reading struct {
	resource.Host
	Models []resource.Model `json:"models,omitempty"`
	Kinds  []int            `json:"kinds,omitempty"` // which of them each GPU is
}

func packed(h *resource.Host, err error) (*reading, error) {
	if err != nil {
		return nil, err
	}
	r := &reading{Host: *h}
	r.GPUs = slices.Clone(h.GPUs)
	for i := range r.GPUs {
		model := &r.GPUs[i].Model
		kind := slices.IndexFunc(r.Models, func(m resource.Model) bool { return reflect.DeepEqual(m, *model) })
		if kind < 0 {
			kind = len(r.Models)
			r.Models = append(r.Models, *model)
		}
		r.Kinds = append(r.Kinds, kind)
		*model = resource.Model{}
	}
	return r, nil
}

func (r *reading) unpacked() resource.Host {
	for i, kind := range r.Kinds {
		if i < len(r.GPUs) && kind >= 0 && kind < len(r.Models) {
			r.GPUs[i].Model = r.Models[kind]
		}
	}
	return r.Host
}
