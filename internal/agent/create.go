package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// creation is a slice that a request creates. A request has several, so that it takes one turn of the GPU and writes
// the GPU's page of the ledger twice for all of them.
type creation struct {
	Slice resource.Slice `json:"slice"`
	Need  resource.Need  `json:"need"`
}

// created is what became of a creation.
type created struct {
	Slice *resource.LiveSlice `json:"slice,omitzero"`
	Error *Error              `json:"error,omitzero"`
}

// maxCreates bounds the slices of one request. A GPU has 7 at most, or 49 compute instances.
const maxCreates = 64

// moreThanPlace is why a slice is refused that says how sessions share it, of which the agent knows nothing.
const moreThanPlace = "its slice has more than a place"

// checkCreates says what is wrong with the slices of a request. The ledger would list two at one place as one.
func (r request) checkCreates() string {
	if len(r.Creates) == 0 || len(r.Creates) > maxCreates {
		return fmt.Sprintf("it names %d slices, not 1 to %d", len(r.Creates), maxCreates)
	}
	for i, c := range r.Creates {
		if c.Slice.GPU != r.GPU {
			return "its slice is on another GPU"
		}
		if c.Slice != c.Slice.Place() {
			return moreThanPlace
		}
		if slices.ContainsFunc(r.Creates[:i], func(o creation) bool {
			return o.Slice.Start == c.Slice.Start && o.Slice.ComputeStart == c.Slice.ComputeStart
		}) {
			return fmt.Sprintf("it names two slices at slot %d", c.Slice.Start)
		}
	}
	return ""
}

// part is the request for one of the slices.
func (r request) part(c creation) request {
	r.Op, r.Creates, r.Slice, r.Need = opCreateSlice, nil, &resource.LiveSlice{Slice: c.Slice}, c.Need
	return r
}

// asked is a slice that waits for the child, with those of the same GPU that other goroutines want meanwhile.
type asked struct {
	creation
	answered bool
	slice    resource.LiveSlice
	err      error
}

// batches are the slices that wait, by GPU.
type batches struct {
	mu      sync.Mutex
	waiting map[string][]*asked
}

func (b *batches) add(a *asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[string][]*asked{}
	}
	b.waiting[a.Slice.GPU] = append(b.waiting[a.Slice.GPU], a)
}

// take removes up to maxCreates of those that wait for a GPU.
func (b *batches) take(gpu string) []*asked {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.waiting[gpu]
	n := min(len(all), maxCreates)
	b.waiting[gpu] = all[n:]
	return all[:n]
}

// CreateSlice creates a GPU instance at its placement with the compute instance that fills it, or nothing. It refuses
// a profile that is not what the plan counted on. Slices of one GPU that are wanted at the same time are one request.
func (c *Client) CreateSlice(ctx context.Context, s resource.Slice, need resource.Need) (resource.LiveSlice, error) {
	if err := ctx.Err(); err != nil {
		return resource.LiveSlice{}, err
	}
	own := &asked{creation: creation{s.Place(), need}}
	c.creates.add(own)
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	for !own.answered { // more may wait than one request has
		c.createBatch(c.creates.take(s.GPU))
	}
	return own.slice, own.err
}

// createBatch creates slices of one GPU. The caller has the child.
func (c *Client) createBatch(all []*asked) {
	r := request{Holder: c.holder, Op: opCreateSlices, GPU: all[0].Slice.GPU, Creates: prose.Each(all, func(a *asked) creation { return a.creation })}
	answer, err := c.changes.send(r, changeDeadline)
	for i, a := range all {
		a.answered, a.err = true, err
		if len(answer.Created) != len(all) {
			continue
		}
		if a.err = nil; answer.Created[i].Error != nil {
			a.err = answer.Created[i].Error
		} else if answer.Created[i].Slice != nil {
			a.slice = *answer.Created[i].Slice
		}
	}
}
