package render

import (
	"cmp"
	"slices"
	"strings"

	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// TopOrder is by what the sessions of a live table are sorted.
type TopOrder string

// The orders, as --sort has them.
const (
	BySession     TopOrder = "session"
	ByMemory      TopOrder = "memory"
	ByPeak        TopOrder = "peak"
	ByUtilization TopOrder = "utilization"
	ByProcesses   TopOrder = "processes"
	ByState       TopOrder = "state"
)

// TopOrders are all of them, in the order in which a key chooses them.
var TopOrders = []TopOrder{BySession, ByMemory, ByPeak, ByUtilization, ByProcesses, ByState}

// topRow is a session of the table.
type topRow struct {
	*resource.PriorSession
	address  resource.Address // of the session, beside what else is read for each row
	programs []resource.Process
	state    string
}

// rows are the sessions that the table shows, sorted.
func (v TopView) rows() []topRow {
	all := v.all
	if v.Filter != "" || v.Order != BySession || v.Reverse {
		all = slices.Clone(all)
	}
	if v.Filter != "" {
		all = slices.DeleteFunc(all, func(r topRow) bool { return !v.matches(r) })
	}
	if v.Order != BySession {
		slices.SortStableFunc(all, v.compare)
	}
	if v.Reverse {
		slices.Reverse(all)
	}
	return all
}

// compare is the order of two sessions.
func (v TopView) compare(a, b topRow) int {
	switch v.Order {
	case BySession: // as the state has them
	case ByMemory:
		return cmp.Compare(v.Used[b.address].NowBytes, v.Used[a.address].NowBytes)
	case ByPeak:
		return cmp.Compare(v.Used[b.address].PeakMiB, v.Used[a.address].PeakMiB)
	case ByUtilization: // what is unknown comes last
		return cmp.Compare(orUnknown(v.busy(b)), orUnknown(v.busy(a)))
	case ByProcesses:
		return cmp.Compare(len(b.programs), len(a.programs))
	case ByState: // what does not run comes first
		return cmp.Or(cmp.Compare(rank(a.state), rank(b.state)), strings.Compare(a.state, b.state))
	}
	return 0
}

// busy is the utilization of a session's GPU, in percent; nil where the driver does not say it.
func (v TopView) busy(r topRow) *int {
	if percent, known := v.Busy[r.address]; known {
		return &percent
	}
	return nil
}

func (v TopView) matches(r topRow) bool {
	cells := []string{r.Address.Short(), r.Target.ShortName(), words.GPUs(v.Live, r.Session), r.PlaceWords(), r.Slice.Host, r.state}
	return slices.ContainsFunc(cells, func(cell string) bool { return strings.Contains(strings.ToLower(cell), strings.ToLower(v.Filter)) })
}

func orUnknown(percent *int) int {
	if percent == nil {
		return resource.ActivityUnknown
	}
	return *percent
}

func rank(state string) int { return either(state == resource.Running, 1, 0) }

// TopSessions are the sessions that a live table shows, from its top.
func TopSessions(v TopView) []resource.Address {
	return each(v.rows(), func(r topRow) resource.Address { return r.address })
}
