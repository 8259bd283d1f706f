package disguise_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/need"
	"cosplay/internal/resource"
)

// devices is a session with several GPUs of one host, each of which is an RTX 2060.
type devices struct {
	cudaSession
	machine
	gpus []string // UUIDs, in the order of the session's devices
}

// newDevices returns a session on GPUs 2 and 0 of three: the order of the session is not that of the host.
func newDevices(t testing.TB, shared bool) devices {
	t.Helper()
	m := newMachine(t, "l40s", "l40s", "l40s")
	d := devices{machine: m}
	var devices []resource.Handle
	for _, i := range []int{2, 0} {
		uuid := m.gpu(t, i).UUID
		d.gpus = append(d.gpus, uuid)
		devices = append(devices, resource.Handle{UUID: uuid, Shared: shared})
	}
	d.cudaSession = m.installCUDA(t, "rtx-2060", d.gpus[0])
	check(t, disguise.WriteFigures(d.file("figures"), session(t, "rtx-2060").Target, devices...))
	check(t, disguise.MakeUsage(d.file("usage"), len(devices)))
	d.cudaSession.slice = strings.Join(d.gpus, ",")
	return d
}

func (d devices) file(name string) string { return filepath.Join(d.cudaSession.dir, name) }

// wantAccounts compares the allocated MiB and the refusals of each device.
func (d devices) wantAccounts(t *testing.T, want string) {
	t.Helper()
	accounts, err := disguise.ReadAccounts(d.file("usage"))
	check(t, err)
	var got []string
	for _, a := range accounts {
		got = append(got, fmt.Sprintf("%d refused %d processes %d", a.Total/mib, a.Refused, len(a.Processes)))
	}
	if got := strings.Join(got, ", "); got != want {
		t.Errorf("the accounts are %q, want %q", got, want)
	}
}

// play sends commands to a program: "COMMAND = ANSWER", the answer is 0 by default.
func (h *holder) play(t *testing.T, story string) {
	t.Helper()
	for order := range strings.SplitSeq(story, ", ") {
		what, want, told := strings.Cut(order, " = ")
		if !told {
			want = "0"
		}
		if got := h.ask(what); got != want {
			t.Fatalf("%q of %q is answered %q, want %q", order, story, got, want)
		}
	}
}

// Each device has the target's memory, whatever function allocates it and whichever device is current meanwhile, and
// what is freed returns to the device that it was of.
func TestSeveralDevices(t *testing.T) {
	program := compiled(t, "devices")
	for name, story := range map[string]struct{ does, accounts string }{
		"linear":             {"use 0, take 5000, use 1, take 5000, take 2000 = 2, free 0, take 2000 = 2, use 0, take 5000, take 2000 = 2", "5000 refused 1 processes 1, 5000 refused 2 processes 1"},
		"freed elsewhere":    {"use 0, take 5000, use 1, take 100, free 0, use 0, free 1", "0 refused 0 processes 0, 0 refused 0 processes 0"},
		"physical":           {"use 1, take 100, create 0 5000, create 1 5000, create 0 2000 = 2, use 0, release 1", "5000 refused 1 processes 1, 100 refused 0 processes 1"},
		"mapped in a row":    {"use 0, map 3000, use 1, take 4000 = 2, unmap, take 4000", "0 refused 0 processes 0, 4000 refused 1 processes 1"},
		"pools":              {"use 0, async 4992, use 1, async 4992, async 2000 = 2, free-async 0, use 0, async 4992", "4992 refused 0 processes 1, 4992 refused 1 processes 1"},
		"another's pool":     {"use 0, pool 1 5000, use 1, take 2000 = 2, use 0, take 5000", "5000 refused 0 processes 1, 5000 refused 1 processes 1"},
		"another's stream":   {"use 0, stream 1 4992, stream 1 2016 = 2, use 1, take 2000 = 2, use 0, take 5000", "5000 refused 0 processes 1, 4992 refused 2 processes 1"},
		"graphs":             {"use 1, take 5000, use 0, graph 0 5000, graph 1 5000 = 2, take 2000 = 2, trim, take 2000", "2000 refused 1 processes 1, 5000 refused 1 processes 1"},
		"an ended context":   {"use 0, take 5000, use 1, take 5000, reset 0, use 0, take 5000", "5000 refused 0 processes 1, 5000 refused 0 processes 1"},
		"another program":    {"use 1, take 5000, exec = ready, use 0, take 1000", "1000 refused 0 processes 1, 0 refused 0 processes 0"},
		"more than a target": {"use 1, take 6145 = 2, use 0, take 1", "1 refused 0 processes 1, 0 refused 1 processes 0"},
	} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, shared %v", name, shared), func(t *testing.T) {
				d := newDevices(t, shared)
				d.hold(t, program).play(t, story.does)
				d.wantAccounts(t, story.accounts)
			})
		}
	}
}

// Two programs fill a device each at the same time; a third finds both full.
func TestFullDevices(t *testing.T) {
	program := compiled(t, "devices")
	d := newDevices(t, true)
	first, second, third := d.hold(t, program), d.hold(t, program), d.hold(t, program)
	first.play(t, "use 0, take 6144, info = 0 of 6144")
	second.play(t, "use 1, info = 6144 of 6144, take 6000, info = 144 of 6144")
	third.play(t, "use 0, take 1 = 2, use 1, take 145 = 2, take 144, info = 0 of 6144")
	d.wantAccounts(t, "6144 refused 1 processes 1, 6144 refused 1 processes 2")
	first.kill()
	third.play(t, "use 0, info = 6144 of 6144, take 6144")
	u, err := disguise.ReadUsage(d.file("usage"))
	check(t, err)
	if u.Total != 12288*mib || u.Refused != 2 || len(u.Peaks) != 2 {
		t.Errorf("of both devices together it reports %+v", u)
	}
	check(t, disguise.ForgetPeak(d.file("usage")))
	accounts, err := disguise.ReadAccounts(d.file("usage"))
	check(t, err)
	for i, a := range accounts {
		if a.Peak != 0 || a.Refused != 0 || a.Total != 6144*mib {
			t.Errorf("device %d keeps %+v", i, a)
		}
	}
}

// CUDA shows the session's devices and no other GPU of the host, in the order that the program asks for.
func TestVisibleDevicesOfSeveral(t *testing.T) {
	program := compiled(t, "devices")
	d := newDevices(t, false)
	both := fmt.Sprintf("2 %s 6144 %s 6144", d.gpus[0], d.gpus[1])
	foreign := d.gpu(t, 1).UUID
	for visible, want := range map[string]string{
		"unset": both, "0,1": both, "0,1,2": both, d.cudaSession.slice: both, "1,0": fmt.Sprintf("2 %s 6144 %s 6144", d.gpus[1], d.gpus[0]),
		"0": "1 " + d.gpus[0] + " 6144", "1": "1 " + d.gpus[1] + " 6144", d.gpus[1][:12]: "1 " + d.gpus[1] + " 6144",
		d.gpus[1] + "," + foreign + ",0": "1 " + d.gpus[1] + " 6144",
	} {
		c := d.command(program, d.facade())
		c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CUDA_VISIBLE_DEVICES=") })
		if visible != "unset" {
			c.Env = append(c.Env, "CUDA_VISIBLE_DEVICES="+visible)
		}
		if got := holdOn(t, c).ask("list"); got != want {
			t.Errorf("with %s it has %q, want %q", visible, got, want)
		}
	}
	// The one device that such a program has is counted as the session's second.
	c := d.command(program, d.facade())
	c.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES=1")
	holdOn(t, c).play(t, "use 0, take 5000")
	d.wantAccounts(t, "0 refused 0 processes 0, 5000 refused 0 processes 1")
}

// NVML shows n devices, each with its own memory and processes, and no other GPU of the host.
func TestNVMLOfSeveralDevices(t *testing.T) {
	d := newDevices(t, true)
	d.hold(t, compiled(t, "devices")).play(t, "use 1, take 3000")
	library := lib(d.cudaSession.dir) + "/" + driver.NVML
	foreign := d.gpu(t, 1).UUID
	ask(t, library, d.gpus[0], d.gpus[1], foreign).expect(t, answers{
		"count": 2, "first": 0, "second": 0, d.gpus[0]: 0, d.gpus[1]: 0, foreign: 6,
		"uuid": d.gpus[0], "index": 0, "name": "NVIDIA GeForce RTX 2060", "processes": "[]",
		"memory": memory("Free", 6144, "Total", 6144, "Used", 0),
	})
	judge, ok := need.Judge(t)
	if !ok {
		return
	}
	out, code := smi(t, judge, lib(d.cudaSession.dir), "--query-gpu=index,uuid,name,memory.used,memory.total", "--format=csv,noheader,nounits")
	want := fmt.Sprintf("0, %s, NVIDIA GeForce RTX 2060, 0, 6144\n1, %s, NVIDIA GeForce RTX 2060, 3000, 6144\n", d.gpus[0], d.gpus[1])
	if out != want || code != 0 {
		t.Errorf("nvidia-smi reports %d %q, want %q", code, out, want)
	}
	out, _ = smi(t, judge, lib(d.cudaSession.dir), "--query-compute-apps=gpu_uuid,used_memory", "--format=csv,noheader,nounits")
	if out != d.gpus[1]+", 3000\n" {
		t.Errorf("nvidia-smi lists the processes %q", out)
	}
}

// The files of one device are those of version 1, which running programs have mapped. A device without an account in
// the file is limited as without a file: for each program.
func TestFilesOfOneDevice(t *testing.T) {
	const sizeOfAccount = atSlots + 512*slotSize
	d := newDevices(t, true)
	check(t, os.Remove(d.file("usage")))
	check(t, disguise.MakeUsage(d.file("usage"), 1))
	before, err := os.ReadFile(d.file("usage"))
	check(t, err)
	if want := "COSPUSE\x00\x01\x00\x00\x00\x38\x30\x00\x00"; len(before) != sizeOfAccount || string(before[:16]) != want {
		t.Errorf("it has %d bytes and begins with %q, want %d and %q", len(before), before[:16], sizeOfAccount, want)
	}
	h := d.hold(t, compiled(t, "devices"))
	h.play(t, "use 0, take 6144, use 1, take 6144, take 1 = 2")
	d.wantAccounts(t, "6144 refused 0 processes 1")
	check(t, disguise.MakeUsage(d.file("usage"), 2))
	d.wantAccounts(t, "0 refused 0 processes 0, 0 refused 0 processes 0")
	if err := disguise.WriteFigures(d.file("none"), session(t, "rtx-2060").Target); err == nil {
		t.Error("figures of no device are written")
	}
	check(t, os.Truncate(d.file("usage"), sizeOfAccount))
	if _, err := disguise.ReadAccounts(d.file("usage")); err == nil || !strings.Contains(err.Error(), "replace the session") {
		t.Errorf("of one account of two the error is %v", err)
	}
}
