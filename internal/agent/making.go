//go:build cgo && linux

package agent

import (
	"errors"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// making is a slice while a request creates it.
type making struct {
	request
	noted bool // in the ledger
	slice *resource.LiveSlice
	err   error
}

func (m *making) created() created {
	if m.err != nil {
		return created{Error: asError(m.request, m.err)}
	}
	return created{Slice: m.slice}
}

// createSlices creates the slices of a request in the GPU's turn. One that fails does not prevent the others.
func (l *nvmlLibrary) createSlices(r request) ([]created, error) {
	d, err := l.device(r.GPU)
	if err != nil {
		return nil, err
	}
	before, err := l.page(r)
	if err != nil {
		return nil, err
	}
	all := prose.Each(r.Creates, func(c creation) *making { return &making{request: r.part(c)} })
	l.admitSlices(all)
	l.noteMaking(all)
	l.created.Store(&[]created{})
	for i, m := range all {
		if m.err == nil {
			m.slice, m.err = l.createSlice(d, m.request, before)
		}
		soFar := prose.Each(all[:i+1], (*making).created)
		l.created.Store(&soFar)
	}
	l.noteMade(all)
	return prose.Each(all, (*making).created), nil
}

// unfinished is the answer to a request in which a call hangs. Slices that come after that call are not there.
func (l *nvmlLibrary) unfinished(r request, hung *Error) response {
	answer := response{Last: true}
	done := l.created.Load()
	if r.Op != opCreateSlices || done == nil {
		return answer
	}
	answer.Created = slices.Clone(*done)
	for failed := *hung; len(answer.Created) < len(r.Creates); failed.GPUInstance, failed.Sure = nil, true {
		answer.Created = append(answer.Created, created{Error: &failed})
	}
	return answer
}

// admitSlices asks the guard for each slice. The admin's limits count the ones before it.
func (l *nvmlLibrary) admitSlices(all []*making) {
	if l.guard == nil {
		return
	}
	admitted := 0
	for _, m := range all {
		if m.request, m.err = l.guard.admit(l, m.request, admitted); m.err == nil {
			admitted++
		}
	}
}

// noteMaking checks the slices against the ledger, and records them there before they are created.
func (l *nvmlLibrary) noteMaking(all []*making) {
	allowed := prose.Only(all, func(m *making) bool { return m.err == nil })
	if l.book.Dir == "" || len(allowed) == 0 {
		return
	}
	wanted := prose.Each(allowed, func(m *making) ledger.Wanted {
		return ledger.Wanted{Slice: m.Slice.Slice, Beside: m.Need.Beside}
	})
	for i, refused := range l.entry(allowed[0].request).Making(l.look(allowed[0].request), wanted...) {
		allowed[i].err = refused
		allowed[i].noted = refused == nil
	}
}

// createSlice creates one slice. An unknown error may be temporary, and is tried again if it has left nothing.
func (l *nvmlLibrary) createSlice(d device, r request, before resource.Page) (*resource.LiveSlice, error) {
	made, err := d.createSlice(r.Slice.Slice, r.Need)
	if at, known := failedCall(err); known && at.Code == int(nvml.ERROR_UNKNOWN) && at.Sure && at.GPUInstance == nil {
		made, err = d.createSlice(r.Slice.Slice, r.Need)
	}
	if err != nil {
		err = l.giveUp(r, before, err)
	}
	return made, err
}

// noteMade records which slices were created. A failed one that may have left something stays in the ledger.
func (l *nvmlLibrary) noteMade(all []*making) {
	var (
		made, gone []resource.LiveSlice
		noted      []*making
	)
	for _, m := range all {
		known, is := errors.AsType[*Error](m.err)
		switch {
		case !m.noted:
			continue
		case m.err == nil:
			made = append(made, *m.slice)
		case is && known.Sure && known.GPUInstance == nil:
			gone = append(gone, *m.Slice)
		default:
			continue
		}
		noted = append(noted, m)
	}
	if len(noted) == 0 {
		return
	}
	err := l.entry(noted[0].request).Made(made, gone)
	for _, m := range noted {
		m.err = errors.Join(m.err, err)
	}
}
