package place

import (
	"math"
	"slices"
	"strings"

	"cosplay/internal/fit"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// A class is a group of sessions that are interchangeable for placement.
type class struct {
	id       int
	hosts    []string // that it may have
	gpu      string   // UUID of the GPU that the configuration names, or ""
	target   resource.Target
	options  resource.FitOptions
	sharing  resource.Sharing
	over     bool    // they may share a GPU whose memory is less than the sum of the targets
	fraction float64 // of a GPU that the configuration states instead of a target, or 0
	squeeze  squeeze // how little each makes do with
	devices  int     // of each session
	single   bool    // each is one device of a session with several
	model    string  // of the GPUs of sessions with several devices, "" for one
	slice    string  // the profile that the configuration names, or ""
	slot     int     // and where it starts, or -1
	waiting  []int   // requests without a slice, by address
	accepted int     // how many of them fit; the rest are refused

	refused prose.Advice // why those whose slot is named do not fit

	alone      resource.Fit // the fit of one session if it had all GPUs to itself
	aloneError int64        // the error of that fit; impossible if no GPU can hold the session
}

// classKey has everything in which sessions of one class are equal.
type classKey struct {
	want     resource.Request // without MaxError
	hosts    string
	name     string
	envelope resource.Envelope
	powerW   int
	maxError float64
	limited  bool // whether there is a MaxError
}

func keyOf(r Request) classKey {
	k := classKey{want: r.Want, hosts: strings.Join(r.Hosts, "\n"), name: r.Target.Name, envelope: r.Target.Envelope(), powerW: r.Target.PowerW}
	if r.Want.Fit.MaxError != nil {
		k.maxError, k.limited = *r.Want.Fit.MaxError, true
	}
	k.want.Fit.MaxError = nil
	return k
}

// errors returns the errors of a fit: that of the preferred figure, then that of the other one. With "balanced", the
// second is the larger of the two.
func (c *class) errors(f resource.Fit) (first, second int64) {
	fp32, bandwidth := f.Error(resource.PreferFP32), f.Error(resource.PreferBandwidth)
	return fit.Weigh(c.options.Prefer, counted(fp32), counted(bandwidth), counted((fp32+bandwidth)/2))
}

// counted converts an error to an integer, so that a sum does not depend on the order of its terms. An infinite or
// undefined error, for example of a rate of zero, becomes impossible.
func counted(e float64) int64 {
	if !(e < impossible/one) {
		return impossible
	}
	return int64(math.Round(e * one))
}

// cost returns the cost of one session with these errors in a slice of this size.
func (c *class) cost(first, second, size int64) cost {
	paid := cost{sumSize: size, worstError: first, sumError: first, sumSecond: second}
	tolerance := counted(c.options.Tolerance)
	if first > tolerance || tolerance == 0 {
		paid[worstExcess], paid[sumExcess], paid[sumBeside] = first-tolerance, first-tolerance, second
	}
	return paid
}

// limit returns the largest error that sharing may cause for a session: its tolerance plus the slack.
func (c *class) limit(slack int64) int64 {
	return min(c.maxError(), c.aloneError+counted(c.options.Tolerance)+slack)
}

// maxError returns the hard limit of the fit block.
func (c *class) maxError() int64 {
	if c.options.MaxError == nil {
		return impossible - 1
	}
	return min(counted(*c.options.MaxError), impossible-1)
}

// acceptsError reports whether the fit block states which error a session accepts.
func (c *class) acceptsError() bool { return c.options.MaxError != nil }

// shares reports whether sessions of the class share a slice, a GPU instance or a whole GPU with others.
func (c *class) shares() bool { return c.sharing.Shares() }

// mayHave reports whether sessions of the class may have a slice, or a whole GPU.
func (c *class) mayHave(whole bool) bool {
	if c.devices > 1 || c.single || c.over { // a CUDA program enumerates one MIG device
		return whole
	}
	if c.slice != "" {
		return !whole
	}
	switch c.sharing {
	case resource.SharingMIG, resource.SharingCompute:
		return !whole
	case resource.SharingExclusive:
		return whole
	case resource.SharingAuto, resource.SharingTime, resource.SharingMPS:
	}
	return true
}

// mayBeOn reports whether sessions of the class may be on a host.
func (c *class) mayBeOn(host string) bool {
	return slices.Contains(c.hosts, host)
}

// place are the hosts in words.
func (c *class) place() string { return prose.Or(c.hosts) }

// mayUse reports whether sessions of the class may use a GPU at all.
func (c *class) mayUse(card *card) bool {
	return c.mayBeOn(card.Host) && (c.gpu == "" || c.gpu == card.UUID) && (c.model == "" || c.model == card.Model.Name) &&
		(c.sharing != resource.SharingMPS || card.ForeignMPS == nil)
}
