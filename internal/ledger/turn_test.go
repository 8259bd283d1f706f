package ledger

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"cosplay/internal/resource"
)

func turn(t *testing.T, b Book, uid int, gpu string) *Turn {
	t.Helper()
	got, err := b.Turn(uid, gpu, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func waits(t *testing.T, b Book, uid int, gpu, want string) {
	t.Helper()
	var refused *RefusedError
	if _, err := b.Turn(uid, gpu, 50*time.Millisecond); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
		t.Errorf("uid %d on %s: %v, want %q", uid, gpu, err, want)
	}
}

// TestTurn: one agent at a time changes a GPU, a user has one change under way, and only
// that one is announced.
func TestTurn(t *testing.T) {
	b := Book{Dir: t.TempDir()}
	first := turn(t, b, 1, "GPU-0")
	waits(t, b, 2, "GPU-0", "changing the GPU")
	waits(t, b, 0, "GPU-0", "changing the GPU")
	waits(t, b, 1, "GPU-1", "another change of yours")
	second := turn(t, b, 2, "GPU-1")
	if announced, err := os.ReadDir(b.moving()); err != nil || len(announced) != 1 { // by this process
		t.Errorf("announced: %v, %v", announced, err)
	}
	second.End()
	first.End()
	if err := b.Quiet(time.Second); err != nil {
		t.Error(err)
	}
	turn(t, b, 1, "GPU-1").End()
}

// TestTurnOfOthers: a user waits for few changes of another user, however many agents that
// user starts.
func TestTurnOfOthers(t *testing.T) {
	b := Book{Dir: t.TempDir()}
	stop, changes := make(chan struct{}), make(chan int)
	for range maxAgents {
		go func() {
			made := 0
			for {
				select {
				case <-stop:
					changes <- made
					return
				default:
				}
				if one, err := b.Turn(1, "GPU-0", time.Minute); err == nil {
					time.Sleep(5 * time.Millisecond) // the driver's time
					one.End()
					made++
				}
			}
		}()
	}
	const turns = 10
	for range turns {
		turn(t, b, 2, "GPU-0").End()
		time.Sleep(2 * rest)
	}
	close(stop)
	all := 0
	for range maxAgents {
		all += <-changes
	}
	if all > 40*turns {
		t.Errorf("%d changes of one user came before %d of another", all, turns)
	}
}

// TestJoin: the number of agents is bounded for each user, and not for root.
func TestJoin(t *testing.T) {
	b := Book{Dir: t.TempDir()}
	places := 0
	for range 2 * maxAgents {
		place, err := b.Join(1)
		if err != nil {
			break
		}
		defer place.Close()
		places++
	}
	if places != maxAgents {
		t.Errorf("%d agents at a time", places)
	}
	place, err := b.Join(2)
	if err != nil {
		t.Fatal(err)
	}
	place.Close()
	if _, err := b.Join(0); err != nil {
		t.Errorf("root: %v", err)
	}
}

// TestProjectsOfAUser: the number of projects on a GPU is bounded for each user.
func TestProjectsOfAUser(t *testing.T) {
	g := resource.Page{UUID: gpu}
	var others []string
	for n := range maxProjects + 1 {
		lineage := string(rune('a' + n))
		err := Hold(&g, user(lineage, 1234), Take{Others: others}, newHardware().found())
		if (err != nil) != (n == maxProjects) {
			t.Errorf("project %d: %v", n, err)
		}
		others = append(others, lineage)
	}
	if err := Hold(&g, user("z", 1235), Take{Others: others}, nil); err != nil {
		t.Errorf("another user: %v", err)
	}
	if err := Hold(&g, user("a", 1234), Take{Others: append(others, "z")}, nil); err != nil {
		t.Errorf("one that holds it already: %v", err)
	}
}

// TestSliceAfterAReboot: a slice that is created after a reboot, with no change of a
// setting before it, does not make the settings of before the reboot count as set.
func TestSliceAfterAReboot(t *testing.T) {
	h := newHardware()
	look := func() (*Found, error) { return h.found(), nil }
	e := Entry{Book: Book{Dir: t.TempDir()}, GPU: gpu, Holder: user("v", 1234), BootID: h.boot}
	limit := resource.Settings{}.With(resource.PowerLimit, 200_000)
	for _, err := range []error{e.Take(Take{}, look), e.Setting(limit, look), e.Settled(limit)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.boot, e.BootID = "boot-2", "boot-2" // the driver has its own limit again
	if err := errors.Join(e.Making(look, Wanted{Slice: resource.Slice{GPU: gpu, Profile: "1g.18gb", Size: 1}})...); err != nil {
		t.Fatal(err)
	}
	if page, err := e.Page(); err != nil || page.Set.Has(resource.PowerLimit) || page.BootID != h.boot {
		t.Errorf("%v: set %+v in boot %s", err, page.Set, page.BootID)
	}
}
