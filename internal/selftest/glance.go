package selftest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"cosplay/internal/diff"
	"cosplay/internal/disguise/verify"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// glanceTime is how long a session may take to answer. The probe ends itself before that.
const glanceTime = (verify.GlanceSeconds + 3) * time.Second

// Glance asks NVML in each container that runs whether the session sees its GPU, and returns what is wrong as drift. It takes no
// memory of the GPU, and leaves out what the snapshot shows to be wrong already.
func Glance(ctx context.Context, p *project.Project, o project.Outlook) []diff.Drift {
	var (
		found = make([][]diff.Drift, len(o.Prior.Sessions))
		turns = make(chan struct{}, verifyAtOnce)
		group sync.WaitGroup
	)
	for i, s := range o.Prior.Sessions {
		if !mayGlance(s, o) {
			continue
		}
		place, err := p.Runtime(ctx, s, o.Prior) // opens hosts, which must not happen concurrently
		if err != nil {
			continue // the snapshot was read without it
		}
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			found[i] = glance(ctx, place, s, o)
		})
	}
	group.Wait()
	return slices.Concat(found...)
}

// mayGlance reports whether a container that cosplay created runs on a GPU and a slice that are as they should be.
func mayGlance(s resource.PriorSession, o project.Outlook) bool {
	_, there := o.Live.Host(s.Slice.Host)
	body, runs := o.Live.Body(s.Slice.Host, s.Runtime, s.ID)
	readable := !slices.ContainsFunc(s.On(), func(at resource.GPUKey) bool {
		_, is := o.Live.GPU(at.Host, at.UUID)
		return !is
	})
	own, _ := diff.OwnSlice(s, o.Live)
	return resource.RuntimeNamed(s.Runtime).RunsPrograms && there && !o.Live.Unread(s.Slice.Host) &&
		runs && s.Body != nil && !s.Body.Foreign && body.ID == s.Body.ID && body.State == resource.Running && body.Damaged == "" && readable && (own.UUID == s.SliceID() || s.Slice.Whole())
}

func glance(ctx context.Context, place runtime.Runtime, s resource.PriorSession, o project.Outlook) []diff.Drift {
	interior, err := place.Interior(s)
	if err != nil {
		return nil // the folder of the session cannot be written: apply reports it
	}
	want, err := wanted(s, interior, o.Prior, o.Live)
	if err != nil {
		return nil
	}
	of := func(class diff.Class, name string, from, to diff.Value) diff.Drift {
		return diff.Drift{Class: class, Host: s.Slice.Host, GPU: s.Slice.GPU, Session: &s.Address, Runtime: s.Runtime, Name: name, From: from, To: to}
	}
	within, cancel := context.WithTimeout(ctx, glanceTime)
	defer cancel()
	out, err := execute(within, place, s.ID)(verify.Glance(interior.Probe).Argv, nil)
	switch {
	case ctx.Err() != nil:
		return nil
	case within.Err() != nil:
		err = fmt.Errorf("no answer within %s", glanceTime)
	}
	if err != nil {
		return []diff.Drift{of(diff.GPUUnseen, err.Error(), diff.IsVisible, diff.IsInvisible)}
	}
	lost, broken := verify.Glanced(want, out)
	if lost != "" {
		return []diff.Drift{of(diff.GPUUnseen, lost, diff.IsVisible, diff.IsInvisible)}
	}
	return prose.Each(broken, func(r verify.Result) diff.Drift {
		return of(diff.DisguiseBroken, fmt.Sprintf("%s by %s", r.Check, r.Way), diff.Text(r.Expected), diff.Damage(r.Got.What))
	})
}
