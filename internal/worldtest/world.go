// Package worldtest is a host in memory for tests of plans. It refuses what hardware refuses.
package worldtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/ledger"
	"cosplay/internal/plan"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
	_ "cosplay/internal/runtime/all" // tests use the runtimes that users have
)

// HostName is the name of the host.
const HostName = "lab"

// World is one host with its GPUs and containers. It is what apply writes to.
type World struct {
	Live    resource.Live
	Person  resolve.Person          // the user who runs cosplay
	Lineage string                  // of the project whose turn it is
	Used    map[string]resource.Use // by session: the memory use of its programs

	PowerStepMW int // what the driver rounds power limits down to; 0 does not round

	// Fault, if set, is called before every change and can refuse it.
	Fault func(what string) error

	mu   sync.Mutex
	made int // slices so far: each gets a new UUID
}

// freePort is the first port that is taken where the choice is left open.
const freePort = 32801

// New makes a world with GPUs of these models of the catalog.
func New(t testing.TB, models ...string) *World {
	t.Helper()
	host := resource.Host{Name: HostName, BootID: "boot-1", Runtime: "process"}
	for i, name := range models {
		m, err := catalog.HostModel(name)
		if err != nil {
			t.Fatal(err)
		}
		host.GPUs = append(host.GPUs, resource.GPU{Host: HostName, Index: i, UUID: fmt.Sprintf("GPU-%d", i), Model: m,
			MIGCapable: m.MIG(), PowerMW: m.PowerDefaultMW, SMClockMHz: m.ClocksMHz[0], LowClockReason: true})
	}
	return &World{Live: resource.Live{Hosts: []resource.Host{host}}, Person: resolve.Person{
		User: resource.User{Name: "ann", UID: 1000, GID: 1000, Group: "ann"}, Keys: []string{"ssh-ed25519 AAAA ann@desk"}}}
}

// WithDocker lets sessions run in containers, of images that are there.
func (w *World) WithDocker(images ...string) *World {
	h := w.Host()
	h.Runtime, h.Engine = "docker", &resource.Engine{Name: "Docker 20.10.24", Access: "simulated library by mount", Images: map[string]string{}}
	for _, image := range images {
		h.Engine.Images[image] = "sha256:" + image
	}
	return w
}

// Ensure gets an image, unless the context ends.
func (w *World) Ensure(ctx context.Context, image string, how plan.ImageSource, say func(string)) error {
	return w.change(string(how)+" "+image, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		say("half of " + image)
		w.Host().Engine.Images[image] = "sha256:" + image
		return nil
	})
}

// Hosts is the world as apply wants it.
func (w *World) Hosts() map[string]apply.Host {
	return map[string]apply.Host{HostName: {GPUs: w, Images: w, Runtimes: map[string]apply.Runtime{"process": w, "docker": w}}}
}

// Run is a run on this world.
func (w *World) Run(j *Journal, parallelism int) *apply.Run {
	return &apply.Run{Hosts: w.Hosts(), Journal: j, Parallelism: parallelism, Observe: w.Observe}
}

// Observe returns the world as it is now.
func (w *World) Observe(context.Context) (resource.Live, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	host := *w.Host()
	host.GPUs, host.Bodies = slices.Clone(host.GPUs), slices.Clone(host.Bodies)
	for i := range host.GPUs {
		host.GPUs[i].Slices = slices.Clone(host.GPUs[i].Slices)
	}
	if host.Engine != nil { // or Ensure would write to the map while the caller reads it
		engine := *host.Engine
		engine.Images = maps.Clone(engine.Images)
		host.Engine = &engine
	}
	return resource.Live{Hosts: []resource.Host{host}}, nil
}

// Host is the one host.
func (w *World) Host() *resource.Host { return &w.Live.Hosts[0] }

// GPU finds a GPU; a missing one is a mistake of the test.
func (w *World) GPU(uuid string) *resource.GPU {
	for i := range w.Host().GPUs {
		if w.Host().GPUs[i].UUID == uuid {
			return &w.Host().GPUs[i]
		}
	}
	panic("no GPU " + uuid)
}

// Plan plans a configuration; "" is an empty one.
func (w *World) Plan(t testing.TB, text string, prior resource.Prior) (*plan.Plan, hcl.Diagnostics) {
	t.Helper()
	desired, prior, o, diags := w.Desired(t, text, prior)
	return plan.Build(desired, prior, w.Live, o), diags
}

// Desired is what a configuration asks for; "" asks for nothing. The prior that it returns has the blocks' moves.
func (w *World) Desired(t testing.TB, text string, prior resource.Prior) (resource.Desired, resource.Prior, diff.Options, hcl.Diagnostics) {
	t.Helper()
	var o diff.Options
	if text == "" {
		return resource.Desired{}, prior, o, nil
	}
	intent, wrong := config.Load(map[string][]byte{"fleet.hcl": []byte(text)}, config.Options{
		Dir: "/project", Home: "/home/me", Target: catalog.Target, Simulate: func(string) error { return nil }})
	if wrong.HasErrors() {
		t.Fatalf("%v\n%s", wrong, text)
	}
	prior, moved, diags := resolve.Moved(intent, prior)
	o.Moved = moved
	desired, more := resolve.Desired(intent, w.Person, prior, w.Live, resolve.Scope{})
	return desired, prior, o, append(diags, more...)
}

func (w *World) change(what string, do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Fault != nil {
		if err := w.Fault(what); err != nil {
			return err
		}
	}
	return do()
}

// Set sets a setting: MIG mode not while there are slices, a clock and a power limit that the GPU has, the limit
// rounded down to the step. Without persistence mode the driver forgets limit and lock.
func (w *World) Set(_ context.Context, gpu string, s resource.Setting, value int) (now int, err error) {
	now = value
	if s == resource.PowerLimit {
		now -= value % max(1, w.PowerStepMW)
	}
	return now, w.change(s.String()+" "+s.Text(value), func() error {
		g := w.GPU(gpu)
		switch {
		case s == resource.MIGMode && len(g.Slices) > 0:
			return errors.New("MIG mode does not switch with slices on the GPU")
		case s == resource.SMClock && value != 0 && !slices.Contains(g.Model.ClocksMHz, value):
			return fmt.Errorf("%d MHz is no clock of the GPU", value)
		case s == resource.PowerLimit && (value < g.Model.PowerMinMW || value > g.Model.PowerMaxMW):
			return fmt.Errorf("a power limit of %d mW is out of range", value)
		}
		if err := w.setting(gpu, resource.Settings{}.With(s, now)); err != nil {
			return err
		}
		if s == resource.SMClock {
			g.SMClockMHz = cmp.Or(now, g.Model.ClocksMHz[0]) // without a lock, the GPU is idle
			return nil
		}
		g.Show(s, now)
		switch {
		case s == resource.MIGMode:
			g.MIGPending = g.MIG
		case s == resource.PersistenceMode && !g.Persistence:
			g.ComputeMode = resource.DefaultMode
			g.PowerMW, g.SMClockMHz = g.Model.PowerDefaultMW, g.Model.ClocksMHz[0]
		}
		return nil
	})
}

// CreateSlice makes a slice where there is room.
func (w *World) CreateSlice(_ context.Context, s resource.Slice, _ resource.Need) (made resource.LiveSlice, err error) {
	err = w.change("slice "+s.String(), func() error {
		g := w.GPU(s.GPU)
		if !g.MIG {
			return errors.New("MIG mode is off")
		}
		if other := diff.Overlapping(*g, s); other != nil {
			return fmt.Errorf("%s is taken by %s", s, other.Slice)
		}
		if err := w.book(s.GPU, func(g *resource.Page) error {
			return ledger.NoteSlice(g, w.Lineage, resource.LiveSlice{Slice: s})
		}); err != nil {
			return err
		}
		w.made++
		made = resource.LiveSlice{Slice: s, Handle: resource.Handle{GPUInstance: w.made, UUID: fmt.Sprintf("MIG-%d", w.made), Boot: w.Host().BootID}}
		g.Slices = append(g.Slices, made)
		return w.book(s.GPU, func(g *resource.Page) error { return ledger.NoteSlice(g, w.Lineage, made) })
	})
	return made, err
}

// DestroySlice removes a slice by its UUID.
func (w *World) DestroySlice(_ context.Context, s resource.LiveSlice) error {
	return w.change("destroy "+s.String(), func() error {
		g := w.GPU(s.GPU)
		if err := w.book(s.GPU, func(g *resource.Page) error {
			if err := ledger.MayDestroy(g, w.Lineage, s); err != nil {
				return err
			}
			ledger.DropSlice(g, w.Lineage, s)
			return nil
		}); err != nil {
			return err
		}
		g.Slices = slices.DeleteFunc(g.Slices, func(l resource.LiveSlice) bool { return l.UUID == s.UUID })
		return nil
	})
}

// Prepare creates or recreates a session's container.
func (w *World) Prepare(_ context.Context, s resource.Session, given resource.Handle) (c resource.Body, err error) {
	err = w.change("prepare "+s.ID, func() error {
		h := w.Host()
		c = resource.Body{ID: s.ID, Session: s.ID, Host: HostName, Runtime: s.Runtime, State: resource.Running, Hash: s.Hash(""), SliceID: given.UUID}
		if !s.Spec.IsZero() {
			c.SSHPort = cmp.Or(s.Spec.SSH.Port, s.Spec.SSH.Kept, freePort+len(h.Bodies))
			c.Image = h.Engine.Images[s.Spec.Image]
		}
		w.Remove(s.ID)
		h.Bodies = append(h.Bodies, c)
		slices.SortFunc(h.Bodies, resource.Body.Compare)
		return nil
	})
	return c, err
}

// Unprepare removes a session's container.
func (w *World) Unprepare(_ context.Context, session string) (resource.Use, error) {
	return w.Used[session], w.change("unprepare "+session, func() error {
		w.Remove(session)
		return nil
	})
}

// Remove removes a container without the knowledge of any project.
func (w *World) Remove(session string) {
	h := w.Host()
	h.Bodies = slices.DeleteFunc(h.Bodies, func(c resource.Body) bool { return c.Session == session })
}

// Reboot forgets what a driver forgets.
func (w *World) Reboot() {
	h := w.Host()
	h.BootID += "+"
	for i := range h.GPUs {
		g := &h.GPUs[i]
		g.Slices, g.MIG, g.MIGPending, g.Persistence = nil, false, false, false
		g.PowerMW, g.SMClockMHz = g.Model.PowerDefaultMW, g.Model.ClocksMHz[0]
	}
}

// String lists settings, slices and containers, for comparisons.
func (w *World) String() string {
	var b strings.Builder
	for _, g := range w.Host().GPUs {
		fmt.Fprintf(&b, "%s mig=%v persistence=%v power=%d clock=%d\n", g.UUID, g.MIG, g.Persistence, g.PowerMW, g.SMClockMHz)
		var lines []string
		for _, s := range g.Slices {
			lines = append(lines, "  "+s.Slice.String()+"\n")
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
	}
	for _, c := range w.Host().Bodies {
		fmt.Fprintf(&b, "%s %s %s\n", c.Session, c.State, c.Hash)
	}
	for _, g := range w.Host().Ledger {
		for _, h := range g.Holders {
			fmt.Fprintf(&b, "%s is held by %q with %d slices\n", g.UUID, h.Lineage, len(h.Slices))
		}
	}
	return b.String()
}

// Journal keeps entries in memory.
type Journal struct {
	Entries []apply.Entry
	Fault   func() error // asked before every entry
}

// Write appends entries.
func (j *Journal) Write(entries ...any) error {
	for _, entry := range entries {
		if j.Fault != nil {
			if err := j.Fault(); err != nil {
				return err
			}
		}
		j.Entries = append(j.Entries, entry.(apply.Entry))
	}
	return nil
}
