package apply_test

import (
	"context"
	"errors"
	"testing"

	"cosplay/internal/apply"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// smaller is another target for all sessions of three, so that each is replaced.
const smaller = `host "lab" {}
session "worker" {
  count  = 3
  target = "3060"
}`

// ends are the ways in which a run does not complete, after so many changes.
var ends = map[string]func(t *testing.T, w *worldtest.World, prior resource.Prior, text string, after int) resource.Prior{
	"killed": func(t *testing.T, w *worldtest.World, prior resource.Prior, text string, after int) resource.Prior {
		j := &worldtest.Journal{}
		changes := 0
		w.Fault = func(string) error {
			if changes++; changes > after {
				j.Fault = func() error { return errCrash }
				return errCrash
			}
			return nil
		}
		if _, err := run(t, w, j, text, prior, 1); err == nil {
			t.Fatal("the run was not killed")
		}
		recovered, _ := apply.Recover(prior, j.Entries, w.Live)
		return recovered
	},
	"stopped": func(t *testing.T, w *worldtest.World, prior resource.Prior, text string, after int) resource.Prior {
		ctx, cancel := context.WithCancel(context.Background())
		changes := 0
		w.Fault = func(string) error {
			if changes++; changes == after {
				cancel()
			}
			return nil
		}
		p, _ := w.Plan(t, text, prior)
		result, err := w.Run(&worldtest.Journal{}, 1).Execute(ctx, p, prior, w.Live)
		if err != nil || !result.Interrupted {
			t.Fatal(err, result)
		}
		return result.Prior
	},
	"failed": func(t *testing.T, w *worldtest.World, prior resource.Prior, text string, after int) resource.Prior {
		changes := 0
		w.Fault = func(string) error {
			if changes++; changes == after+1 {
				return errors.New("no")
			}
			return nil
		}
		result, err := run(t, w, &worldtest.Journal{}, text, prior, 1)
		if err != nil || len(result.Failures) == 0 {
			t.Fatal(err, result)
		}
		return result.Prior
	},
}

// TestMissing: what existed and a run was to create again is missing until a run creates it or the configuration does not have it. Of a
// run that was killed, all is that it did not create; one that ended in order has said so itself.
func TestMissing(t *testing.T) {
	for name, end := range ends {
		for _, story := range []struct {
			name, before, then string
			after              int
			missing            bool
		}{
			{"create", "", three, 6, name == "killed"},
			{"replace", three, smaller, 6, true},
		} {
			t.Run(name+"/"+story.name, func(t *testing.T) {
				begin := func() (*worldtest.World, resource.Prior) {
					w := worldtest.New(t, "h200")
					prior := resource.Prior{}
					if story.before != "" {
						prior = must(t, w, story.before, prior)
					}
					prior = end(t, w, prior, story.then, story.after)
					w.Fault = nil
					return w, prior
				}
				w, prior := begin()
				if len(prior.Missing) > 0 != story.missing || story.missing && len(prior.Missing)+len(prior.Sessions) != 3 {
					t.Fatalf("missing %v, with %d sessions", prior.Missing, len(prior.Sessions))
				}
				p, _ := w.Plan(t, "", prior)
				if story.missing && !p.Diff.NotAsApplied() || len(p.Diff.Unwanted) != len(prior.Missing) {
					t.Errorf("unfinished %v, unwanted %v", p.Diff.Unfinished, p.Diff.Unwanted)
				}
				if ended := must(t, w, "", plan.Ended(prior, nil)); len(ended.Missing) > 0 {
					t.Errorf("still missing after destroy: %v", ended.Missing)
				}
				w, prior = begin()
				if whole := must(t, w, story.then, prior); len(whole.Missing) > 0 || len(whole.Sessions) != 3 {
					t.Errorf("still missing: %v", whole.Missing)
				}
			})
		}
	}
}
