package diff

import (
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// leave is the change of a session that is not part of the plan.
func leave(was *resource.PriorSession) SessionChange {
	return SessionChange{Address: was.Address, Action: NoOp, Reason: resource.Reason{Kind: resource.LeftOut},
		Slice: Keep, Body: Keep, Before: was, After: &was.Session}
}

// forget is the change of a session that stops being cosplay's.
func forget(was *resource.PriorSession) SessionChange {
	return SessionChange{Address: was.Address, Action: Forget, Reason: resource.Reason{Kind: resource.StaysBehind},
		Slice: Keep, Body: Keep, Before: was}
}

// noteMoves adds the addresses that moved sessions have in the state, and marks imported sessions.
func noteMoves(all []SessionChange, o Options) {
	for i := range all {
		c := &all[i]
		if c.Imported = o.Imported[c.Address]; c.Imported != "" && c.Action == NoOp {
			c.Action = Import
		}
		if from, moved := o.Moved[c.Address]; moved {
			c.MovedFrom = &from
			if c.Action == NoOp {
				c.Action = Move
			}
			if c.Reason.Kind == resource.LeftOut { // a move has no effect on a host, so that it is in every plan
				c.Reason = resource.Reason{}
			}
		}
	}
}

// replace recreates sessions that would be kept otherwise: those that the user named, and those that a change of
// another session or of a value triggers.
func replace(all []SessionChange, live resource.Live, o Options) {
	for i := range all {
		c := &all[i]
		if o.Replace[c.Address] {
			c.recreate(live, resource.Reason{Kind: resource.AskedFor})
		}
		if c.Before != nil && c.After != nil && c.Before.Trigger != "" && c.After.Trigger != "" && c.Before.Trigger != c.After.Trigger {
			c.recreate(live, resource.Reason{Kind: resource.TriggerValue})
		}
	}
	if len(o.Triggers) == 0 {
		return
	}
	blocks := map[string][]*SessionChange{}
	for i := range all {
		blocks[all[i].Address.Name] = append(blocks[all[i].Address.Name], &all[i])
	}
	for again := true; again; { // one may trigger the next
		again = false
		for i := range all {
			c := &all[i]
			if c.Action == Replace || o.Left[c.Address] {
				continue
			}
			for _, t := range o.Triggers[c.Address] {
				if by := t.firedBy(blocks[t.Of.Address.Name]); by != nil && c.recreate(live, resource.Reason{Kind: resource.TriggerSession, Session: &by.Address}) {
					again = true
					break
				}
			}
		}
	}
}

// recreate replaces a session that exists, with its slice. It returns false if there is nothing to replace.
func (c *SessionChange) recreate(live resource.Live, reason resource.Reason) bool {
	if c.Before == nil || c.After == nil || gpuMissing(*c.Before, live) || unread(*c.Before, live) || c.Action == Replace {
		return false
	}
	c.Action, c.Reason, c.Record, c.Renew = Replace, reason, false, false
	if c.Slice == Keep && !c.After.Slice.Whole() {
		c.Slice = Remake
	}
	if c.Body == Keep || c.Body == Refit {
		c.Body = Remake
	}
	return true
}

// firedBy finds a change, among those of a block, that fires the trigger.
func (t Trigger) firedBy(block []*SessionChange) *SessionChange {
	for _, c := range block {
		happens := c.Action == Replace || c.Action == Update && !c.Record && !c.Renew || c.Action == Create && c.Before != nil
		if happens && t.Of.Covers(c.Address) && t.concerns(c.Fields) {
			return c
		}
	}
	return nil
}

// concerns reports whether the attribute is among the fields that change. Some attributes share a field.
func (t Trigger) concerns(fields []Field) bool {
	name, _, inside := strings.Cut(t.Attribute, ".")
	switch {
	case t.Attribute == "":
		return true
	case name == "volume":
		name = "volumes"
	case inside && name != "limits" && t.Attribute != "ssh.enabled":
		name = t.Attribute
	}
	return slices.ContainsFunc(fields, func(f Field) bool { return f.attribute() == name || strings.HasPrefix(f.attribute(), name+".") })
}

// touched leaves out the changes of GPUs on which the plan touches no session.
func touched(gpus []GPUChange, sessions []SessionChange, o Options) []GPUChange {
	if len(o.Left) == 0 {
		return gpus
	}
	on := gpusOf(sessions, func(c SessionChange) bool { return !o.Left[c.Address] })
	return slices.DeleteFunc(gpus, func(g GPUChange) bool { return !on[g.Key()] })
}
