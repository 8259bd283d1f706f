package diff

import "cosplay/internal/resource"

// UnprovenSlice is a slice of a session that matches all that is on record, as a recreated slice would: the driver
// names slices by their instance ids.
type UnprovenSlice struct {
	Session resource.Address `json:"session"`
	Slice   resource.Slice   `json:"slice"`
	UUID    string           `json:"uuid"`

	SameBoot bool `json:"same_boot"` // the host has not been rebooted since, as far as is known
}

// unprovenSlices are the slices that count as cosplay's without proof.
func unprovenSlices(prior resource.Prior, live resource.Live) []UnprovenSlice {
	var all []UnprovenSlice
	for i := range prior.Sessions {
		s := &prior.Sessions[i]
		if s.Handle == nil || !s.Handle.NamedByIDs() {
			continue
		}
		own, there := OwnSlice(*s, live)
		if there && (resource.LiveSlice{Slice: s.Slice, Handle: *s.Handle}).Match(own) == resource.UnprovenSlice {
			all = append(all, UnprovenSlice{Session: s.Address, Slice: own.Slice, UUID: own.UUID, SameBoot: s.Handle.Boot == own.Boot})
		}
	}
	return all
}
