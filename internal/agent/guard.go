//go:build cgo && linux

package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/ledger"
	"cosplay/internal/pattern"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// guard checks the requests of a user to an agent that runs as root. It trusts nothing
// that a request states about the user, about earlier changes or about the GPU: it asks the kernel, the ledger and the
// driver.
type guard struct {
	uid    int
	user   string
	policy string // the file of what the admin permits
}

// Forms of texts that users put into the ledger, which others read, on terminals too.
var (
	lineageForm = pattern.Of(`^[0-9A-Za-z-]{1,64}$`)
	pathForm    = pattern.Of(`^/[^\p{C}]*$`)
	nameForm    = pattern.Of(`^[[:graph:]]{0,64}$`)
)

// Bounds of these texts.
const (
	maxPath   = 1024 // bytes
	maxOthers = 256
	maxSerial = 1 << 31
)

// admit checks whether the user may make a request, and returns it with the user's true name. more is how many slices
// of the GPU the user gets by the same request, which the ledger does not list yet.
func (g *guard) admit(l *nvmlLibrary, r request, more int) (request, error) {
	if !lineageForm().MatchString(r.Holder.Lineage) || !pathForm().MatchString(r.Holder.State) || len(r.Holder.State) > maxPath {
		return r, errors.New("the request does not say for which project it is")
	}
	if !nameForm().MatchString(r.Holder.Machine) {
		return r, errors.New("the request does not say on which machine the state is")
	}
	if r.Holder.Serial < 0 || r.Holder.Serial > maxSerial {
		return r, fmt.Errorf("no state has the serial %d", r.Holder.Serial)
	}
	r.Holder = resource.Holder{Lineage: r.Holder.Lineage, State: r.Holder.State, Machine: r.Holder.Machine, Serial: r.Holder.Serial, User: g.user, UID: &g.uid,
		Since: time.Now().UTC().Format(time.RFC3339)}
	if g.uid == 0 { // root may do it all without the agent as well
		return r, nil
	}
	if err := g.mayTouch(l, r, more); err != nil {
		return r, err
	}
	return r, inReason(l, &r)
}

// mayTouch refuses what the admin does not permit this user. A change that began before that can be completed.
func (g *guard) mayTouch(l *nvmlLibrary, r request, more int) error {
	switch r.Op {
	case opLeave, opRelease, opDestroySlice:
		return nil
	}
	page, unread := l.entry(r).Page()
	if unread == nil && page.Leaving == r.Holder.Lineage && r.Op == opSet {
		return nil // the project restores the baseline
	}
	policy, err := PolicyOf(adminFile(g.policy))
	if err != nil || policy.open {
		return err
	}
	wish := Wish{GPU: r.GPU, Setting: r.Setting, Slice: r.Op == opCreateSlice, Whole: r.Op == opTake && r.Take.Whole}
	has := map[string]int{}
	if wish.Slice {
		pages, err := l.book.Read()
		if err != nil {
			return err
		}
		has, wish.Before = SlicesOf(pages, g.uid), map[string]int{r.GPU: more}
		if ledger.Lists(page, r.Holder, r.Slice.Slice) { // a second try
			has[r.GPU]--
		}
	}
	return policy.Permit(SubjectOf(g.uid), wish, has)
}

// inReason refuses values that the GPU does not have before the ledger or the driver gets them.
func inReason(l *nvmlLibrary, r *request) error {
	if r.Op == opLeave || r.Op == opRelease { // these must work without the GPU as well
		return nil
	}
	d, err := l.device(r.GPU)
	if err != nil {
		return err
	}
	switch r.Op {
	case opSet:
		if check := drivers[*r.Setting].check; check != nil && !r.unlocks() {
			return baselineOr(l, *r, check(d, r.Value))
		}
	case opTake:
		// Only the ledger states which slices a project has created: a user could name
		// those of another user whom the ledger does not list.
		r.Take.Slices = nil
		if len(r.Take.Others) > maxOthers {
			return fmt.Errorf("%d other holders are too many", len(r.Take.Others))
		}
		return nil // the agent reads the baseline itself
	case opCreateSlice:
		return leaving(d.placeInReason(r.Slice.Slice, r.Need), nil)
	}
	return nil
}

// baselineOr returns the error of a value that cannot be checked, since the driver no
// longer reports what the GPU has. The value of the baseline needs no check.
func baselineOr(l *nvmlLibrary, r request, err error) error {
	if !unavailable(err) {
		return err
	}
	page, unread := l.entry(r).Page()
	if unread == nil && page.Baseline.Is(*r.Setting, r.Value) {
		return nil
	}
	return err
}

// explain adds a fix to the refusal to destroy a slice: if the ledger was lost, only root
// can destroy the project's slices.
func (l *nvmlLibrary) explain(r request, err error) error {
	if _, refused := errors.AsType[*ledger.RefusedError](err); refused && l.guard != nil && r.Op == opDestroySlice {
		advice := prose.AdviceOf(err)
		advice.Fix += "; if the slice is the project's and the host's ledger was lost: sudo cosplay destroy"
		return advice
	}
	return err
}

func (d device) powerInReason(mw int) error {
	low, high, err := d.powerRange()
	if err != nil {
		return err
	}
	if mw < int(low) || mw > int(high) {
		return fmt.Errorf("%s: a power limit of %d mW is out of its range, %d to %d; cosplay plan finds one within", d, mw, low, high)
	}
	return nil
}

func (d device) clockInReason(mhz int) error {
	clocks, err := d.clockList()
	if err != nil {
		return err
	}
	if !slices.Contains(clocks, mhz) {
		return fmt.Errorf("%s: it has no SM clock of %d MHz; nvidia-smi -q -d SUPPORTED_CLOCKS lists what it has", d, mhz)
	}
	return nil
}

// placeInReason refuses a slice that is impossible, and one whose place is taken: the
// ledger would list the existing slice as this user's.
func (d device) placeInReason(s resource.Slice, need resource.Need) error {
	if !nameForm().MatchString(s.Host) {
		return &Error{GPU: d.String(), Message: "the slice's host has no name that can be written down"}
	}
	p, err := d.offered(s, need)
	if err != nil {
		return err
	}
	model := resource.Model{Profiles: []resource.Profile{p.Profile}}
	_, known := model.Profile(s.Profile)
	if !slices.Contains(p.Starts, s.Start) || s.Size != p.size || !known || !slices.Contains(model.ComputeStarts(s.Profile), s.ComputeStart) {
		return &Error{GPU: d.String(), Message: fmt.Sprintf("%s: there is no %s of %d slots at slot %d", d, s.Profile, s.Size, s.Start)}
	}
	_, found, err := d.find(s)
	if err == nil && found {
		return &Error{Code: int(nvml.ERROR_INSUFFICIENT_RESOURCES), Call: "nvmlDeviceCreateGpuInstanceWithPlacement", GPU: d.String(),
			Message: fmt.Sprintf("there is a %s slice at slot %d already", s.Profile, s.Start), Advice: prose.Advice{Fix: planAgain}}
	}
	return err
}
