package resource

import "slices"

// Use is what the programs of a session used of its GPU's memory so far.
type Use struct {
	PeakMiB     int `json:"peak_mib"`
	OutOfMemory int `json:"out_of_memory"`      // how often they requested more than was free
	Overcome    int `json:"overcome,omitempty"` // how often of these a retry succeeded after they had freed memory

	WentOn  bool `json:"went_on,omitempty"`  // no program ended because of the requests that failed: it asked for less
	NeedMiB int  `json:"need_mib,omitempty"` // what was in use at such a request, and the request; 0 if unknown

	CacheMiB int `json:"-"` // of the peak, what PyTorch may have kept without a tensor in it, and returns under pressure

	// Of sessions that exist:
	NowBytes int64 `json:"-"` // of programs that run
	PeaksMiB []int `json:"-"` // of each device
}

// IsZero reports whether the programs used no memory so far. What a trial of cosplay verify has now is not the programs'.
func (u Use) IsZero() bool { return u.PeakMiB == 0 && u.OutOfMemory == 0 }

// Equals reports whether another use has the same counts, whatever reports have added to it.
func (u Use) Equals(o Use) bool {
	return u.NowBytes == o.NowBytes && u.PeakMiB == o.PeakMiB && u.OutOfMemory == o.OutOfMemory && u.Overcome == o.Overcome && slices.Equal(u.PeaksMiB, o.PeaksMiB)
}

// RanOut is how often the programs requested more than was free, no retry succeeded, and they did not go on with less.
func (u Use) RanOut() int {
	if u.WentOn {
		return 0
	}
	return u.OutOfMemory - u.Overcome
}

// Explain adds to the use of a session what the report of its programs shows of their requests that failed.
func (r Report) Explain(u Use) Use {
	met, failed := false, false
	for _, p := range r.Programs {
		if p.OutOfMemory == 0 {
			continue
		}
		met = true
		if p.RanOut() && p.Error != nil {
			u.NeedMiB = max(u.NeedMiB, int((p.Error.Used+p.Error.Requested)>>20))
		}
		failed = failed || p.Failure != "" // also an error that the program raised instead
	}
	u.WentOn = met && !failed && r.Earlier == 0
	return u
}

// Discount adds to the use of a session what of its peak may be PyTorch's cache: all of it, if the report has left out
// programs.
func (r Report) Discount(u Use) Use {
	cache := 0
	for _, p := range r.Programs {
		for _, d := range p.Devices {
			cache += d.Reserved - d.Allocated
		}
	}
	if u.CacheMiB = max(0, min(cache>>20, u.PeakMiB)); r.Earlier > 0 {
		u.CacheMiB = u.PeakMiB
	}
	return u
}

// AnyRanOut reports whether a program ended because its memory was not enough.
func (r Report) AnyRanOut() bool { return slices.ContainsFunc(r.Programs, ProgramReport.RanOut) }
