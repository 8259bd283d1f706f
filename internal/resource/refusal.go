package resource

import (
	"regexp"
	"slices"
	"strconv"

	"cosplay/internal/pattern"
)

// Explain adds to the use of a session what the report of its programs shows of their requests that failed.
func (r Report) Explain(u Use) Use {
	met, failed := false, false
	for _, p := range r.Programs {
		if p.OutOfMemory == 0 {
			continue
		}
		met = true
		if p.RanOut() {
			u.NeedMiB = max(u.NeedMiB, needMiB(p.Refusal))
		}
		failed = failed || p.Failure != "" // also an error that the program raised instead
	}
	u.WentOn = met && !failed && r.Earlier == 0
	return u
}

// AnyRanOut reports whether a program ended because its memory was not enough.
func (r Report) AnyRanOut() bool { return slices.ContainsFunc(r.Programs, ProgramReport.RanOut) }

var (
	asked    = pattern.Of(`Tried to allocate ([0-9.]+) (bytes|KiB|MiB|GiB)`)
	inUse    = pattern.Of(`has ([0-9.]+) (bytes|KiB|MiB|GiB) memory in use`)
	capacity = pattern.Of(`([0-9.]+) (bytes|KiB|MiB|GiB) total capacity`) // before PyTorch 2.1
	free     = pattern.Of(`([0-9.]+) (bytes|KiB|MiB|GiB) free`)
)

// needMiB is the memory that would have been needed for a request, by the text of PyTorch's error; 0 if it does not say.
// The text has two digits of each number, and the need is at least what they mean.
func needMiB(refusal string) int {
	least := func(which func() *regexp.Regexp, rounding float64) (mib float64) {
		found := which().FindStringSubmatch(refusal)
		if found == nil {
			return 0
		}
		unit := map[string]float64{"bytes": 1 << 20, "KiB": 1 << 10, "MiB": 1, "GiB": 1.0 / (1 << 10)}[found[2]]
		number, _ := strconv.ParseFloat(found[1], 64)
		return max(0, number+rounding) / unit
	}
	const digits = 0.005
	request, used := least(asked, -digits), least(inUse, -digits)
	if used == 0 {
		used = least(capacity, -digits) - least(free, digits)
	}
	if request == 0 || used <= 0 {
		return 0
	}
	return int(request + used)
}
