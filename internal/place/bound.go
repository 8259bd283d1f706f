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
	best, _ := cheapest(fresh, demand)
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

// cheapest returns the weights that maximize the value of the demand while no load is worth more than 1, and how often
// each load would be used if GPUs could be divided.
func cheapest(loads []load, demand []int) (w weights, uses []float64) {
	p := newProgram(demand, nil)
	for _, l := range loads {
		p.columns = append(p.columns, column{cost: 1}.holding(l, demand))
	}
	p.solve()
	uses, _ = p.uses()
	return p.prices, uses
}
