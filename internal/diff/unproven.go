package diff

import "cosplay/internal/resource"

// UnprovenLock is a clock lock that cosplay set and that nothing refutes or
// proves: NVML has no getter for a lock, and the clock of an idle GPU proves none.
type UnprovenLock struct {
	Host string `json:"host"`
	GPU  string `json:"gpu"` // UUID
	MHz  int    `json:"mhz"`
}

// unprovenLocks are the locks that cannot be proven while their GPU is idle, or throttled by power or heat. A lock
// whose clock cannot be read is never proven.
func unprovenLocks(prior resource.Prior, live resource.Live) []UnprovenLock {
	var all []UnprovenLock
	for _, held := range prior.GPUs {
		mhz := held.Applied.Value(resource.SMClock)
		g, there := live.GPU(held.Host, held.UUID)
		if mhz == 0 || held.ClockUnsure || !there || !g.LowClockReason || g.Without(resource.ReadingClock) ||
			lockLost(held, g, sameBoot(prior, live, held.Host)) {
			continue
		}
		all = append(all, UnprovenLock{Host: held.Host, GPU: held.UUID, MHz: mhz})
	}
	return all
}

// sendLocksAgain adds the clock lock to the changes of each GPU on which a slice changes: the lock may have been
// lifted without a sign. A change of a body alone touches no GPU, and needs no root.
func sendLocksAgain(gpus []GPUChange, sessions []SessionChange, desired resource.Desired, prior resource.Prior, o Options) {
	on := gpusOf(sessions, func(c SessionChange) bool { return !o.Left[c.Address] && c.Slice != "" && c.Slice != Keep })
	if len(on) == 0 {
		return
	}
	wanted := map[resource.GPUKey]int{}
	for _, d := range desired.GPUs {
		wanted[d.Key()] = d.Settings.Value(resource.SMClock)
	}
	for i := range gpus {
		c := &gpus[i]
		held, ours := prior.GPU(c.Host, c.UUID)
		if c.GiveBack || !ours || c.Settings.Has(resource.SMClock) || !on[c.Key()] {
			continue
		}
		if mhz := wanted[c.Key()]; mhz != 0 {
			c.Action, c.Settings = Update, c.Settings.With(resource.SMClock, mhz)
			c.Fields = append(c.Fields, Field{Kind: FieldSMClock, From: clockNow(held, c.LockLost), To: Clock{MHz: mhz},
				Reason: resource.Reason{Kind: resource.SentAgain}})
		}
	}
}

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
