package place

import "cmp"

// cost is the cost of a choice: a vector of figures, compared in order of importance.
type cost [figures]int64

const (
	gpusUsed    = iota // GPUs that had no session of the project before
	worstExcess        // the largest error beyond a session's tolerance
	sumExcess          // sum of the errors beyond tolerances
	sumBeside          // errors of the other figures, of sessions beyond their tolerance
	sumSize            // shares of GPUs, with wholeSize for one GPU
	worstError         // the largest error
	sumError           // sum of all errors
	sumSecond          // sum of the errors of all figures that are not preferred
	sumRank            // prefers GPUs with a lower index
	figures
)

// plus adds two costs; of the maxima it takes the larger.
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

// times returns the cost of n choices that cost the same.
func (a cost) times(n int) cost {
	if n == 0 {
		return cost{}
	}
	for i := range a {
		if i != worstExcess && i != worstError {
			a[i] *= int64(n)
		}
	}
	return a
}

// compare drops the last bits of errors, since equal sums of rounded terms differ there.
func (a cost) compare(b cost) int {
	for i := range a {
		x, y := a[i], b[i]
		if i != gpusUsed && i != sumSize && i != sumRank {
			x, y = x>>noise, y>>noise
		}
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return 0
}

const noise = 6 // bits, of errors in units of 1e-9

// atMost takes the smaller value of each figure.
func (a cost) atMost(b cost) cost {
	for i := range a {
		a[i] = min(a[i], b[i])
	}
	return a
}
