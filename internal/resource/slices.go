package resource

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// SliceMatch is the result of comparing a slice on record with a slice that exists.
type SliceMatch int

// The matches. A slice has no label, and drivers before 470 name it by its GPU and
// its instance ids: a slice that is destroyed and recreated then has the same name.
const (
	OtherSlice    SliceMatch = iota // it is another slice
	SameSlice                       // its name was given to it alone
	UnprovenSlice                   // all that is known agrees, but a recreated slice would look the same
)

// Match compares a slice on record with one that exists. It is the only place that
// decides whether two slices are one.
func (s LiveSlice) Match(live LiveSlice) SliceMatch {
	if s.GPU != "" && live.GPU != "" && s.GPU != live.GPU || s.Profile != live.Profile || s.Start != live.Start {
		return OtherSlice
	}
	if s.Boot != "" && live.Boot != "" && s.Boot != live.Boot {
		return OtherSlice // no slice outlives a boot
	}
	if s.UUID == "" || live.UUID == "" { // without a compute instance it has no name
		if live.UUID == "" && s.GPUInstance == live.GPUInstance {
			return SameSlice
		}
		return OtherSlice
	}
	return s.matchNames(live)
}

func (s LiveSlice) matchNames(live LiveSlice) SliceMatch {
	here, byIDs := s.idName(live.GPU)
	there, nowByIDs := live.idName(live.GPU)
	switch {
	case s.UUID == live.UUID && !byIDs:
		return SameSlice
	case s.UUID == live.UUID:
		return UnprovenSlice
	case byIDs != nowByIDs && here == there: // the driver was changed
		return UnprovenSlice
	}
	return OtherSlice
}

// idName is the name of a slice by its GPU and its instance ids, as it has it or would have it; and which of the two.
func (h Handle) idName(gpu string) (name string, has bool) {
	if h.NamedByIDs() {
		return h.UUID, true
	}
	return IDName(gpu, h.GPUInstance, h.ComputeInstance), false
}

const migPrefix = "MIG-"

// IDName is what drivers before 470 call a MIG slice. Later ones accept it, too.
func IDName(gpu string, gpuInstance, computeInstance int) string {
	return fmt.Sprintf("%s%s/%d/%d", migPrefix, gpu, gpuInstance, computeInstance)
}

// namedByIDs is the form of those names.
var namedByIDs = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^MIG-GPU-[0-9A-Za-z-]+/\d+/\d+$`) })

// NamedByIDs reports whether the driver names the slice by its instance ids.
func (h Handle) NamedByIDs() bool {
	return strings.Contains(h.UUID, "/") && namedByIDs().MatchString(h.UUID)
}

// IsCalled reports whether a name is a slice's, in either form.
func (s LiveSlice) IsCalled(name string) bool {
	return name != "" && s.UUID != "" && (name == s.UUID || name == IDName(s.GPU, s.GPUInstance, s.ComputeInstance))
}
