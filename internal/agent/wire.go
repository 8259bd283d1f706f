package agent

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// The types here are what the protocol has in another form than the types of resource: a host has thousands of slices.

// writeLine writes a request or an answer as one line, without a copy of it all in memory. It leaves out what is zero. Text
// of other users, as in the environment of a process, need not be UTF-8.
func writeLine(out io.Writer, message any) error {
	buffered := bufio.NewWriterSize(out, answerBuffer)
	return errors.Join(jsonv2.MarshalWrite(buffered, message, jsonv2.OmitZeroStructFields(true), jsontext.AllowInvalidUTF8(true)),
		buffered.WriteByte('\n'), buffered.Flush())
}

// wireHost is what the agent reads of a host. It contains each model once: a model is long, with its clocks and
// profiles, and most hosts have one.
type wireHost struct {
	Library  string              `json:"library"`
	Driver   string              `json:"driver"`
	BootID   string              `json:"boot_id"`
	GPUs     []wireGPU           `json:"gpus"`
	Models   []resource.Model    `json:"models,omitzero"`
	Unusable []resource.Unusable `json:"unusable,omitzero"`
	Ledger   []wirePage          `json:"ledger,omitzero"`
	Queue    []resource.Waiting  `json:"queue,omitzero"`
	Unbooked bool                `json:"unbooked,omitzero"`
	Admin    resource.Admin      `json:"admin,omitzero"`
	MPS      resource.MPSService `json:"mps,omitzero"`
}

// wireGPU is a GPU whose model is a place in Models. Its reason for a low clock has another key than in a saved plan.
type wireGPU struct {
	resource.GPU
	Model          int  `json:"model"`
	LowClockReason bool `json:"low_clock_reason"`
}

type wirePage struct {
	resource.Page
	Departed []wireDeparted `json:"departed,omitzero"`
}

type wireDeparted struct {
	Slice   resource.LiveSlice `json:"slice"`
	Lineage string             `json:"lineage"`
	User    string             `json:"user"`
	UID     *int               `json:"uid,omitzero"`
	At      string             `json:"at"`
}

// sameBoot replaces the boot of a slice that is the one of its page.
const sameBoot = "="

// within returns slices of a GPU without what is the same for all of them.
func within(gpu, boot string, all []resource.LiveSlice) []resource.LiveSlice {
	all = slices.Clone(all)
	for i := range all {
		if all[i].GPU == gpu {
			all[i].GPU = ""
		}
		if boot != "" && all[i].Boot == boot {
			all[i].Boot = sameBoot
		}
	}
	return all
}

// outside is the reverse of within.
func outside(gpu, boot string, all []resource.LiveSlice) {
	for i := range all {
		all[i].GPU = cmp.Or(all[i].GPU, gpu)
		if all[i].Boot == sameBoot {
			all[i].Boot = boot
		}
	}
}

func hostToWire(h resource.Host) *wireHost {
	w := &wireHost{Library: h.Library, Driver: h.Driver, BootID: h.BootID, Unusable: h.Unusable, Ledger: prose.Each(h.Ledger, pageToWire),
		Queue: h.Queue, Unbooked: h.Unbooked, Admin: h.Admin, MPS: h.MPS}
	for _, g := range h.GPUs {
		kind := slices.IndexFunc(w.Models, func(m resource.Model) bool { return reflect.DeepEqual(m, g.Model) })
		if kind < 0 {
			kind = len(w.Models)
			w.Models = append(w.Models, g.Model)
		}
		one := wireGPU{GPU: g, Model: kind, LowClockReason: g.LowClockReason}
		one.GPU.LowClockReason, one.Slices = false, within(g.UUID, "", g.Slices)
		w.GPUs = append(w.GPUs, one)
	}
	return w
}

func (w wireHost) host() resource.Host {
	return resource.Host{Library: w.Library, Driver: w.Driver, BootID: w.BootID, Unusable: w.Unusable, Ledger: prose.Each(w.Ledger, wirePage.page),
		Queue: w.Queue, Unbooked: w.Unbooked, Admin: w.Admin, MPS: w.MPS,
		GPUs: prose.Each(w.GPUs, func(g wireGPU) resource.GPU {
			outside(g.UUID, "", g.Slices)
			g.GPU.LowClockReason = g.LowClockReason
			if g.Model >= 0 && g.Model < len(w.Models) {
				g.GPU.Model = w.Models[g.Model]
			}
			return g.GPU
		})}
}

func pageToWire(p resource.Page) wirePage {
	p.Holders = slices.Clone(p.Holders)
	for i, h := range p.Holders {
		p.Holders[i].Slices = within(p.UUID, p.BootID, h.Slices)
	}
	return wirePage{p, prose.Each(p.Departed, func(d resource.Departed) wireDeparted {
		return wireDeparted{d.LiveSlice, d.Lineage, d.User, d.UID, d.At}
	})}
}

func (w wirePage) page() resource.Page {
	for _, h := range w.Holders {
		outside(w.UUID, w.BootID, h.Slices)
	}
	w.Page.Departed = prose.Each(w.Departed, func(d wireDeparted) resource.Departed {
		return resource.Departed{LiveSlice: d.Slice, Lineage: d.Lineage, User: d.User, UID: d.UID, At: d.At}
	})
	return w.Page
}
