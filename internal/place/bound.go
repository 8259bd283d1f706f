package place

import (
	"cmp"
	"math"
	"slices"
)

const tiny = 1e-9

// weights assign a value to a session of each class so that no new GPU holds more than 1. Sessions that are worth
// more than n then need more than n GPUs.
type weights []float64

// of returns the value of a load, counting only sessions for which there is demand.
func (w weights) of(l load, demand []int) float64 {
	sum := 0.0
	for i, n := range l {
		sum += w[i] * float64(min(int(n), demand[i]))
	}
	return sum
}

// weigh returns the weights to try: first those with the best bound, then those of each class alone. If the list of
// loads is incomplete, there is no bound, and the weights are the share of a GPU that each session takes.
func (c *cover) weigh(demand []int) {
	var fresh []load
	for k, loads := range c.full {
		if c.kinds[k].price == 1 {
			fresh = append(fresh, loads...)
		}
	}
	shares := make(weights, len(demand))
	for i := range demand {
		if most := c.mostOf(i); most > 0 {
			shares[i] = 1 / float64(most)
		}
	}
	c.byWeight = make([]int, len(demand))
	for i := range c.byWeight {
		c.byWeight[i] = i
	}
	slices.SortStableFunc(c.byWeight, func(i, j int) int { return cmp.Compare(shares[j], shares[i]) })
	if !c.complete {
		c.weights = []weights{shares}
		return
	}
	best, _ := dual(fresh, demand)
	for i := range demand {
		if !slices.ContainsFunc(fresh, func(l load) bool { return l[i] > 0 }) {
			best[i] = shares[i] // only GPUs that are in use can hold it
		}
	}
	c.weights = append(c.weights, best.atMostOne(fresh, demand))
	for i := range demand {
		alone := make(weights, len(demand))
		alone[i] = shares[i]
		c.weights = append(c.weights, alone.atMostOne(fresh, demand))
	}
	for _, w := range c.weights {
		holds := make([]float64, len(c.kinds))
		for k, loads := range c.full {
			holds[k] = w.heaviest(loads, demand)
		}
		c.holds = append(c.holds, holds)
	}
}

// mostOf returns how many sessions of a class fit on one GPU.
func (c *cover) mostOf(class int) int {
	most := 0
	for _, k := range c.kinds {
		l := make(load, len(c.fleet.classes))
		c.fill(k, l, class, maxLoad)
		most = max(most, int(l[class]))
	}
	return most
}

// atMostOne scales the weights so that no load is worth more than 1.
func (w weights) atMostOne(loads []load, demand []int) weights {
	heaviest := w.heaviest(loads, demand)
	for i := range w {
		if heaviest > 0 {
			w[i] /= heaviest
		}
	}
	return w
}

func (w weights) heaviest(loads []load, demand []int) float64 {
	most := 0.0
	for _, l := range loads {
		most = max(most, w.of(l, demand))
	}
	return most
}

// least returns a lower bound on the new GPUs that the remaining sessions need, and whether that many GPUs are free.
func (c *cover) least(rest, free []int) (gpus int64, possible bool) {
	spare := int64(0)
	for k := range c.kinds {
		spare += int64(free[k] * c.kinds[k].price)
	}
	if !c.complete {
		return 0, true
	}
	for j, w := range c.weights {
		open := 0.0
		for i, n := range rest {
			open += w[i] * float64(n)
		}
		for k := range c.kinds {
			if c.kinds[k].price == 0 {
				open -= float64(free[k]) * c.holds[j][k]
			}
		}
		gpus = max(gpus, int64(math.Ceil(open-tiny)))
	}
	return gpus, gpus <= spare
}

// dual returns the weights that maximize the value of the demand while no load is worth more than 1. It also returns
// how often each load would be used if GPUs could be divided. It is the simplex method.
func dual(loads []load, demand []int) (w weights, uses []float64) {
	d := newDictionary(loads, demand)
	gain := d.table[len(loads)]
	for column := d.improving(); column >= 0; column = d.improving() {
		if row := d.tightest(column); row >= 0 {
			d.pivot(row, column)
		} else {
			gain[column] = 0 // only rounding leads here: every class is limited
		}
	}
	w, uses = make(weights, len(demand)), make([]float64, len(loads))
	for row, name := range d.inside {
		if name < len(demand) {
			w[name] = d.value(row)
		}
	}
	for column, name := range d.outside {
		if name >= len(demand) {
			uses[name-len(demand)] = max(0, -gain[column])
		}
	}
	return w, uses
}

// A dictionary of the simplex method expresses the inside (basic) variables by the outside (nonbasic) variables,
// which are zero: inside[r] = value(r) - sum of table[r][c] * outside[c]. The variables are the weights, followed by
// the slack of each load, its distance to 1.
type dictionary struct {
	inside, outside []int
	table           [][]float64 // the value is behind the factors; the last row has the gain by outside variable
}

func newDictionary(loads []load, demand []int) *dictionary {
	d := &dictionary{}
	gain := make([]float64, len(demand)+1)
	for c := range demand {
		d.outside = append(d.outside, c)
	}
	for r, l := range loads {
		d.inside = append(d.inside, len(demand)+r)
		row := make([]float64, len(demand)+1)
		row[len(demand)] = 1
		for c, n := range l {
			row[c] = float64(n)
			if n > 0 {
				gain[c] = float64(demand[c]) // a class that no load limits gets no weight
			}
		}
		d.table = append(d.table, row)
	}
	d.table = append(d.table, gain)
	return d
}

func (d *dictionary) value(row int) float64 { return d.table[row][len(d.outside)] }

// improving returns the column of the first variable that improves the solution, or -1. Taking the first (Bland's
// rule) prevents cycles.
func (d *dictionary) improving() int {
	best := -1
	for c, name := range d.outside {
		if d.table[len(d.inside)][c] > tiny && (best < 0 || name < d.outside[best]) {
			best = c
		}
	}
	return best
}

// tightest returns the row that limits a column most.
func (d *dictionary) tightest(column int) int {
	best, least := -1, math.Inf(1)
	for r, name := range d.inside {
		if d.table[r][column] <= tiny {
			continue
		}
		limit := d.value(r) / d.table[r][column]
		if limit < least-tiny || limit < least+tiny && name < d.inside[best] {
			best, least = r, limit
		}
	}
	return best
}

// pivot exchanges an inside variable with an outside one.
func (d *dictionary) pivot(row, column int) {
	solved := d.table[row]
	p := solved[column]
	solved[column] = 1
	for c := range solved {
		solved[c] /= p
	}
	for r, line := range d.table {
		if r == row {
			continue
		}
		factor := line[column]
		line[column] = 0
		for c := range line {
			line[c] -= factor * solved[c]
		}
	}
	d.inside[row], d.outside[column] = d.outside[column], d.inside[row]
}
