package ledger

import (
	"bytes"
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
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"golang.org/x/sys/unix"

	"cosplay/internal/durable"
	"cosplay/internal/prose"
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

// Writable returns an error unless this user may write the ledger.
func (b Book) Writable() error {
	if b.Dir == "" {
		return nil // nothing is written
	}
	if err := durable.CanWriteIn(b.folder()); err != nil {
		return prose.Advice{What: prose.Stop(err.Error()) + " It stores the baselines of the GPUs, so cosplay changes nothing without it",
			Fix: fmt.Sprintf("make %s writable", b.Dir), Cause: err}
	}
	return nil
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
		var text []byte
		err := b.eachFile(func(folder durable.Folder, name string) bool {
			var (
				page resource.Page
				err  error
			)
			text, page, err = b.readIn(folder, strings.TrimSuffix(name, pageSuffix), text)
			gone := err == nil && len(page.Holders) == 0 // it was released since the listing
			return gone || yield(page, err) && err == nil
		})
		if err != nil {
			yield(resource.Page{}, err)
		}
	}
}

const pageSuffix = ".json"

// eachFile calls do with the file of each page until do returns false.
func (b Book) eachFile(do func(folder durable.Folder, name string) bool) error {
	all, err := os.ReadDir(b.folder())
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(all) == 0 {
		return nil
	}
	var folder durable.Folder
	if err == nil {
		folder, err = durable.OpenFolder(b.folder())
	}
	if err != nil {
		return fmt.Errorf("reading the host's ledger: %w", err)
	}
	defer folder.Close()
	for _, e := range all {
		if name := e.Name(); strings.HasSuffix(name, pageSuffix) && name[0] != '.' && !do(folder, name) {
			break
		}
	}
	return nil
}

// Stamp is another text after any page has changed: each change makes a new file.
func (b Book) Stamp() (string, error) {
	var text []byte
	err := b.eachFile(func(folder durable.Folder, name string) bool {
		var now unix.Stat_t
		if folder.Stat(name, &now) == nil { // else it was removed since the listing
			text = fmt.Appendf(text, "%s %d %d %d\n", name, now.Size, now.Mtim.Nano(), now.Ino)
		}
		return true
	})
	return string(text), err
}

func (b Book) read(uuid string) (resource.Page, error) {
	_, page, err := b.readText(uuid)
	return page, err
}

// readText returns a page and what its file has.
func (b Book) readText(uuid string) (text []byte, _ resource.Page, err error) {
	if uuid == "" || uuid != filepath.Base(uuid) || !filepath.IsLocal(uuid) {
		return nil, resource.Page{}, refuse("", "%q is not the UUID of a GPU", uuid)
	}
	folder, err := durable.OpenFolder(b.folder())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, resource.Page{UUID: uuid}, nil
	}
	if err != nil {
		return nil, resource.Page{}, fmt.Errorf("reading the host's ledger: %w", err)
	}
	defer folder.Close()
	return b.readIn(folder, uuid, nil)
}

// readIn is readText in the folder of the ledger, with a buffer of the last page.
func (b Book) readIn(folder durable.Folder, uuid string, buffer []byte) (text []byte, _ resource.Page, err error) {
	text, err = folder.Read(uuid+pageSuffix, buffer)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, resource.Page{UUID: uuid}, nil
	}
	if err != nil {
		return nil, resource.Page{}, fmt.Errorf("reading the host's ledger: %w", err)
	}
	var p page
	switch err := jsonv2.Unmarshal(text, &p); {
	case err != nil:
		return nil, resource.Page{}, fmt.Errorf("the page %s of the host's ledger is damaged (%w). It holds the baseline of the GPU: repair it by hand or, once no project holds the GPU, remove it", b.path(uuid), err)
	case p.FormatVersion > formatVersion:
		return nil, resource.Page{}, fmt.Errorf("the page %s of the host's ledger was written by a newer cosplay (format %d); use that one", b.path(uuid), p.FormatVersion)
	case p.UUID != uuid:
		return nil, resource.Page{}, fmt.Errorf("the page %s of the host's ledger is about %q; another user moved it", b.path(uuid), p.UUID)
	}
	return text, p.Page, nil
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
	before, g, err := b.readText(uuid)
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
	data = append(data, '\n')
	if err != nil || survives&powerLoss == 0 && bytes.Equal(data, before) { // else the same content may not be on the disk yet
		return err
	}
	write := durable.ReplaceFile
	if survives&powerLoss != 0 {
		write = durable.WriteFile
	}
	err = write(b.path(uuid), data, 0o644)
	if (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)) && survives&growing == 0 && os.Remove(b.reserve()) == nil {
		return write(b.path(uuid), data, 0o644)
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
