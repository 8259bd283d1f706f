package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cosplay/internal/agent"
	"cosplay/internal/ledger"
	"cosplay/internal/resource"
)

// blockedAtMost is for how long an attack may keep another user from reading the
// host.
const blockedAtMost = 5 * time.Second

// attack is a machine with an honest user, ann, who has sessions on GPU 0, and an
// attacker, bob. Both have the line in sudoers that cosplay doctor prints.
type attack struct {
	*machine
	before string // the simulated hardware without any session
	mu     sync.Mutex
	asked  int // requests for a change that bob sent
}

const annsProject, annsOther = "/home/ann/fleet", "/home/ann/other"

// TestAttack plays an unprivileged user with the line in sudoers: bob gains nothing,
// blocks ann for no longer than 5 s, and each of his attempts is in the history.
func TestAttack(t *testing.T) {
	a := &attack{machine: newMachine(t)}
	for _, user := range []string{"ann", "bob"} {
		a.allow(user + " ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware)
	}
	a.before = a.state()
	a.write(annsProject+"/fleet.hcl", workers(0, 2), ann)
	a.write(annsOther+"/fleet.hcl", workers(1, 1), ann)
	a.run(ann, annsProject, installed, "apply", "--auto-approve")
	hers := a.gpus()[0]

	for _, one := range []struct {
		name string
		play func(*testing.T)
	}{
		{"A1 a false baseline", a.falseBaseline},
		{"A2 a release that restores nothing", a.releaseAsItIs},
		{"A2 settings that the driver forgets", a.forgottenByTheDriver},
		{"A2 the name of another's project", a.inHerName},
		{"A2 values that are none", a.oddValues},
		{"A3 locks and announcements", a.locksAndAnnouncements},
		{"A3 a slice in use", a.sliceInUse},
		{"A3 a flood", a.flood},
		{"A4 other versions and unknown fields", a.otherVersions},
	} {
		t.Run(one.name, func(t *testing.T) {
			one.play(t)
			a.annIsWell(t)
			if now := a.gpus()[0]; fmt.Sprint(now.Slices, now.PowerMW, now.MIG) != fmt.Sprint(hers.Slices, hers.PowerMW, hers.MIG) {
				t.Errorf("ann's GPU is %+v", now)
			}
		})
	}

	a.run(ann, annsProject, installed, "destroy", "--auto-approve")
	if book := a.book(); len(book) > 0 {
		t.Errorf("left in the ledger: %+v", book)
	}
	wait(t, "the host to be as it was", func() bool { return a.state() == a.before })
	a.allRecorded(t)
}

// bob opens an agent for bob.
func (a *attack) bob(t *testing.T) *wire {
	w := a.wire(bob, hardware)
	w.t = t
	t.Cleanup(w.close)
	return w
}

// try sends a request of bob's, and counts it.
func (a *attack) try(w *wire, request any) string {
	a.mu.Lock()
	a.asked++
	a.mu.Unlock()
	return w.ask(request)
}

func (a *attack) refused(w *wire, want string, request any) {
	w.t.Helper()
	if said := a.try(w, request); !strings.Contains(said, want) || said == "" {
		w.t.Errorf("%v: %q, want %q", request, said, want)
	}
}

func (a *attack) granted(w *wire, request any) {
	w.t.Helper()
	if said := a.try(w, request); said != "" {
		w.t.Errorf("%v: %s", request, said)
	}
}

func (a *attack) mine() order {
	return order{"gpu": a.gpus()[1].UUID, "holder": order{"lineage": "b0b", "state": "/home/bob/s.json"}}
}

// annIsWell has ann read the host, within the time that an attack may cost.
func (a *attack) annIsWell(t *testing.T) {
	t.Helper()
	begun := time.Now()
	if out, err := a.as(ann, annsProject, installed, "plan", "--detailed-exitcode").CombinedOutput(); err != nil {
		t.Errorf("ann's plan: %v\n%s", err, out)
	}
	took := time.Since(begun)
	t.Logf("ann's plan took %.1f s", took.Seconds())
	if took > blockedAtMost {
		t.Errorf("ann was blocked for %s", took)
	}
}

// annUsesGPU1 has ann acquire the GPU after bob, and give it back as it was before
// bob.
func (a *attack) annUsesGPU1(t *testing.T) {
	t.Helper()
	before := resource.GPU{PowerMW: 700_000}
	a.run(ann, annsOther, installed, "apply", "--auto-approve")
	a.run(ann, annsOther, installed, "destroy", "--auto-approve")
	after := a.gpus()[1]
	if after.PowerMW != before.PowerMW || after.MIG || after.Persistence || len(after.Slices) > 0 {
		t.Errorf("after ann's project, the GPU is %+v", after)
	}
	if show := a.run(0, "/opt/lab", installed, "sim", "show"); strings.Count(show, `"clock_lock_mhz": 0`) < 1 {
		t.Errorf("a lock is left:\n%s", show)
	}
}

// falseBaseline: bob says what a free GPU was like, so that the next project
// "restores" that.
func (a *attack) falseBaseline(t *testing.T) {
	w, mine := a.bob(t), a.mine()
	low := order{"power_mw": 210_000, "clock_mhz": 345, "mig": true, "persistence": true}
	a.refused(w, "when the plan was made", mine.with(order{"op": "take", "take": order{"baseline": low}}))
	a.refused(w, "only root can confirm", mine.with(order{"op": "take", "take": order{"baseline": low, "from_state": true}}))
	a.refused(w, "Trusted", mine.with(order{"op": "take", "take": order{"baseline": low, "from_state": true, "Trusted": true}}))
	w = a.bob(t)
	a.granted(w, mine.with(order{"op": "take", "take": order{"baseline": order{"clock_mhz": 345}, "lock_before": true}}))
	if page := a.book()[1]; page.Baseline.Has(resource.SMClock) || page.LockBefore || page.Baseline.Value(resource.PowerLimit) != 700_000 || page.Baseline.Is(resource.MIGMode, resource.On) {
		t.Errorf("the baseline is %+v, lock before: %v", page.Baseline, page.LockBefore)
	}
	a.granted(w, mine.with(order{"op": "release"}))
	a.annUsesGPU1(t)
}

// releaseAsItIs: bob changes all that can be changed, and leaves.
func (a *attack) releaseAsItIs(t *testing.T) {
	w, mine := a.bob(t), a.mine()
	gpu := a.gpus()[1].UUID
	do := func(op string, more order) { a.granted(w, mine.with(order{"op": op}).with(more)) }
	do("take", order{"take": order{}})
	do("set", order{"setting": "persistence", "value": 1})
	do("set", order{"setting": "mig", "value": 1})
	do("set", order{"setting": "power", "value": 200_000})
	do("set", order{"setting": "clock", "value": 345})
	do("", creates(order{"gpu": gpu, "profile": "1g.18gb", "start": 3, "size": 1}))
	slice := a.gpus()[1].Slices[0]
	leave := func(want string) {
		t.Helper()
		for _, more := range []order{{}, {"abandon": true}} {
			a.refused(w, want, mine.with(order{"op": "release"}).with(more))
		}
		for _, more := range []order{{"as_it_is": true}, {"as_it_is": true, "abandon": true}} {
			a.refused(w, "is for this project to restore", mine.with(order{"op": "release"}).with(more))
		}
	}
	leave("baseline")
	a.refused(w, "another user", mine.with(order{"op": "release", "holder": order{"lineage": a.lineage(annsProject), "state": "/s"}, "gpu": a.gpus()[0].UUID}))
	do("destroy-slice", order{"slice": slice})
	leave("baseline")
	do("leave", nil)
	for _, more := range []order{{"op": "set", "setting": "power", "value": 210_000}, {"op": "set", "setting": "clock", "value": 360}} {
		a.refused(w, "may set nothing else", mine.with(more))
	}
	leave("baseline")
	do("set", order{"setting": "power", "value": 700_000})
	do("set", order{"setting": "mig", "value": 0})
	do("set", order{"setting": "persistence", "value": 0})
	leave("SM clock") // the driver has no getter: only a command proves it
	w.close()         // bob disconnects
	held := a.book()
	if len(held) != 2 || held[1].Holders[0].User != "bob" || held[1].Baseline.Value(resource.PowerLimit) != 700_000 {
		t.Fatalf("the ledger has %+v", held)
	}
	a.run(0, "/opt/lab", installed, "sim", "show")
	w = a.bob(t)
	do("set", order{"setting": "clock", "value": 0})
	do("release", nil)
	a.annUsesGPU1(t)
}

// forgottenByTheDriver: bob switches persistence mode off, so that the driver drops the
// admin's settings.
func (a *attack) forgottenByTheDriver(t *testing.T) {
	const admins, free = 500_000, 700_000
	set := func(key, value string) { a.run(0, "/opt/lab", installed, "sim", "set", "1", key, value) }
	set("persistence", "on")
	set("power-limit", "500")
	w, mine := a.bob(t), a.mine()
	do := func(op string, more order) { a.granted(w, mine.with(order{"op": op}).with(more)) }
	do("take", order{"take": order{}})
	do("set", order{"setting": "persistence", "value": 0})
	w.close()
	wait(t, "the driver to forget the limit", func() bool { return a.gpus()[1].PowerMW == free })
	w = a.bob(t)
	do("set", order{"setting": "persistence", "value": 1})
	for _, more := range []order{{}, {"abandon": true}} {
		a.refused(w, "power limit 700 W instead of 500 W", mine.with(order{"op": "release"}).with(more))
	}
	do("set", order{"setting": "mig", "value": 1})
	a.run(ann, annsOther, installed, "apply", "--auto-approve") // and she shares the GPU
	do("release", order{"as_it_is": true})
	a.run(ann, annsOther, installed, "destroy", "--auto-approve")
	if gpu := a.gpus()[1]; gpu.PowerMW != admins || !gpu.Persistence || gpu.MIG {
		t.Errorf("the admin's GPU has %d mW, persistence %v, MIG %v", gpu.PowerMW, gpu.Persistence, gpu.MIG)
	}

	const lock = 345
	set("clock-lock", fmt.Sprint(lock))
	a.write("/etc/cosplay/baseline-clocks", fmt.Sprintln(a.gpus()[1].UUID, lock), 0)
	do("take", order{"take": order{}})
	do("set", order{"setting": "persistence", "value": 0})
	do("set", order{"setting": "clock", "value": lock})
	w.close()
	wait(t, "the driver to forget the limit", func() bool { return a.gpus()[1].PowerMW == free })
	w = a.bob(t)
	do("set", order{"setting": "persistence", "value": 1})
	do("set", order{"setting": "power", "value": admins})
	a.refused(w, "SM clock not confirmed instead of 345 MHz", mine.with(order{"op": "release"}))
	do("set", order{"setting": "clock", "value": lock})
	do("release", nil)
	if show := a.run(0, "/opt/lab", installed, "sim", "show"); !strings.Contains(show, `"clock_lock_mhz": 345`) {
		t.Errorf("the admin's lock is lost:\n%s", show)
	}
	a.run(0, "/", "rm", "/etc/cosplay/baseline-clocks")
	set("clock-lock", "none")
	set("power-limit", "700")
	set("persistence", "off")
}

// inHerName: bob acquires a GPU under the lineage of ann's project, with the path of her
// state, and with the path of a pipe.
func (a *attack) inHerName(t *testing.T) {
	a.run(bob, "/home/bob", "mkfifo", "pipe")
	w, gpu := a.bob(t), a.gpus()[1].UUID
	slice := order{"gpu": gpu, "profile": "1g.18gb", "start": 0, "size": 1}
	for _, project := range []string{annsProject, annsOther} { // one that holds a GPU, and one that held one
		for _, path := range []string{project + "/cosplay.state.json", "/home/bob/pipe"} {
			holder := order{"lineage": a.lineage(project), "state": path, "serial": 1 << 30}
			a.refused(w, fmt.Sprintf("that of a project of uid %d", ann), order{"op": "take", "gpu": gpu, "take": order{}, "holder": holder})
		}
	}
	for _, holder := range []order{
		{"lineage": "b0b", "state": annsProject + "/cosplay.state.json"},
		{"lineage": "b0b", "state": annsOther + "/cosplay.state.json"},
		{"lineage": "b0b", "state": "/home/bob/pipe"},
	} {
		hers := order{"gpu": gpu, "holder": holder}
		a.granted(w, hers.with(order{"op": "take", "take": order{}}))
		a.granted(w, hers.with(order{"op": "set", "setting": "mig", "value": 1}))
		a.granted(w, hers.with(creates(slice)))
		a.annIsWell(t)
		a.run(ann, annsProject, installed, "apply", "--auto-approve")
		a.run(ann, annsProject, installed, "status")
		a.run(ann, annsProject, installed, "drift")
		a.fails(ann, annsOther, []string{installed, "state", "rebuild", "--auto-approve"}, "is undamaged, up to date")
		a.granted(w, hers.with(order{"op": "destroy-slice", "slice": a.gpus()[1].Slices[0]}))
		a.granted(w, hers.with(order{"op": "set", "setting": "mig", "value": 0}))
		a.granted(w, hers.with(order{"op": "release"}))
	}
}

// oddValues: bob sends numbers and texts that would fill the ledger, or that have another
// meaning for the driver.
func (a *attack) oddValues(t *testing.T) {
	w, mine := a.bob(t), a.mine()
	take := order{"op": "take", "take": order{}}
	named := func(more order) order {
		return mine.with(take).with(order{"holder": order{"lineage": "b0b", "state": "/s"}.with(more)})
	}
	a.refused(w, "which project", named(order{"state": "/" + strings.Repeat("x", 2000)}))
	a.refused(w, "no state has the serial", named(order{"serial": 1 << 40}))
	a.refused(w, "no state has the serial", named(order{"serial": -1}))
	a.granted(w, mine.with(take))
	a.refused(w, "no such value", mine.with(order{"op": "set", "setting": "clock", "value": -1}))
	a.refused(w, "no SM clock of 1 MHz", mine.with(order{"op": "set", "setting": "clock", "value": 1}))
	a.granted(w, mine.with(order{"op": "release"}))
	others := []string{}
	for n := range 9 {
		lineage := fmt.Sprint("b0b-", n)
		request := named(order{"lineage": lineage}).with(order{"take": order{"others": others}})
		if others = append(others, lineage); n < 8 {
			a.granted(w, request)
		} else {
			a.refused(w, "8 projects of bob hold the GPU already", request)
		}
	}
	for n := range 8 { // the latest first: one that joined in a later second, and has nothing there, restores nothing for others
		a.granted(w, named(order{"lineage": fmt.Sprint("b0b-", 7-n)}).with(order{"op": "release", "as_it_is": n < 7}))
	}
}

// locksAndAnnouncements: bob takes what locks he can on the files of the ledger,
// also while root's agent makes a change.
func (a *attack) locksAndAnnouncements(t *testing.T) {
	a.write("/home/bob/lock.sh", `for i in $(seq 20); do
	for f in $(find /var/lib/cosplay -type f 2>/dev/null) /var/lib/cosplay/moving/*; do
		case $f in */ledger/GPU-*|*/history/*) continue;; esac # read by all, locked by none
		if flock -n "$f" true 2>/dev/null; then echo "locked $f"; fi
		echo x 2>/dev/null >>"$f" && echo "written $f"
	done
	touch /var/lib/cosplay/moving/1-1 2>/dev/null && echo "announced"
done
exit 0`, bob)
	done := make(chan string)
	go func() {
		out, err := a.as(bob, "/home/bob", "sh", "lock.sh").CombinedOutput()
		done <- fmt.Sprint(strings.TrimSpace(string(out)), err)
	}()
	a.annUsesGPU1(t)
	if said := <-done; said != "<nil>" {
		t.Errorf("bob: %s", said)
	}
	a.annIsWell(t)
}

// sliceInUse: bob has root's agent wait for a slice that a process of bob's uses.
func (a *attack) sliceInUse(t *testing.T) {
	w, mine := a.bob(t), a.mine()
	gpu := a.gpus()[1].UUID
	a.granted(w, mine.with(order{"op": "take", "take": order{}}))
	a.granted(w, mine.with(order{"op": "set", "setting": "mig", "value": 1}))
	a.granted(w, mine.with(creates(order{"gpu": gpu, "profile": "1g.18gb", "start": 0, "size": 1})))
	slice := a.gpus()[1].Slices[0]
	use := func(what string) { a.run(0, "/opt/lab", installed, "sim", "set", "1", "process", what) }
	use(fmt.Sprintf("%d:100:%d", os.Getpid(), slice.GPUInstance))
	ended := make(chan string)
	go func() { ended <- a.try(w, mine.with(order{"op": "destroy-slice", "slice": slice})) }()
	for waiting := true; waiting; {
		a.annIsWell(t)
		select {
		case said := <-ended:
			if !strings.Contains(strings.ToLower(said), "in use") {
				t.Errorf("got %q", said)
			}
			waiting = false
		case <-time.After(time.Second):
		}
	}
	use("none")
	a.granted(w, mine.with(order{"op": "destroy-slice", "slice": slice}))
	a.granted(w, mine.with(order{"op": "set", "setting": "mig", "value": 0}))
	a.granted(w, mine.with(order{"op": "release"}))
}

// flood: many agents of bob's at once.
func (a *attack) flood(t *testing.T) {
	var group sync.WaitGroup
	mine := a.mine()
	for range 12 {
		w := a.bob(t)
		group.Go(func() {
			for range 15 {
				a.try(w, mine.with(order{"op": "take", "take": order{}}))
				a.try(w, mine.with(order{"op": "release"}))
			}
		})
	}
	a.annIsWell(t)
	group.Wait()
	w := a.bob(t)
	a.try(w, mine.with(order{"op": "release"}))
	for range 3 {
		a.granted(a.bob(t), mine.with(order{"op": "release"}))
	}
	a.refused(a.bob(t), "16 agents of root work for you already", mine.with(order{"op": "release"}))
	a.annUsesGPU1(t)
}

// otherVersions: requests that another version of cosplay would understand, and
// rubbish.
func (a *attack) otherVersions(t *testing.T) {
	mine := a.mine()
	for _, bad := range []struct {
		want    string
		request any
	}{
		{"different versions", mine.with(order{"op": "take", "take": order{}, "version": 1})},
		{"different versions", mine.with(order{"op": "take", "take": order{}, "version": agent.Protocol + 1})},
		{"different versions", `{"op": "read"}`},
		{"unknown", mine.with(order{"op": "take", "take": order{}, "only_if_free": true})},
		{"unknown", mine.with(order{"op": "set", "setting": "power", "value": 200_000, "for_seconds": 5})},
		{"not one of its requests", "rubbish"},
		{"without an end", strings.Repeat("x", 1<<20+10)},
	} {
		a.refused(a.bob(t), bad.want, bad.request)
	}
	if book := a.book(); len(book) != 1 {
		t.Errorf("the ledger has %+v", book)
	}
}

// allRecorded: the history has a line for each request of bob's, with what was
// refused and why, and none that bob could have written.
func (a *attack) allRecorded(t *testing.T) {
	all, err := ledger.Book{Dir: filepath.Join(a.root, ledger.SystemDir)}.History()
	if err != nil {
		t.Fatal(err)
	}
	lines, refused := 0, 0
	for _, one := range all {
		if one.UID != bob {
			continue
		}
		lines++
		if one.Refused != "" {
			refused++
		}
		if one.User != "bob" || one.At == "" {
			t.Errorf("recorded: %+v", one)
		}
	}
	if lines != a.asked {
		t.Errorf("bob tried %d times, and the history has %d lines", a.asked, lines)
	}
	t.Logf("bob tried %d times; all are recorded, %d as refused", lines, refused)
	files, _ := filepath.Glob(filepath.Join(a.root, ledger.SystemDir, "history", "*"))
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s has mode %v, %v", file, info.Mode(), err)
		}
	}
}
