package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/durable"
)

// maxLineages bounds the recorded lineages of one user. The least recently used are
// dropped: each cosplay run adds one.
const maxLineages = 4096

func (b Book) lineages() string { return filepath.Join(b.Dir, "lineages") }

// claim makes the first user who acquires a GPU under a lineage the owner of that lineage, and refuses it to all other
// users but root. Lineages are no secret, since every user can read the ledger, and a project trusts what the ledger
// records under its own lineage: another user must not be able to write there. The caller has locked the ledger.
func (e Entry) claim() error {
	who := e.Holder
	if who.UID == nil {
		return nil
	}
	owner, owned, err := e.Book.owner(who.Lineage)
	switch {
	case err != nil:
		return err
	case owned && owner != *who.UID && *who.UID != 0:
		return refuse("work as that user, or as root; to begin another project, remove the state "+who.State, "the lineage %s is that of a project of uid %d, and %s is another user", who.Lineage, owner, who.User)
	case owned && owner != *who.UID:
		return nil
	}
	path := filepath.Join(e.Book.lineages(), strconv.Itoa(*who.UID))
	all, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the host's ledger: %w", err)
	}
	line := []byte(who.Lineage + "\n")
	lines := slices.DeleteFunc(bytes.SplitAfter(all, []byte("\n")), func(l []byte) bool { return bytes.Equal(l, line) })
	kept := bytes.Join(lines[max(0, len(lines)-maxLineages):], nil)
	if err := os.MkdirAll(e.Book.lineages(), 0o700); err != nil {
		return unwritable(err)
	}
	durable.Sweep(path)
	return durable.WriteFile(path, append(kept, line...), 0o600)
}

// owner is the user to whom a lineage belongs. Earlier versions recorded none: then it is
// the user who holds a GPU under the lineage.
func (b Book) owner(lineage string) (uid int, owned bool, err error) {
	users, err := os.ReadDir(b.lineages())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, false, fmt.Errorf("reading the host's ledger: %w", err)
	}
	for _, u := range users {
		uid, err := strconv.Atoi(u.Name())
		if err != nil {
			continue // a temporary file
		}
		all, err := os.ReadFile(filepath.Join(b.lineages(), u.Name()))
		if err != nil {
			return 0, false, fmt.Errorf("reading the host's ledger: %w", err)
		}
		if slices.Contains(strings.Split(string(all), "\n"), lineage) {
			return uid, true, nil
		}
	}
	pages, err := b.Read()
	for _, page := range pages {
		if h, holds := page.Holder(lineage); holds && h.UID != nil {
			return *h.UID, true, err
		}
	}
	return 0, false, err
}
