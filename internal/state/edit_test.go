package state

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
)

// addresses returns the sessions of a state, with their IDs.
func addresses(p resource.Prior) string {
	var all []string
	for _, s := range p.Sessions {
		all = append(all, s.Address.String()+"="+s.ID)
	}
	return strings.Join(all, " ")
}

func gpus(p resource.Prior) string {
	var all []string
	for _, g := range p.GPUs {
		all = append(all, g.UUID)
	}
	return strings.Join(all, " ")
}

func TestFind(t *testing.T) {
	p := some()
	for typed, want := range map[string]string{
		"big":                   "session.big=big",
		"worker-1":              "session.worker[1]=worker-1",
		"worker[1]":             "session.worker[1]=worker-1",
		"session.worker[1]":     "session.worker[1]=worker-1",
		"cosplay-worker-1":      "session.worker[1]=worker-1",
		`session.worker["a"]`:   "session.worker[\"a\"]=worker-a",
		"worker":                "session.worker[0]=worker-0 session.worker[1]=worker-1 session.worker[\"a\"]=worker-a",
		"session.worker":        "session.worker[0]=worker-0 session.worker[1]=worker-1 session.worker[\"a\"]=worker-a",
		"GPU-1":                 "",
		"absent":                `no "absent"`,
		"session.worker[99999]": "state list",
	} {
		found, err := Find(p, typed)
		if got := addresses(resource.Prior{Sessions: found.Sessions}); err == nil && got != want {
			t.Errorf("%s is %s, want %s", typed, got, want)
		}
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", typed, err)
		}
		if strings.HasPrefix(typed, "GPU") != (len(found.GPUs) == 1) {
			t.Errorf("%s: GPUs %v", typed, found.GPUs)
		}
	}
	// A session that was moved keeps its container's name.
	moved := resource.Prior{Sessions: []resource.PriorSession{{Session: resource.Session{Address: resource.One("new"), ID: "old"}}}}
	if found, err := Find(moved, "cosplay-old"); err != nil || addresses(resource.Prior{Sessions: found.Sessions}) != "session.new=old" {
		t.Errorf("%v, %v", found, err)
	}
	// An ambiguous short name is refused; the full address is not ambiguous.
	p.Sessions = append(p.Sessions, resource.PriorSession{Session: resource.Session{Address: resource.One("worker-1"), ID: "x"}})
	if _, err := Find(p, "worker-1"); err == nil || !strings.Contains(err.Error(), "write it in full") {
		t.Errorf("got %v", err)
	}
	if found, err := Find(p, "session.worker-1"); err != nil || addresses(resource.Prior{Sessions: found.Sessions}) != "session.worker-1=x" {
		t.Errorf("%v, %v", found, err)
	}
}

func TestMove(t *testing.T) {
	configured := []resource.Address{resource.Nth("lab", 0), resource.One("other-1")}
	for name, test := range map[string]struct{ from, to, want string }{
		"one":             {"big", "small", `session.small=big session.worker[0]=worker-0 session.worker[1]=worker-1 session.worker["a"]=worker-a`},
		"to an index":     {"big", "worker[2]", `session.worker[0]=worker-0 session.worker[1]=worker-1 session.worker[2]=big session.worker["a"]=worker-a`},
		"to the next":     {"worker-0", "worker-7", `session.big=big session.worker[1]=worker-1 session.worker[7]=worker-0 session.worker["a"]=worker-a`},
		"as configured":   {"big", "lab-0", `session.lab[0]=big session.worker[0]=worker-0 session.worker[1]=worker-1 session.worker["a"]=worker-a`},
		"a name so":       {"big", "other-1", `session.other-1=big session.worker[0]=worker-0 session.worker[1]=worker-1 session.worker["a"]=worker-a`},
		"a name in full":  {"big", "session.x-1", `session.worker[0]=worker-0 session.worker[1]=worker-1 session.worker["a"]=worker-a session.x-1=big`},
		"a block":         {"worker", "lab", `session.big=big session.lab[0]=worker-0 session.lab[1]=worker-1 session.lab["a"]=worker-a`},
		"a block in full": {"session.worker", "session.a-1", `session.a-1[0]=worker-0 session.a-1[1]=worker-1 session.a-1["a"]=worker-a session.big=big`},

		"two meanings":   {"big", "x-1", "! session.x[1] or session.x-1; write it in full"},
		"taken":          {"big", "worker-1", "! session.worker[1] is in the state already"},
		"taken, in full": {"big", "worker[1]", "! session.worker[1] is in the state already"},
		"itself":         {"big", "big", "! is in the state already"},
		"not there":      {"absent", "big", `! no "absent"`},
		"a GPU":          {"GPU-0", "x", "! only sessions can be moved"},
		"block to one":   {"worker", "lab[0]", "! name another block"},
		"no address":     {"big", "3?", "! is not the address of a session"},
	} {
		t.Run(name, func(t *testing.T) {
			before := some()
			after, moves, err := Move(before, test.from, test.to, configured)
			if d := cmp.Diff(some(), before); d != "" {
				t.Errorf("the state of before was changed: %s", d)
			}
			if want, refused := strings.CutPrefix(test.want, "! "); refused {
				if err == nil || !strings.Contains(err.Error(), want) || cmp.Diff(before, after) != "" {
					t.Errorf("got %v, want %q", err, want)
				}
				return
			}
			if err != nil || addresses(after) != test.want {
				t.Fatalf("%v: %s", err, addresses(after))
			}
			if refusal := orderly(after); refusal != nil {
				t.Error(refusal.What)
			}
			// Only the addresses change.
			for _, m := range moves {
				was, _ := before.Session(m.From)
				is, _ := after.Session(m.To)
				if was.Address = m.To; cmp.Diff(was, is) != "" {
					t.Errorf("%s was changed: %s", m.From, cmp.Diff(was, is))
				}
				if was.Hash("key") != is.Hash("key") {
					t.Error("the container would be recreated")
				}
			}
		})
	}
}

func TestForget(t *testing.T) {
	for name, test := range map[string]struct {
		typed          string
		sessions, gpus string // what is left
	}{
		"one of two on a GPU":  {"worker-0", `session.big=big session.worker[1]=worker-1 session.worker["a"]=worker-a`, "GPU-0 GPU-1"},
		"both on a GPU":        {"worker-0 worker-1", `session.big=big session.worker["a"]=worker-a`, "GPU-1"},
		"twice the same":       {"big session.big", `session.worker[0]=worker-0 session.worker[1]=worker-1 session.worker["a"]=worker-a`, "GPU-0 GPU-1"},
		"all":                  {"big worker", "", ""},
		"a GPU with its own":   {"GPU-0 worker[0] worker[1]", `session.big=big session.worker["a"]=worker-a`, "GPU-1"},
		"a GPU that is in use": {"GPU-1 big", "!", "GPU-1 cannot be forgotten while session.worker[\"a\"] is on it"},
		"one is not there":     {"big absent", "!", `no "absent"`},
	} {
		t.Run(name, func(t *testing.T) {
			before := some()
			after, forgot, err := Forget(before, strings.Fields(test.typed))
			if d := cmp.Diff(some(), before); d != "" {
				t.Errorf("the state of before was changed: %s", d)
			}
			if test.sessions == "!" {
				if err == nil || !strings.Contains(err.Error(), test.gpus) || cmp.Diff(before, after) != "" {
					t.Errorf("got %v, want %q", err, test.gpus)
				}
				return
			}
			if err != nil || addresses(after) != test.sessions || gpus(after) != test.gpus {
				t.Fatalf("%v: left are %s; %s", err, addresses(after), gpus(after))
			}
			if len(forgot.Sessions)+len(after.Sessions) != len(before.Sessions) || len(forgot.GPUs)+len(after.GPUs) != len(before.GPUs) {
				t.Errorf("it forgot %d sessions and %d GPUs", len(forgot.Sessions), len(forgot.GPUs))
			}
			if (len(after.BootIDs) == 1) != after.Holds("lab") {
				t.Errorf("boots %v", after.BootIDs)
			}
		})
	}

	// A GPU without sessions, which a failed destroy may leave, can be named.
	p := some()
	p.Sessions = slices.DeleteFunc(p.Sessions, func(s resource.PriorSession) bool { return s.Slice.GPU == "GPU-0" })
	after, _, err := Forget(p, []string{"big"})
	if err != nil || gpus(after) != "GPU-0 GPU-1" {
		t.Errorf("%v: %s", err, gpus(after))
	}
	if after, _, err = Forget(p, []string{"GPU-0"}); err != nil || gpus(after) != "GPU-1" {
		t.Errorf("%v: %s", err, gpus(after))
	}
}

// A session on two GPUs is forgotten with both, as far as no other session is on them, and keeps either of them.
func TestForgetSessionOfSeveralGPUs(t *testing.T) {
	p := some()
	big, _ := p.Session(resource.One("big"))
	i := slices.IndexFunc(p.Sessions, func(s resource.PriorSession) bool { return s.Address == big.Address })
	p.GPUs = append(p.GPUs, resource.PriorGPU{Host: big.Slice.Host, UUID: "GPU-2"})
	p.Sessions[i].More = []resource.Slice{{Host: big.Slice.Host, GPU: "GPU-2"}}
	if _, _, err := Forget(p, []string{"GPU-2"}); err == nil || !strings.Contains(err.Error(), "session.big is on it") {
		t.Errorf("its second GPU: %v", err)
	}
	after, _, err := Forget(p, []string{"big"})
	if err != nil || gpus(after) != "GPU-0 GPU-1" {
		t.Errorf("%v: left are %s", err, gpus(after))
	}
}
