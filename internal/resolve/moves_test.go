package resolve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// ref reads an address as the blocks have it: without a key it is a whole block.
func ref(t *testing.T, text string) resource.Reference {
	t.Helper()
	a, err := resource.ParseAddress("session." + text)
	if err != nil {
		t.Fatal(err)
	}
	return resource.Reference{Address: a, Block: a.Key == resource.Key{}}
}

// moving is a state with sessions, a configuration with others, and moves like "a -> b".
func moving(t *testing.T, have, want string, moves ...string) (*config.Intent, resource.Prior) {
	t.Helper()
	var (
		intent config.Intent
		prior  resource.Prior
	)
	for _, name := range strings.Fields(have) {
		s := resource.PriorSession{Session: resource.Session{Address: ref(t, name).Address, ID: name}}
		prior.Sessions = append(prior.Sessions, s)
	}
	slices.SortFunc(prior.Sessions, func(a, b resource.PriorSession) int { return a.Address.Compare(b.Address) })
	for _, name := range strings.Fields(want) {
		intent.Sessions = append(intent.Sessions, config.Session{Address: ref(t, name).Address})
	}
	for _, move := range moves {
		from, to, _ := strings.Cut(move, " -> ")
		m := config.Move{From: ref(t, from), To: ref(t, to)}
		m.From.Block = m.From.Block && m.To.Block
		m.To.Block = m.From.Block
		intent.Moves = append(intent.Moves, m)
	}
	return &intent, prior
}

func TestMoved(t *testing.T) {
	for _, test := range []struct {
		name, have, want string
		moves            []string
		become, warned   string
	}{
		{"nothing", "a b", "a b", nil, "a=a b=b", ""},
		{"a block", "a[0] a[1]", "b[0] b[1]", []string{"a -> b"}, "b[0]=a[0] b[1]=a[1]", ""},
		{"a chain", "a", "c", []string{"b -> c", "a -> b"}, "c=a", ""},
		{"into count", "a", "b[2]", []string{"a -> b[2]"}, "b[2]=a", ""},
		{"into for_each", `a[1]`, `b["x"]`, []string{`a[1] -> b["x"]`}, `b["x"]=a[1]`, ""},
		{"out of it", `b["x"]`, `a`, []string{`b["x"] -> a`}, `a=b["x"]`, ""},
		{"an instance before its block", "a[0] a[1]", "b[1] c", []string{"a -> b", "a[0] -> c"}, "b[1]=a[1] c=a[0]", ""},
		{"taken", "a b", "b", []string{"a -> b"}, "a=a b=b", "session.a is not moved to session.b"},
		{"taken by one that moves on", "a b", "b c", []string{"a -> b", "b -> c"}, "a=a c=b", "session.a is not moved to session.c"},
		{"two to one", "a[0] a[1]", "b", []string{"a[0] -> b", "a[1] -> b"}, "a[1]=a[1] b=a[0]", "session.a[1] is not moved to session.b"},
		{"gets count", "a", "a[0] a[1]", nil, "a[0]=a", ""},
		{"loses count", "a[0] a[1]", "a", nil, "a=a[0] a[1]=a[1]", ""},
		{"gets count, taken", "a a[0]", "a[0]", nil, "a=a a[0]=a[0]", ""},
		{"moves and gets count", "a", "b[0]", []string{"a -> b"}, "b[0]=a", ""},
		{"for_each is no count", "a", `a["x"]`, nil, "a=a", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			intent, prior := moving(t, test.have, test.want, test.moves...)
			next, moved, diags := Moved(intent, prior)
			if got := become(next); got != test.become {
				t.Errorf("got %s, want %s", got, test.become)
			}
			for to, from := range moved {
				if s, ok := next.Session(to); !ok || "session."+s.ID != from.String() {
					t.Errorf("%s was reported as moved from %s", to, from)
				}
			}
			if warned := strings.Join(summaries(diags), " "); warned != test.warned {
				t.Errorf("warned of %q, want %q", warned, test.warned)
			}
		})
	}
}

func become(p resource.Prior) string {
	var all []string
	for _, s := range p.Sessions {
		all = append(all, strings.TrimPrefix(s.Address.String(), "session.")+"="+s.ID)
	}
	return strings.Join(all, " ")
}

// TestMovesLoseNothing: with any moves, each session of the state remains, each with a different address, in order.
func TestMovesLoseNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	names := []string{"a", "b", "c", "d", "a[0]", "a[1]", "b[0]", "b[1]", `c["x"]`}
	some := func() string {
		var picked []string
		for _, name := range names {
			if random.IntN(2) == 0 {
				picked = append(picked, name)
			}
		}
		return strings.Join(picked, " ")
	}
	moved := 0
	for range 3000 {
		var moves []string
		from := rand.New(rand.NewPCG(random.Uint64(), 1)).Perm(len(names))
		for i := range random.IntN(4) { // downwards: no circles
			a, b := from[i], from[i+1]
			if names[a] > names[b] {
				moves = append(moves, fmt.Sprintf("%s -> %s", names[a], names[b]))
			}
		}
		have, want := some(), some()
		intent, prior := moving(t, have, want, moves...)
		next, by, _ := Moved(intent, prior)
		moved += len(by)
		seen := map[string]bool{}
		for i, s := range next.Sessions {
			if i > 0 && next.Sessions[i-1].Address.Compare(s.Address) >= 0 {
				t.Fatalf("%s: %s, %v: %s", have, want, moves, become(next))
			}
			seen[s.ID] = true
		}
		if len(seen) != len(strings.Fields(have)) {
			t.Fatalf("%s: %s, %v: %s", have, want, moves, become(next))
		}
	}
	if moved < 1000 {
		t.Errorf("only %d sessions were moved", moved)
	}
}

func summaries(diags hcl.Diagnostics) []string {
	var all []string
	for _, d := range diags {
		all = append(all, d.Summary)
	}
	return all
}
