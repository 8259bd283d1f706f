package place

import "math"

// A program is a linear program: how often to use each column so that every demand is met and no supply is exceeded, at
// the lowest sum of costs. Columns may be added between solutions. It is the revised simplex method.
type program struct {
	limits  []float64   // the demands, then the supplies
	demands int         // how many limits are demands
	inverse [][]float64 // of the basis
	values  []float64   // of the variables in the basis, by row
	basis   []int       // the column in each row, or the row's own variable, as -1-row
	prices  []float64   // of the limits: what one more costs
	columns []column
}

// A column has the rows of its limits with its share in each.
type column struct {
	rows   []int
	shares []float64
	cost   float64
}

// holding returns a column with the sessions of a load, as far as they are demanded.
func (c column) holding(l load, demand []int) column {
	for class, n := range l {
		if n := min(int(n), demand[class]); n > 0 {
			c.rows, c.shares = append(c.rows, class), append(c.shares, float64(n))
		}
	}
	return c
}

const (
	maxPivots = 20_000
	missing   = 1000.0 // the cost of an unmet demand
	unmet     = 1e-4   // what a demand may lack, as demands are a little higher than they were stated
)

// newProgram begins with no demand met. Demands differ a little, so that ties do not make it cycle.
func newProgram(demand, supply []int) *program {
	p := &program{demands: len(demand)}
	for i, n := range demand {
		p.limits, p.prices = append(p.limits, float64(n)+1e-7*float64(i%97)), append(p.prices, missing)
	}
	for _, n := range supply {
		p.limits, p.prices = append(p.limits, float64(n)), append(p.prices, 0)
	}
	for i, n := range p.limits {
		row := make([]float64, len(p.limits))
		row[i] = 1
		p.inverse, p.values, p.basis = append(p.inverse, row), append(p.values, n), append(p.basis, -1-i)
	}
	return p
}

// gain is what a unit of a column saves at the present prices.
func (p *program) gain(c column) float64 {
	sum := -c.cost
	for i, row := range c.rows {
		sum += p.prices[row] * c.shares[i]
	}
	return sum
}

// own is the column of a row's own variable: more of a demand than needed, or a supply that is left.
func (p *program) own(row int) column {
	if row < p.demands {
		return column{[]int{row}, []float64{-1}, 0}
	}
	return column{[]int{row}, []float64{1}, 0}
}

// solve finds the cheapest uses of the columns. It returns false if it stops before.
func (p *program) solve() bool {
	for range maxPivots {
		enters, most := 0, tiny
		for i, c := range p.columns {
			if gain := p.gain(c); gain > most {
				enters, most = i+1, gain
			}
		}
		for row := range p.limits {
			if gain := p.gain(p.own(row)); gain > most {
				enters, most = -1-row, gain
			}
		}
		if enters == 0 {
			return true
		}
		if !p.enter(enters, most) {
			return false
		}
	}
	return false
}

// enter brings a variable into the basis: a column by its number, from 1, or a row's own variable as -1-row.
func (p *program) enter(variable int, gain float64) bool {
	var c column
	if variable > 0 {
		c = p.columns[variable-1]
		variable--
	} else {
		c = p.own(-1 - variable)
		variable -= len(p.limits) // distinguishes it from the variable for an unmet demand
	}
	direction, leaves, least := make([]float64, len(p.limits)), -1, math.Inf(1)
	for r := range direction {
		for i, row := range c.rows {
			direction[r] += p.inverse[r][row] * c.shares[i]
		}
		if direction[r] <= tiny {
			continue
		}
		if limit := p.values[r] / direction[r]; limit < least-tiny || limit < least+tiny && direction[r] > direction[leaves] {
			leaves, least = r, limit
		}
	}
	if leaves < 0 {
		return false
	}
	pivot := p.inverse[leaves]
	for i := range pivot {
		pivot[i] /= direction[leaves]
		p.prices[i] -= gain * pivot[i]
	}
	p.values[leaves] /= direction[leaves]
	for r, factor := range direction {
		if r == leaves || factor == 0 {
			continue
		}
		for i := range pivot {
			p.inverse[r][i] -= factor * pivot[i]
		}
		p.values[r] = max(0, p.values[r]-factor*p.values[leaves])
	}
	p.basis[leaves] = variable
	return true
}

// uses returns how often each column is used, and whether all demands are met.
func (p *program) uses() (uses []float64, met bool) {
	uses, met = make([]float64, len(p.columns)), true
	for r, variable := range p.basis {
		switch {
		case variable >= 0:
			uses[variable] = p.values[r]
		case -1-variable < p.demands:
			met = met && p.values[r] < unmet
		}
	}
	return uses, met
}
