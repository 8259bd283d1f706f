package ledger

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// lacks are the calls that the driver refused when cosplay wanted to change a GPU. They outlive the holders, so that
// no plan tries them again; another boot or another driver may offer them.
type lacks struct {
	FormatVersion int                    `json:"format_version"`
	BootID        string                 `json:"boot_id"`
	Driver        string                 `json:"driver"`
	GivenUp       []resource.Degradation `json:"given_up"`
}

// LacksPath is the file about a GPU. Removing it makes cosplay try the calls again.
func (b Book) LacksPath(uuid string) string { return filepath.Join(b.folder(), uuid+".lacks") }

// GivenUp lists the features that cosplay does without on a GPU, in a boot with a
// driver. A file that cannot be read counts for nothing: the calls are tried again.
func (b Book) GivenUp(uuid, boot, driver string) []resource.Degradation {
	var known lacks
	if b.Dir == "" {
		return nil
	}
	data, err := os.ReadFile(b.LacksPath(uuid))
	if err != nil || jsonv2.Unmarshal(data, &known) != nil || known.FormatVersion != formatVersion || known.BootID != boot || otherDriver(known.Driver, driver) {
		return nil
	}
	return known.GivenUp
}

// RecordGivenUp replaces what GivenUp lists.
func (b Book) RecordGivenUp(uuid, boot, driver string, all []resource.Degradation) error {
	data, err := json.MarshalIndent(lacks{formatVersion, boot, driver, all}, "", "  ")
	if err == nil {
		err = os.MkdirAll(b.folder(), 0o755)
	}
	if err != nil {
		return err
	}
	return durable.WriteFile(b.LacksPath(uuid), append(data, '\n'), 0o644)
}

func otherDriver(a, b string) bool {
	return a != b && a != resource.UnknownDriver && b != resource.UnknownDriver
}

// GiveUp records a feature that the driver does not offer on the holder's GPU, and reports whether that is new. tried
// are the settings of an attempt that changed nothing; before is the page as it was before the attempt. While a
// project restores the GPU, nothing is recorded.
func (e Entry) GiveUp(d resource.Degradation, driver string, tried resource.Settings, before resource.Page) (news bool, err error) {
	err = e.change(powerLoss, func(g *resource.Page) error {
		if _, holds := g.Holder(e.Holder.Lineage); g.Leaving != "" || !holds {
			return nil
		}
		takeBack(g, tried, before)
		known := e.Book.GivenUp(e.GPU, e.BootID, driver)
		if slices.ContainsFunc(known, func(o resource.Degradation) bool { return o.Feature == d.Feature }) {
			return nil
		}
		news = true
		return e.Book.RecordGivenUp(e.GPU, e.BootID, driver, append(known, d))
	})
	return news && err == nil, err
}
