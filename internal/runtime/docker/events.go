package docker

import (
	"context"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// notable are the events after which a session may not be as it was.
var notable = []events.Action{
	events.ActionDie, events.ActionStart, events.ActionDestroy, events.ActionPause, events.ActionUnPause, events.ActionRename, events.ActionUpdate,
	events.ActionConnect, events.ActionDisconnect, events.ActionTag, events.ActionUnTag,
}

// retryEvents is how long Notify waits after it has lost the engine.
const retryEvents = 5 * time.Second

// Notify calls changed after events that may concern sessions, until the context ends. When it has reached the engine
// again, it calls changed too: events may have been missed.
func (e *Engine) Notify(ctx context.Context, changed func()) {
	wanted := filters.NewArgs()
	for _, action := range notable {
		wanted.Add("event", string(action))
	}
	for {
		seen, failed := e.client.Events(ctx, events.ListOptions{Filters: wanted})
		for lost := false; !lost; {
			select {
			case <-seen:
				changed()
			case <-failed: //nolint:errcheck // it is tried again, whatever it was
				lost = true
			case <-ctx.Done():
				return
			}
		}
		if pause(ctx, retryEvents) != nil {
			return
		}
		changed()
	}
}
