//go:build cgo && linux

package agent

import (
	"fmt"
	"slices"
	"time"

	"cosplay/internal/ledger"
	"cosplay/internal/resource"
)

// wait asks for the place of this agent's client in the queue. The agent of root lets a user wait only for GPUs that
// exist and that the rules of the admin permit.
func (l *nvmlLibrary) wait(r request) (*Place, error) {
	who := resource.Holder{User: r.Holder.User}
	if l.guard != nil {
		if err := l.guard.mayWait(l, r.GPUs); err != nil {
			return nil, err
		}
		who = resource.Holder{User: l.guard.user, UID: &l.guard.uid}
	}
	if !l.waiter.Waits() {
		l.wanted = r // later requests do not change it
	}
	number, ahead, err := l.waiter.Ask(l.book, who, r.GPUs, time.Now())
	if err == nil && ahead == 0 {
		err = l.found(l.wanted)
	}
	return &Place{number, ahead}, err
}

// found notes whether the room is there that the first in the queue waits for. A client that wants more than empty GPUs
// have has its turn as if the room were there.
func (l *nvmlLibrary) found(r request) error {
	pages, err := l.book.Read()
	if err != nil {
		return err
	}
	devices, _, err := l.devices()
	if err != nil {
		return err
	}
	var gpus, empty []resource.GPU
	for _, d := range devices {
		if !slices.Contains(r.GPUs, d.uuid) {
			continue
		}
		gpu, err := d.read()
		if err != nil {
			continue // no project can use it now
		}
		gpus = append(gpus, gpu)
		gpu.Slices, gpu.Processes = nil, nil
		empty = append(empty, gpu)
	}
	room := ledger.HasRoom(gpus, pages, r.Room) || !ledger.HasRoom(empty, nil, r.Room)
	return l.waiter.Found(l.book, room, time.Now())
}

func (g *guard) mayWait(l *nvmlLibrary, gpus []string) error {
	if l.waiter.Waits() { // as permitted when it took its ticket
		return nil
	}
	devices, _, err := l.devices()
	if err != nil {
		return err
	}
	policy, err := PolicyOf(adminFile(g.policy))
	if err != nil {
		return err
	}
	who := SubjectOf(g.uid)
	for i, gpu := range gpus {
		if slices.Contains(gpus[:i], gpu) || !slices.ContainsFunc(devices, func(d device) bool { return d.uuid == gpu }) {
			return fmt.Errorf("the queue is for GPUs of this host, each named once; %.64q is none", gpu)
		}
		if err := policy.Permit(who, Wish{GPU: gpu}, nil); g.uid != 0 && err != nil {
			return err
		}
	}
	return nil
}
