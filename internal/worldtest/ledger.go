package worldtest

import (
	"context"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/ledger"
	"cosplay/internal/resource"
)

// Take acquires a GPU.
func (w *World) Take(_ context.Context, gpu string, t ledger.Take) error {
	return w.onLedger("take ", gpu, func(g *resource.Page) error {
		t.Trusted = true
		return ledger.Hold(g, w.holder(), t, w.found(gpu))
	})
}

func (w *World) holder() resource.Holder {
	return resource.Holder{Lineage: w.Lineage, State: "/state/" + w.Lineage, User: "ann"}
}

// found is a GPU as the agent finds it; nil if it is lost.
func (w *World) found(uuid string) *ledger.Found {
	for _, g := range w.Host().GPUs {
		if g.UUID == uuid {
			settings, _ := diff.Baseline(g, 0)
			return &ledger.Found{GPU: g, Settings: settings, BootID: w.Host().BootID, Now: "2026-01-02T03:04:05Z"}
		}
	}
	return nil
}

// Leave announces that the baseline of a GPU is restored.
func (w *World) Leave(_ context.Context, gpu string) error {
	return w.onLedger("leave ", gpu, func(g *resource.Page) error { return ledger.Leave(g, w.Lineage) })
}

// Release releases a GPU.
func (w *World) Release(_ context.Context, gpu string, asItIs, abandon bool) error {
	return w.onLedger("release ", gpu, func(g *resource.Page) error {
		return ledger.Release(g, w.holder(), ledger.Parting{AsItIs: asItIs, Abandon: abandon, Trusted: true, Found: w.found(gpu)})
	})
}

func (w *World) onLedger(what, gpu string, do func(*resource.Page) error) error {
	return w.change(what+gpu, func() error { return w.book(gpu, do) })
}

// setting checks a change against the ledger, as the agent does.
func (w *World) setting(gpu string, s resource.Settings) error {
	return w.book(gpu, func(g *resource.Page) error {
		if err := ledger.MaySet(g, w.Lineage, s); err != nil {
			return err
		}
		ledger.Attempt(g, s, w.Host().BootID)
		ledger.Settled(g, s)
		return nil
	})
}

func (w *World) book(gpu string, do func(*resource.Page) error) error {
	h := w.Host()
	all := slices.Clone(h.Ledger)
	i := slices.IndexFunc(all, func(e resource.Page) bool { return e.UUID == gpu })
	page := resource.Page{UUID: gpu}
	if i >= 0 {
		page = all[i]
		page.Holders = slices.Clone(page.Holders)
		for n := range page.Holders {
			page.Holders[n].Slices = slices.Clone(page.Holders[n].Slices)
		}
		all = slices.Delete(all, i, i+1)
	}
	if err := do(&page); err != nil {
		return err
	}
	page.BootID = h.BootID
	if len(page.Holders) > 0 {
		all = append(all, page)
	}
	h.Ledger = all
	return nil
}
