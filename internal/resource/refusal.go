package resource

import "slices"

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

// AnyRanOut reports whether a program ended because its memory was not enough.
func (r Report) AnyRanOut() bool { return slices.ContainsFunc(r.Programs, ProgramReport.RanOut) }
