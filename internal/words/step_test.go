package words_test

import (
	"testing"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// TestStep has a sentence for every operation.
func TestStep(t *testing.T) {
	live := resource.Live{Hosts: []resource.Host{{Name: "lab", GPUs: []resource.GPU{{Host: "lab", UUID: "GPU-0", Index: 3}}}}}
	slice := resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: 2, Size: 1}
	session := resource.Session{Address: resource.One("w"), ID: "w", Runtime: "docker", Slice: slice}
	gpu := func(s resource.Setting, value int, restore bool) plan.SetGPU {
		return plan.SetGPU{Host: "lab", GPU: "GPU-0", Setting: s, Value: value, Restore: restore}
	}
	for want, op := range map[string]plan.Op{
		"GPU 3: record its baseline":                               plan.TakeGPU{Host: "lab", GPU: "GPU-0"},
		"GPU 3: join the project that holds it":                    plan.TakeGPU{Host: "lab", GPU: "GPU-0", Others: []string{"b"}},
		"GPU 3: record its holder":                                 plan.TakeGPU{Host: "lab", GPU: "GPU-0", Others: []string{"b"}, FromState: true},
		"GPU 3: record slice 1g.18gb, slot 2 as that of session.w": plan.TakeGPU{Host: "lab", GPU: "GPU-0", For: "session.w", Slices: []resource.LiveSlice{{Slice: slice}}},
		"GPU 3: record the settings that it has already":           plan.HoldGPU{Host: "lab", GPU: "GPU-0"},
		"GPU 3: record that its clock lock is lost":                plan.DoubtClock{Host: "lab", GPU: "GPU-0"},
		"lab: record this boot":                                    plan.NoteBoot{Host: "lab"},
		"GPU 3: MIG mode on":                                       gpu(resource.MIGMode, resource.On, false),
		"GPU 3: persistence mode back to off":                      gpu(resource.PersistenceMode, resource.Off, true),
		"GPU 3: SM clock 1575 MHz":                                 gpu(resource.SMClock, 1575, false),
		"GPU 3: SM clock unlocked again":                           gpu(resource.SMClock, 0, true),
		"GPU 3: announce that it is given back":                    plan.LeaveGPU{Host: "lab", GPU: "GPU-0"},
		"GPU 3: as it was found":                                   plan.ReleaseGPU{Host: "lab", GPU: "GPU-0"},
		"GPU 3: left to the other project":                         plan.ReleaseGPU{Host: "lab", GPU: "GPU-0", AsItIs: true},
		"GPU 3: released":                                          plan.ReleaseGPU{Host: "lab", GPU: "GPU-0", Abandon: true},
		"session.w: slice 1g.18gb, slot 2":                         plan.CreateSlice{Session: session},
		"session.w: destroy slice 1g.18gb, slot 2":                 plan.DestroySlice{Address: session.Address, Slice: slice},
		"image debian:12: pull":                                    plan.EnsureImage{Host: "lab", Image: "debian:12", How: plan.PullImage},
		"session.w: container":                                     plan.Prepare{Session: session},
		"session.w: bring its container up to date":                plan.Prepare{Session: session, How: plan.Refit},
		"session.w: start its container":                           plan.Prepare{Session: session, How: plan.Start},
		"session.w: remove its container":                          plan.Unprepare{Address: session.Address, Runtime: "docker", ID: "w"},
		"cosplay-w: remove what an interrupted run has left of it": plan.Unprepare{Runtime: "docker", ID: "w", Leftover: true},
		"session.w: record what its block says now":                plan.Record{Session: session},
		"session.w: record its new fit":                            plan.Record{Session: session, Refit: true},
		"session.w: add it to the state":                           plan.Adopt{Session: resource.PriorSession{Session: session}},
		"session.w: forget":                                        plan.Forget{Address: session.Address},
		"state: record the new addresses":                          plan.MoveSessions{},
	} {
		if got := words.Step(plan.Step{ID: "id", Do: plan.OpJSON{Op: op}}, live); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
