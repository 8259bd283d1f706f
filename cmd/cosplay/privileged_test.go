package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cosplay/internal/agent"
	"cosplay/internal/ledger"
	"cosplay/internal/resource"
)

// workers is a project on the machine's hardware.
func workers(gpu, count int) string {
	return fmt.Sprintf(`
host "lab" {
  nvml    = %q
  runtime = "process"
}
session "worker" {
  count  = %d
  target = "2060"
  gpu    = %d
}
`, hardware, count, gpu)
}

type finding struct{ Thing, Found, Grade, Fix, Line string }

func (m *machine) doctor(uid int, folder string) map[string]finding {
	m.t.Helper()
	out, _ := m.as(uid, folder, installed, "doctor", "--json").Output()
	var shown struct{ Findings []finding }
	if err := json.Unmarshal(out, &shown); err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
	all := map[string]finding{}
	for _, f := range shown.Findings {
		all[f.Thing] = f
	}
	return all
}

func (m *machine) lineage(folder string) string {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.root, folder, "cosplay.state.json"))
	if err != nil {
		m.t.Fatal(err)
	}
	var state struct{ Lineage string }
	if err := json.Unmarshal(data, &state); err != nil || state.Lineage == "" {
		m.t.Fatalf("%v: %s", err, data)
	}
	return state.Lineage
}

// TestPrivileged is a user without root on a host whose GPUs need it, from the
// first refusal to the last trace, with another user who attacks.
func TestPrivileged(t *testing.T) {
	m := newMachine(t)
	const project = "/home/ann/fleet"
	m.write(project+"/fleet.hcl", workers(0, 2), ann)
	before := m.state()
	apply := []string{installed, "apply", "--auto-approve"}

	// Without a rule nothing is done, and the missing rule is printed.
	rule := "ann ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware
	m.fails(ann, project, apply, "takes root", rule, "cosplay doctor")
	if f := m.doctor(ann, project)["privilege"]; f.Grade != "missing" || f.Line != rule {
		t.Errorf("doctor says %+v", f)
	}
	m.fails(ann, project, []string{installed, "doctor"}, "only root can change GPUs")
	if m.state() != before || len(m.book()) > 0 {
		t.Fatal("something was changed")
	}
	m.allow(rule)
	if f := m.doctor(ann, project)["privilege"]; f.Grade != "good" || f.Line != "" {
		t.Errorf("doctor says %+v", f)
	}

	m.run(ann, project, apply...)
	gpu := m.gpus()[0]
	if !gpu.MIG || len(gpu.Slices) != 2 {
		t.Fatalf("MIG %v, slices %+v", gpu.MIG, gpu.Slices)
	}
	m.run(ann, project, installed, "plan", "--detailed-exitcode")
	book := m.book()
	if len(book) != 1 || book[0].UUID != gpu.UUID || len(book[0].Holders) != 1 {
		t.Fatalf("the ledger has %+v", book)
	}
	if h := book[0].Holders[0]; h.User != "ann" || h.UID == nil || *h.UID != ann || len(h.Slices) != 2 || h.Lineage != m.lineage(project) {
		t.Errorf("the holder is %+v", h)
	}
	for _, path := range []string{"var/lib/cosplay", "var/lib/cosplay/ledger", "var/lib/cosplay/ledger/" + gpu.UUID + ".json"} {
		info, err := os.Lstat(filepath.Join(m.root, path))
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 || info.Mode().Perm()&^0o111 != 0o644 {
			t.Errorf("%s is of uid %d, mode %v", path, owner, info.Mode())
		}
	}

	m.oddLibrary()
	m.anotherUser(project)
	m.foreignLibraries()
	m.rootGoesOn()
	m.listOfGPUs() // leftovers can be ended with it

	m.run(ann, project, installed, "destroy", "--auto-approve")
	if book := m.book(); len(book) > 0 {
		t.Errorf("left in the ledger: %+v", book)
	}
	if gpu := m.gpus()[0]; gpu.MIG || gpu.Persistence || len(gpu.Slices) > 0 {
		t.Errorf("the GPU is not as it was: %+v", gpu)
	}
}

// oddLibrary: the line that doctor prints lets its command through, whatever
// letters are in it.
func (m *machine) oddLibrary() {
	const library, project = "/opt/nvml/a b,c:d=e*[f]#g/libnvidia-ml.so.1", "/home/ann/odd"
	m.run(0, "/", "install", "-D", hardware, library)
	m.write(project+"/fleet.hcl", strings.ReplaceAll(workers(0, 1), hardware, library), ann)
	m.allow(m.doctor(ann, project)["privilege"].Line)
	if f := m.doctor(ann, project)["privilege"]; f.Grade != "good" {
		m.t.Errorf("doctor says %+v", f)
	}
	m.fails(ann, project, []string{"sudo", "-n", installed, "agent", "--privileged", "--library", strings.Replace(library, "*", "x", 1)}, "sudo:")
}

// rootGoesOn: root applies and destroys a project that ann began in a shared folder. The
// state file is root's then, and the ledger's holder still ann.
func (m *machine) rootGoesOn() {
	const project = "/opt/shared"
	m.write(project+"/fleet.hcl", workers(1, 1), 0)
	m.run(0, "/", "chmod", "777", project)
	m.run(ann, project, installed, "apply", "--auto-approve")
	m.write(project+"/fleet.hcl", workers(1, 2), 0)
	m.run(0, project, installed, "apply", "--auto-approve")
	m.run(0, project, installed, "plan", "--detailed-exitcode")
	m.run(0, project, installed, "destroy", "--auto-approve")
	if gpu := m.gpus()[1]; gpu.MIG || gpu.Persistence || len(gpu.Slices) > 0 {
		m.t.Errorf("the GPU is not as it was: %+v", gpu)
	}
}

// readRequest is one that any agent answers.
var readRequest = fmt.Sprintf(`{"version": %d, "op": "read"}`, agent.Protocol)

// order is a request as an attacker would write it.
type order map[string]any

func (o order) with(more order) order {
	all := order{}
	for _, from := range []order{o, more} {
		for k, v := range from {
			all[k] = v
		}
	}
	return all
}

// anotherUser uses no client of cosplay's, and writes to the agent directly.
func (m *machine) anotherUser(project string) {
	m.allow("bob ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware)
	gpus := m.gpus()
	hers, free := gpus[0], gpus[1]
	w := m.wire(bob, hardware)
	asAnn := order{"gpu": hers.UUID, "holder": order{"lineage": m.lineage(project), "state": project + "/cosplay.state.json", "user": "ann", "uid": ann}}
	asBob := order{"gpu": hers.UUID, "holder": order{"lineage": "b0b", "state": "/home/bob/s.json", "user": "root", "uid": 0}}

	// In her name.
	for _, more := range []order{
		{"op": "destroy-slice", "slice": hers.Slices[0]},
		{"op": "take", "take": order{"others": []string{}}},
		{"op": "set", "setting": "mig", "value": 0},
		{"op": "set", "setting": "power", "value": hers.Model.PowerMinMW},
		{"op": "leave"}, {"op": "release"},
	} {
		w.refused("another user", asAnn.with(more))
	}
	// In bob's project, beside ann's: bob may have a slice, and nothing else.
	w.refused("has taken the GPU since the plan", asBob.with(order{"op": "take", "take": order{"others": []string{}}}))
	w.refused("room for one project only", asBob.with(order{"op": "take", "take": order{"others": []string{m.lineage(project)}, "whole": true}}))
	w.granted(asBob.with(order{"op": "take", "take": order{"others": []string{m.lineage(project)}, "slices": hers.Slices}}))
	w.refused("made by the project of ann", asBob.with(order{"op": "destroy-slice", "slice": hers.Slices[0]}))
	w.refused("already", asBob.with(creates(hers.Slices[0].Slice)))
	w.refused("made by the project of ann", asBob.with(order{"op": "destroy-slice", "slice": hers.Slices[0]}))
	for _, more := range []order{{"op": "set", "setting": "mig", "value": 0}, {"op": "set", "setting": "power", "value": hers.Model.PowerMinMW}, {"op": "set", "setting": "clock"}, {"op": "leave"}} {
		w.refused("", asBob.with(more))
	}
	held, _ := resource.Live{Hosts: []resource.Host{{Ledger: m.book()}}}.Page("", hers.UUID)
	if h, ok := held.Holder("b0b"); !ok || h.User != "bob" || h.UID == nil || *h.UID != bob || len(h.Slices) > 0 {
		m.t.Errorf("the ledger has %+v", held.Holders)
	}
	w.granted(asBob.with(order{"op": "release"}))

	mine := asBob.with(order{"gpu": free.UUID})
	w.onHisOwn(mine, hers, free)
	m.madeByHand(w, mine)
	w.granted(mine.with(order{"op": "set", "setting": "mig", "value": 0}))
	w.granted(mine.with(order{"op": "release"}))
	if after := m.gpus(); fmt.Sprint(after[0].Slices) != fmt.Sprint(hers.Slices) || after[1].PowerMW != free.PowerMW || after[1].MIG != free.MIG {
		m.t.Errorf("the GPUs are %+v", after)
	}
	for _, nonsense := range []struct{ want, text string }{
		{"not one", "rubbish"},
		{"not one", fmt.Sprintf(`{"version": %d, "op": 5}`, agent.Protocol)},
		{"different versions", `{"op": "read"}`},
		{"different versions", `{"version": 1, "op": "read"}`},
		{"without an end", strings.Repeat("x", 1<<20+10)},
	} {
		w := m.wire(bob, hardware)
		w.refused(nonsense.want, nonsense.text)
	}
}

// onHisOwn requests changes that bob's GPU does not support, and unknown ones.
func (w *wire) onHisOwn(mine order, hers, free resource.GPU) {
	w.refused("does not hold", mine.with(order{"op": "set", "setting": "mig", "value": 1}))
	w.refused("when the plan was made", mine.with(order{"op": "take", "take": order{"baseline": order{"power_mw": 1}}}))
	w.granted(mine.with(order{"op": "take", "take": order{"slices": []any{order{"gpu": free.UUID, "profile": "1g.18gb", "start": 0, "size": 1, "uuid": "MIG-x"}}}}))
	w.granted(mine.with(order{"op": "set", "setting": "mig", "value": 1}))
	for _, bad := range []struct {
		want string
		more order
	}{
		{"out of its range", order{"op": "set", "setting": "power", "value": free.Model.PowerMaxMW + 1}},
		{"no SM clock of 1 MHz", order{"op": "set", "setting": "clock", "value": 1}},
		{"no profile", creates(order{"gpu": free.UUID, "profile": "9g.1gb"})},
		{"there is no 1g.18gb", creates(order{"gpu": free.UUID, "profile": "1g.18gb", "start": 77, "size": 1})},
		{"on another GPU", order{"op": "destroy-slice", "slice": hers.Slices[0]}},
		{"Fix: run cosplay plan, which reads the GPU again; if the slice is the project's", order{"op": "destroy-slice", "slice": order{"gpu": free.UUID, "profile": "1g.18gb", "start": 0, "size": 1, "uuid": "MIG-x"}}},
		{"which slice", order{"op": "destroy-slice"}},
		{"0 slices, not 1 to", creates()},
		{"two slices at slot 3", creates(order{"gpu": free.UUID, "profile": "1g.18gb", "start": 3, "size": 1}, order{"gpu": free.UUID, "profile": "2g.35gb", "start": 3, "size": 2})},
		{"no such operation", order{"op": "reset"}},
		{"no such operation", order{"op": ""}},
		{"which project", order{"op": "release", "holder": order{"lineage": "../x", "state": "/s"}}},
		{"which project", order{"op": "release", "holder": order{"lineage": "x", "state": "/s\x1b[2J"}}},
		{"missing", order{"op": "set", "setting": "mig", "gpu": "../../etc/passwd"}},
		{"not the UUID", order{"op": "release", "gpu": "../../etc/passwd"}},
	} {
		w.refused(bad.want, mine.with(bad.more))
	}
}

// madeByHand: no project can claim a slice that no ledger has. Another user created it
// by hand, here root with another ledger.
func (m *machine) madeByHand(w *wire, mine order) {
	m.write("/opt/lab/lab.hcl", `
host "lab" { simulate = "2 x h200" }
session "byhand" {
  target = "2060"
  gpu    = 1
}
`, 0)
	m.run(0, "/opt/lab", installed, "apply", "--auto-approve")
	foreign := m.gpus()[1].Slices[0]
	at := mine.with(order{"slice": foreign})
	w.refused("knows of no", at.with(order{"op": "destroy-slice"}))
	m.write("/home/ann/wants/fleet.hcl", workers(1, 1), ann)
	m.fails(ann, "/home/ann/wants", []string{installed, "import", "worker-0", foreign.UUID, "--auto-approve"}, "only root may assign", "sudo cosplay import")
	w.granted(mine.with(order{"op": "take", "take": order{"slices": []any{foreign}}}))
	w.refused("knows of no", at.with(order{"op": "destroy-slice"}))
	w.refused("already", mine.with(creates(foreign.Slice)).with(order{"deadline": 1}))
	w.refused("knows of no", at.with(order{"op": "destroy-slice"}))
	if now := m.gpus()[1].Slices; len(now) != 1 || now[0] != foreign {
		m.t.Errorf("the foreign slice is %+v", now)
	}
	m.run(0, "/opt/lab", installed, "destroy", "--auto-approve")
}

// foreignLibraries: whatever the rule of sudo allows, root loads what is root's,
// and writes the ledger of the system.
func (m *machine) foreignLibraries() {
	t := m.t
	m.allow("bob ALL=(root) NOPASSWD: " + installed + " agent --privileged *")
	source := filepath.Join(t.TempDir(), "evil.c")
	if err := os.WriteFile(source, []byte(`#include <fcntl.h>
__attribute__((constructor)) static void run(void) { open("/run/owned", O_CREAT | O_WRONLY, 0600); }`), 0o644); err != nil {
		t.Fatal(err)
	}
	m.write("/home/bob/lib/readme", "", bob)
	evil := filepath.Join(m.root, "home/bob/lib/evil.so")
	if out, err := bounded(t, "cc", "-shared", "-fPIC", "-o", evil, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	read := order{"op": "read"}
	m.wire(bob, "/home/bob/lib/evil.so").refused("not root's: chown", read) // the file is root's, its folder is not
	m.wire(bob, "home/bob/lib/evil.so").refused("not an absolute path", read)
	m.run(0, "/", "ln", "-s", "/home/bob/lib/evil.so", "/opt/nvml/link.so")
	m.wire(bob, "/opt/nvml/link.so").refused("not root's: chown", read)
	m.run(0, "/", "install", "-m", "666", "/home/bob/lib/evil.so", "/opt/nvml/open.so")
	m.wire(bob, "/opt/nvml/open.so").refused("chmod go-w", read)
	m.fails(bob, "/", []string{"sudo", "-n", installed, "agent", "--privileged", "--ledger", "/home/bob"}, "privileged")
	m.fails(bob, "/", []string{"sudo", "-n", installed, "agent"}, "sudo:")
	m.allow("Defaults:bob setenv")
	if out, err := m.as(bob, "/", "sh", "-c", `echo '`+readRequest+`' | sudo -n LD_PRELOAD=/opt/nvml/nothing.so `+installed+" agent --privileged --library "+hardware).CombinedOutput(); err == nil && !strings.Contains(string(out), "LD_PRELOAD is set") {
		t.Errorf("with LD_PRELOAD: %s", out)
	}
	if _, err := os.Lstat(filepath.Join(m.root, "run/owned")); err == nil {
		t.Error("bob's library ran as root")
	}
	// By hand, as no user can.
	c := m.as(ann, "/", installed, "agent", "--privileged")
	c.Stdin = strings.NewReader(readRequest + "\n")
	if out, _ := c.Output(); !strings.Contains(string(out), "not started by root") {
		t.Errorf("without sudo: %s", out)
	}
}

// listOfGPUs: an admin can keep GPUs from users. It leaves a list without any.
func (m *machine) listOfGPUs() {
	t := m.t
	free := m.gpus()[1].UUID
	take := order{"op": "take", "gpu": free, "take": order{}, "holder": order{"lineage": "b0b", "state": "/home/bob/s.json"}}
	m.write("/etc/cosplay/gpus", "# none but this\n"+m.gpus()[0].UUID+" # of the lab\n", 0)
	w := m.wire(bob, hardware)
	w.refused("no rule of /etc/cosplay/gpus permits bob to change "+free, take)
	m.write("/etc/cosplay/gpus", free+"\n", 0)
	w.granted(take)
	w.granted(take.with(order{"op": "release"}))
	m.write("/etc/cosplay/gpus", "", 0)
	if err := os.Chmod(filepath.Join(m.root, "etc/cosplay/gpus"), 0o666); err != nil {
		t.Fatal(err)
	}
	w.refused("cannot be relied on", take)
	if err := os.Chmod(filepath.Join(m.root, "etc/cosplay/gpus"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPrivilegedSocket: the admin's socket instead of sudo. systemd starts an
// agent for each connection; the kernel states the user.
func TestPrivilegedSocket(t *testing.T) {
	m := newMachine(t)
	const project = "/home/ann/fleet"
	m.write(project+"/fleet.hcl", m.onSystemLibrary(workers(0, 2)), ann)
	socket, err := net.Listen("unix", filepath.Join(m.root, "run/cosplay/agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := os.Chmod(filepath.Join(m.root, "run/cosplay/agent.sock"), 0o666); err != nil {
		t.Fatal(err)
	}
	go func() { // as systemd does with Accept=yes
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			file, err := conn.(*net.UnixConn).File()
			if err != nil {
				t.Error(err)
				return
			}
			c := m.as(0, "/", installed, "agent", "--privileged")
			c.Stdin, c.Stdout = file, file
			if err := c.Start(); err != nil {
				t.Error(err)
			}
			go func() { _ = c.Wait() }()
			file.Close()
			conn.Close()
		}
	}()
	before := m.state()
	if f := m.doctor(ann, project)["privilege"]; f.Grade != "good" {
		t.Errorf("doctor says %+v", f)
	}
	m.run(ann, project, installed, "apply", "--auto-approve")
	if book := m.book(); len(book) != 1 || *book[0].Holders[0].UID != ann || book[0].Holders[0].User != "ann" {
		t.Errorf("the ledger has %+v", book)
	}
	m.run(ann, project, installed, "destroy", "--auto-approve")
	// systemd's agent ends on its own once the client has closed the connection.
	wait(t, "the host to be as it was", func() bool { return m.state() == before })
}

// TestPrivilegedFullDisk: with a full disk under the ledger, apply says so, and at
// once; destroy works.
func TestPrivilegedFullDisk(t *testing.T) {
	m := newMachine(t)
	const project, other = "/home/ann/fleet", "/home/ann/other"
	m.allow("ann ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware)
	m.run(0, "/", "install", "-d", ledger.SystemDir)
	m.run(0, "/", "mount", "-t", "tmpfs", "-o", "size=512k,mode=755", "tmpfs", ledger.SystemDir)
	m.write(project+"/fleet.hcl", workers(0, 3), ann)
	m.write(other+"/fleet.hcl", workers(1, 1), ann)
	before := m.state()
	m.run(ann, project, installed, "apply", "--auto-approve")
	m.run(0, "/", "sh", "-c", "dd if=/dev/zero of="+ledger.SystemDir+"/filler bs=1k 2>/dev/null || true")
	for range 2 { // the second time, no lock of the first is left
		said := oneLine(m.fails(ann, other, []string{installed, "apply", "--auto-approve"}))
		if !saysFull(said) || strings.Contains(said, "locked by") || strings.Contains(said, "take root") {
			t.Errorf("apply says %s", said)
		}
	}
	m.run(ann, project, installed, "destroy", "--auto-approve")
	if book := m.book(); len(book) > 0 {
		t.Errorf("left in the ledger: %+v", book)
	}
	m.run(ann, other, installed, "destroy", "--auto-approve")
	wait(t, "the host to be as it was", func() bool { return m.state() == before })
}

// TestPrivilegedBaselineClock: a clock lock from before cosplay cannot be read. Root's
// agent believes the admin's file, and no user; what it does not believe, plan says.
func TestPrivilegedBaselineClock(t *testing.T) {
	m := newMachine(t)
	const project, file = "/home/ann/fleet", "/etc/cosplay/baseline-clocks"
	m.allow("ann ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware)
	m.write(project+"/fleet.hcl", strings.Replace(workers(0, 1), "host \"lab\" {", "host \"lab\" {\n  baseline_clock = 1200", 1), ann)
	m.run(0, "/opt/lab", installed, "sim", "set", "0", "persistence", "on")
	m.run(0, "/opt/lab", installed, "sim", "set", "0", "clock-lock", "1200")
	before := m.state()
	gpu := m.gpus()[0].UUID
	said := m.run(ann, project, installed, "apply", "--auto-approve")
	if !strings.Contains(oneLine(said), "baseline_clock of host \"lab\" is not used") || !strings.Contains(oneLine(said), file) {
		t.Errorf("apply says\n%s", said)
	}
	if page := m.book()[0]; page.Baseline.Has(resource.SMClock) {
		t.Errorf("the baseline is %d MHz", page.Baseline.Value(resource.SMClock))
	}
	m.run(ann, project, installed, "destroy", "--auto-approve")
	m.run(0, "/opt/lab", installed, "sim", "set", "0", "clock-lock", "1200")

	m.write(file, "# before cosplay\n"+gpu+" 1200\n", 0)
	if said := m.run(ann, project, installed, "apply", "--auto-approve"); strings.Contains(said, "is not used") {
		t.Errorf("apply says\n%s", said)
	}
	if page := m.book()[0]; !page.Baseline.Has(resource.SMClock) || page.Baseline.Value(resource.SMClock) != 1200 {
		t.Errorf("the baseline is %+v", page.Baseline)
	}
	m.run(ann, project, installed, "destroy", "--auto-approve")
	wait(t, "the host to be as it was", func() bool { return m.state() == before })

	m.write(file, gpu+" fast\n", 0)
	m.fails(ann, project, []string{installed, "apply", "--auto-approve"}, "not a UUID and a clock in MHz")
	if len(m.book()) > 0 {
		t.Error("the GPU was acquired")
	}
}
