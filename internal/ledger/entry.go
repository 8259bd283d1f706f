package ledger

import (
	"errors"
	"fmt"

	"cosplay/internal/resource"
)

// Entry is a GPU in the ledger, for one holder.
type Entry struct {
	Book   Book
	GPU    string // UUID
	Holder resource.Holder
	BootID string
}

func (e Entry) change(survives fate, do func(*resource.Page) error) error {
	return e.Book.change(e.GPU, survives, func(g *resource.Page) error {
		if err := mayActFor(g, e.Holder); err != nil {
			return err
		}
		if err := do(g); err != nil {
			return err
		}
		NoteSerial(g, e.Holder)
		return nil
	})
}

func (e Entry) Page() (resource.Page, error) { return e.Book.read(e.GPU) }

// Look reads a GPU. It runs before the ledger is locked, since the driver can be slow. The
// page does not change meanwhile: the caller has the GPU's turn.
type Look func() (*Found, error)

// Take acquires the GPU; acquiring it twice is once. The first holder's baseline is what look finds.
func (e Entry) Take(t Take, look Look) error {
	page, found, err := e.afterReboot(look)
	if err != nil {
		return err
	}
	if len(page.Holders) == 0 {
		if found, err = look(); err != nil {
			return err
		}
	}
	return e.change(powerLoss|growing, func(g *resource.Page) error {
		rebooted(g, found)
		if err := Hold(g, e.Holder, t, found); err != nil {
			return err
		}
		if err := e.claim(); err != nil {
			return err
		}
		g.BootID = e.BootID
		return nil
	})
}

// afterReboot returns the page, and the GPU if the page was last changed before a reboot;
// found is nil otherwise, and if the GPU cannot be read.
func (e Entry) afterReboot(look Look) (page resource.Page, found *Found, err error) {
	page, err = e.Page()
	if err == nil && len(page.Holders) > 0 && page.BootID != "" && page.BootID != e.BootID {
		found, _ = look()
	}
	return page, found, err
}

// Leave announces that the holder, the last one, restores the baseline.
func (e Entry) Leave() error {
	return e.change(powerLoss, func(g *resource.Page) error { return Leave(g, e.Holder.Lineage) })
}

// ErrNotHeld says that there was nothing to release, which is no failure.
var ErrNotHeld = errors.New("the project does not hold the GPU")

// Release removes the holder; if there is none, it returns ErrNotHeld. A GPU that cannot be
// read is not released by its last holder, unless the request abandons the baseline.
func (e Entry) Release(p Parting, look Look) error {
	page, err := e.Page()
	if err != nil {
		return err
	}
	if _, holds := page.Holder(e.Holder.Lineage); !holds {
		return ErrNotHeld
	}
	var unread error
	p.Found, unread = look()
	return e.change(powerLoss, func(g *resource.Page) error {
		err := Release(g, e.Holder, p)
		if err != nil && unread != nil {
			err = fmt.Errorf("%w (%s)", err, unread.Error()) // the refusal counts, not NVML's code
		}
		return err
	})
}

// Setting allows a change of settings, and records it before it is made.
func (e Entry) Setting(s resource.Settings, look Look) error {
	page, found, err := e.afterReboot(look)
	if err == nil && found == nil && len(unknown(page, s)) > 0 {
		found, err = look()
	}
	if err != nil {
		return err
	}
	return e.change(powerLoss, func(g *resource.Page) error {
		if err := MaySet(g, e.Holder.Lineage, s); err != nil {
			return err
		}
		rebooted(g, found)
		if len(g.Binding(e.Holder.Lineage)) == 0 {
			g.Undone = resource.Settings{}
		}
		for _, which := range unknown(*g, s) { // found before the first change is from before cosplay
			g.Baseline = g.Baseline.Copy(which, found.Settings)
		}
		Attempt(g, s, e.BootID)
		g.BootID = e.BootID
		return nil
	})
}

// Settled records the outcome of a change of settings if the project still holds the GPU.
func (e Entry) Settled(now resource.Settings) error {
	return e.change(ourDeath, func(g *resource.Page) error {
		if _, holds := g.Holder(e.Holder.Lineage); holds {
			Settled(g, now)
		}
		return nil
	})
}

// Wanted is a slice that is to be created.
type Wanted struct {
	resource.Slice
	Beside string // UUID of the slice in whose GPU instance it is created; "" for none
}

// Making records slices before they are created. It returns for each of them why it must not be, or nil.
func (e Entry) Making(look Look, all ...Wanted) []error {
	refused := make([]error, len(all))
	page, found, err := e.afterReboot(look)
	var allowed []resource.LiveSlice
	for i, w := range all {
		if refused[i] = err; err == nil {
			refused[i] = maySplit(page, e.Holder.Lineage, w.Slice, w.Beside)
		}
		if refused[i] == nil {
			allowed = append(allowed, resource.LiveSlice{Slice: w.Slice})
		}
	}
	if len(allowed) == 0 {
		return refused
	}
	if err := e.change(ourDeath|growing, func(g *resource.Page) error {
		rebooted(g, found)
		return e.note(g, allowed)
	}); err != nil {
		for i := range refused {
			if refused[i] == nil {
				refused[i] = err
			}
		}
	}
	return refused
}

// Made records slices that were created, and removes the record of those that were not.
func (e Entry) Made(made, gone []resource.LiveSlice) error {
	return e.change(ourDeath, func(g *resource.Page) error {
		for _, s := range gone {
			DropSlice(g, e.Holder.Lineage, s)
		}
		return e.note(g, made)
	})
}

func (e Entry) note(g *resource.Page, all []resource.LiveSlice) error {
	for _, s := range all {
		s.Serial = e.Holder.Serial
		if err := NoteSlice(g, e.Holder.Lineage, s); err != nil {
			return err
		}
	}
	return nil
}

// Destroying checks whether the holder may destroy a slice.
func (e Entry) Destroying(s resource.LiveSlice) error {
	return e.change(ourDeath, func(g *resource.Page) error { return MayDestroy(g, e.Holder.Lineage, s) })
}

// Destroyed removes the record of a slice.
func (e Entry) Destroyed(s resource.LiveSlice) error {
	return e.change(ourDeath, func(g *resource.Page) error {
		DropSlice(g, e.Holder.Lineage, s)
		return nil
	})
}
