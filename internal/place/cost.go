package place

import "cmp"

// cost is what a choice costs: the figures in their order of importance.
type cost [figures]int64

const (
	gpusUsed    = iota // GPUs on which none of ours sat before
	worstExcess        // the largest error beyond a session's tolerance
	sumExcess          // all errors beyond tolerances
	sumBeside          // of sessions beyond their tolerance, the errors of the figures not preferred
	sumSize            // shares of GPUs taken, wholeSize being a GPU
	worstError         // the largest error
	sumError           // all errors
	sumSecond          // all errors of the figures not preferred
	sumRank            // GPUs in their order
	figures
)

// plus adds up, and of the worst takes the worse.
func (a cost) plus(b cost) cost {
	for i := range a {
		if i == worstExcess || i == worstError {
			a[i] = max(a[i], b[i])
		} else {
			a[i] += b[i]
		}
	}
	return a
}

func (a cost) compare(b cost) int {
	for i := range a {
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// nowhereDearer reports whether no figure of a is above that of b: then
// whatever is added to both, a stays the better one.
func (a cost) nowhereDearer(b cost) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}

// atMost makes every figure the lesser of the two.
func (a cost) atMost(b cost) cost {
	for i := range a {
		a[i] = min(a[i], b[i])
	}
	return a
}
