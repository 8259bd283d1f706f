package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"golang.org/x/sys/unix"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// SystemDir is the folder of the ledger of a host with hardware.
const SystemDir = "/var/lib/cosplay"

// formatVersion is raised when a field changes its meaning. Pages of format 1 do not
// know whether a clock lock was lifted: it counts as set.
const formatVersion = 2

// lockWait is how long one change waits for another to be written.
const lockWait = 10 * time.Second

// Book is the ledger of one host: a folder with a page for each GPU that a project has acquired.
type Book struct{ Dir string }

type page struct {
	FormatVersion int `json:"format_version"`
	resource.Page
}

// Quiet waits until nothing changes the host, for at most the given time.
func (b Book) Quiet(wait time.Duration) error {
	if b.Dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return durable.Quiet(ctx, b.moving())
}

func unwritable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the host's ledger cannot be written: %w; changes to a GPU take root: sudo cosplay apply", err)
	}
	return fmt.Errorf("the host's ledger cannot be written: %w", err)
}

func (b Book) moving() string          { return filepath.Join(b.Dir, "moving") }
func (b Book) folder() string          { return filepath.Join(b.Dir, "ledger") }
func (b Book) path(uuid string) string { return filepath.Join(b.folder(), uuid+pageSuffix) }

// Read returns the pages of all GPUs that have a holder, by UUID; none if there is no ledger.
func (b Book) Read() (all []resource.Page, err error) {
	for page, err := range b.Pages() {
		if err != nil {
			return nil, err
		}
		all = append(all, page)
	}
	slices.SortFunc(all, func(a, b resource.Page) int { return strings.Compare(a.UUID, b.UUID) })
	return all, nil
}

// Pages are what Read returns, each read when it is asked for; the last one may be an error.
func (b Book) Pages() iter.Seq2[resource.Page, error] {
	return func(yield func(resource.Page, error) bool) {
		entries, err := b.entries()
		if err != nil {
			yield(resource.Page{}, err)
			return
		}
		for _, e := range entries {
			page, err := b.read(strings.TrimSuffix(e.Name(), pageSuffix))
			gone := err == nil && len(page.Holders) == 0 // it was released since the listing
			if !gone && (!yield(page, err) || err != nil) {
				return
			}
		}
	}
}

const pageSuffix = ".json"

func (b Book) entries() ([]os.DirEntry, error) {
	all, err := os.ReadDir(b.folder())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the host's ledger: %w", err)
	}
	return slices.DeleteFunc(all, func(e os.DirEntry) bool {
		return !strings.HasSuffix(e.Name(), pageSuffix) || strings.HasPrefix(e.Name(), ".")
	}), nil
}

// Stamp is another text after any page has changed: each change makes a new file.
func (b Book) Stamp() (string, error) {
	entries, err := b.entries()
	var text []byte
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it was removed since the listing
		}
		text = fmt.Appendf(text, "%s %d %d", e.Name(), info.Size(), info.ModTime().UnixNano())
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			text = fmt.Appendf(text, " %d", stat.Ino)
		}
		text = append(text, '\n')
	}
	return string(text), err
}

func (b Book) read(uuid string) (resource.Page, error) {
	if uuid == "" || uuid != filepath.Base(uuid) || !filepath.IsLocal(uuid) {
		return resource.Page{}, refuse("", "%q is not the UUID of a GPU", uuid)
	}
	data, err := os.ReadFile(b.path(uuid))
	if errors.Is(err, fs.ErrNotExist) {
		return resource.Page{UUID: uuid}, nil
	}
	if err != nil {
		return resource.Page{}, fmt.Errorf("reading the host's ledger: %w", err)
	}
	var p page
	switch err := jsonv2.Unmarshal(data, &p); {
	case err != nil:
		return resource.Page{}, fmt.Errorf("the page %s of the host's ledger is damaged (%w). It holds the baseline of the GPU: repair it by hand or, once no project holds the GPU, remove it", b.path(uuid), err)
	case p.FormatVersion > formatVersion:
		return resource.Page{}, fmt.Errorf("the page %s of the host's ledger was written by a newer cosplay (format %d); use that one", b.path(uuid), p.FormatVersion)
	case p.UUID != uuid:
		return resource.Page{}, fmt.Errorf("the page %s of the host's ledger is about %q; another user moved it", b.path(uuid), p.UUID)
	}
	return p.Page, nil
}

// fate states which failures a change of a page must survive, and whether it may use the reserve.
type fate int

const (
	ourDeath  fate = 0         // slices: the driver forgets them with the power
	powerLoss fate = 1 << iota // baselines and settings: some outlive it
	growing                    // for an acquired GPU: the reserve is for releases
)

// change changes the page of a GPU, behind the host's lock.
func (b Book) change(uuid string, survives fate, do func(*resource.Page) error) error {
	if err := os.MkdirAll(b.folder(), 0o755); err != nil {
		return unwritable(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	lock, err := b.lock(ctx, pagesByte)
	if err != nil {
		return fmt.Errorf("the host's ledger: %w", err)
	}
	defer lock.Close()
	g, err := b.read(uuid)
	if err != nil {
		return err
	}
	b.sweep()
	if err := do(&g); err != nil {
		return err
	}
	if len(g.Holders) == 0 && len(g.Departed) == 0 && len(g.Changes) == 0 {
		return durable.Remove(b.path(uuid))
	}
	data, err := json.MarshalIndent(page{formatVersion, g}, "", "  ")
	if err != nil {
		return err
	}
	write := durable.ReplaceFile
	if survives&powerLoss != 0 {
		write = durable.WriteFile
	}
	err = write(b.path(uuid), append(data, '\n'), 0o644)
	if (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)) && survives&growing == 0 && os.Remove(b.reserve()) == nil {
		return write(b.path(uuid), append(data, '\n'), 0o644)
	}
	if err == nil && survives&growing != 0 {
		b.keepReserve()
	}
	return err
}

// swept are the folders of pages that this process has swept. What is left comes from processes that were killed.
var swept sync.Map

// sweep removes what killed processes have left of pages. The lock is held.
func (b Book) sweep() {
	if _, done := swept.LoadOrStore(b.folder(), true); !done {
		durable.SweepAll(b.folder())
	}
}

// reserveSize is room for a few pages, in bytes: on a full disk they are written one
// after the other, and each replaces the one before.
const reserveSize = 64 << 10

func (b Book) reserve() string { return filepath.Join(b.Dir, "ledger.reserve") }

// keepReserve keeps room on the disk for the pages of releases, if there is any.
func (b Book) keepReserve() {
	file, err := os.OpenFile(b.reserve(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	if _, err := file.Write(make([]byte, reserveSize)); err != nil {
		_ = os.Remove(b.reserve())
	}
	file.Close()
}

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

// Making records a slice before it is created.
//
// beside is the UUID of the slice in whose GPU instance it is created, "" for none.
func (e Entry) Making(s resource.Slice, beside string, look Look) error {
	page, found, err := e.afterReboot(look)
	if err != nil {
		return err
	}
	if err := maySplit(page, e.Holder.Lineage, s, beside); err != nil {
		return err
	}
	return e.slice(ourDeath|growing, resource.LiveSlice{Slice: s}, found)
}

// Made records a slice that was created.
func (e Entry) Made(s resource.LiveSlice) error { return e.slice(ourDeath, s, nil) }

func (e Entry) slice(survives fate, s resource.LiveSlice, found *Found) error {
	return e.change(survives, func(g *resource.Page) error {
		rebooted(g, found)
		s.Serial = e.Holder.Serial
		return NoteSlice(g, e.Holder.Lineage, s)
	})
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
