package render

import (
	"cosplay/internal/diff"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// fieldJSON is one difference: its kind with both values, and the same in words.
type fieldJSON struct {
	Kind       diff.Kind           `json:"kind"`
	Name       string              `json:"name"`
	From       string              `json:"from"`
	To         string              `json:"to"`
	Before     any                 `json:"before"`
	After      any                 `json:"after"`
	Reason     string              `json:"reason,omitempty"`
	ReasonKind resource.ReasonKind `json:"reason_kind,omitempty"`
	Left       bool                `json:"left,omitempty"` // with give_back: cosplay changed it and cannot restore it now
}

func fieldsJSON(live resource.Live, all []diff.Field) []fieldJSON {
	var out []fieldJSON
	for _, f := range all {
		out = append(out, fieldJSON{Kind: f.Kind, Name: words.Field(f), From: words.Value(f.From, live), To: words.Value(f.To, live), Before: f.From, After: f.To,
			Reason: words.Setting(f), ReasonKind: f.Reason.Kind, Left: f.Left})
	}
	return out
}

// keptJSON are settings that stay as they are.
func keptJSON(live resource.Live, all []diff.Field) []fieldJSON {
	out := fieldsJSON(live, all)
	for i := range out {
		out[i].To, out[i].After = out[i].From, out[i].Before
	}
	return out
}

// gpuChangeJSON is what happens to a GPU.
type gpuChangeJSON struct {
	diff.GPUChange
	Fields []fieldJSON `json:"fields,omitempty"`
	Kept   []fieldJSON `json:"kept,omitempty"`
}

func gpuChangesJSON(live resource.Live, all []diff.GPUChange) []gpuChangeJSON {
	out := []gpuChangeJSON{}
	for _, c := range all {
		out = append(out, gpuChangeJSON{c, fieldsJSON(live, c.Fields), keptJSON(live, c.Kept)})
	}
	return out
}

// sessionChangeJSON is what happens to a session.
type sessionChangeJSON struct {
	diff.SessionChange
	Reason     string              `json:"reason,omitempty"`
	ReasonKind resource.ReasonKind `json:"reason_kind,omitempty"`
	Fields     []fieldJSON         `json:"fields,omitempty"`
}

func sessionChangesJSON(live resource.Live, all []diff.SessionChange) []sessionChangeJSON {
	out := []sessionChangeJSON{}
	for _, c := range all {
		out = append(out, sessionChangeJSON{c, words.Session(c), c.Reason.Kind, fieldsJSON(live, c.Fields)})
	}
	return out
}

// driftJSON is one drift, with its values and in words.
type driftJSON struct {
	diff.Drift
	Thing  string `json:"thing"`
	From   string `json:"from"`
	To     string `json:"to"`
	Before any    `json:"before"`
	After  any    `json:"after"`
	Cause  string `json:"cause,omitempty"` // one that is not known begins with "possible cause:"
}

func driftsJSON(live resource.Live, all []diff.Drift) []driftJSON {
	out := []driftJSON{}
	for _, d := range all {
		out = append(out, driftJSON{d, words.Drifted(d), driftFrom(d, live), words.Value(d.To, live), d.From, d.To, words.Cause(d)})
	}
	return out
}
