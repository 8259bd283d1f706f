package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cosplay/internal/durable"
	"cosplay/internal/ledger"
	"cosplay/internal/need"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// rootsDir is a folder whose way is root's alone: no temporary one is.
func rootsDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/usr/local/lib", "cosplay-test-")
	if err != nil {
		need.Lacking(t, "%v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Trusted(dir); err != nil {
		need.Lacking(t, "no folder here is root's alone: %v", err)
	}
	return dir
}

func TestTrusted(t *testing.T) {
	need.Root(t)
	dir := rootsDir(t)
	file, sub := filepath.Join(dir, "sub", "file"), filepath.Join(dir, "sub")
	set := func(path string, mode os.FileMode, uid, gid int) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir() // on a way that others can write to
	for name, target := range map[string]string{
		filepath.Join(dir, "good"):       file,
		filepath.Join(dir, "relative"):   "sub/../sub/file",
		filepath.Join(dir, "loop"):       "loop",
		filepath.Join(dir, "out"):        filepath.Join(elsewhere, "file"),
		filepath.Join(elsewhere, "in"):   file, // a change of the link happens before it is followed
		filepath.Join(elsewhere, "file"): filepath.Join(elsewhere, "real"),
		filepath.Join(dir, "folder"):     sub,
	} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "real"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(path, want string) {
		t.Helper()
		real, err := trustedFile(path)
		switch {
		case want == "" && (err != nil || real != file):
			t.Errorf("%s: %q, %v", path, real, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	check(file, "")
	check(filepath.Join(dir, "good"), "")
	check(filepath.Join(dir, "relative"), "")
	check(filepath.Join(elsewhere, "in"), "")
	check(filepath.Join(dir, "folder", "file"), "")
	check(filepath.Join(dir, "loop"), "too many links")
	check(filepath.Join(dir, "out"), "chmod go-w /tmp")
	check(filepath.Join(dir, "folder"), "not a file")
	check(filepath.Join(dir, "nothing"), "no such file")
	check("sub/file", "not an absolute path")
	check("", "not an absolute path")
	for _, path := range []string{file, sub, dir} {
		for _, wrong := range []struct {
			mode     os.FileMode
			uid, gid int
			want     string
		}{
			{0o775, 0, 0, "chmod go-w " + path}, {0o757, 0, 0, "chmod go-w " + path},
			{0o777 | os.ModeSticky, 0, 0, "chmod go-w " + path}, {0o755, 1234, 0, "not root's: chown root " + path},
		} {
			set(path, wrong.mode, wrong.uid, wrong.gid)
			check(file, wrong.want)
			set(path, 0o755, 0, 1234) // a group that may not write is no harm
			check(file, "")
		}
	}
}

func TestCaller(t *testing.T) {
	need.Root(t)
	files := make([]*os.File, 2)
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, fd := range pair {
		files[i] = os.NewFile(uintptr(fd), "socket")
		defer files[i].Close()
	}
	listener, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	inet, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	defer inet.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, test := range []struct {
		environ []string
		in      *os.File
		uid     int
		want    string
	}{
		{[]string{"SUDO_UID=1234", "PATH=/bin"}, r, 1234, ""},
		{[]string{"SUDO_UID=1234"}, files[0], 1234, ""}, // root's socket in a user's hand
		{nil, files[0], 0, ""},
		{nil, r, 0, "cannot determine the user"},
		{nil, inet, 0, "cannot determine the user"},
		{[]string{"SUDO_UID="}, r, 0, "cannot determine the user"},
		{[]string{"SUDO_UID=-1"}, r, 0, "SUDO_UID is"},
		{[]string{"SUDO_UID=4294967295"}, r, 0, "SUDO_UID is"},
		{[]string{"SUDO_UID=root"}, r, 0, "SUDO_UID is"},
		{[]string{"SUDO_UID=1234", "LD_PRELOAD=/x.so"}, r, 0, "LD_PRELOAD is set"},
		{[]string{"SUDO_UID=1234", "LD_LIBRARY_PATH=/x"}, r, 0, "LD_LIBRARY_PATH is set"},
	} {
		g, err := newGuard(test.environ, test.in)
		switch {
		case test.want == "" && (err != nil || g.uid != test.uid || g.policy != PolicyFile):
			t.Errorf("%v: %+v, %v", test.environ, g, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%v: %v, want %q", test.environ, err, test.want)
		}
	}
}

// TestAbandoned: the agent begins no change for a client that has ended.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	models := []resource.Model{{Name: "NVIDIA L4", ComputeCapability: "8.9", SMs: 58, MemoryMiB: 23034, ClocksMHz: []int{210}, FP32PerSM: 128, BandwidthGBs: 300, PowerMinMW: 40000, PowerDefaultMW: 72000, PowerMaxMW: 72000}}
	if err := sim.Create(dir, models, sim.Options{}); err != nil {
		t.Fatal(err)
	}
	lib, err := open(sim.LibraryPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer lib.close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lib.book, lib.client = ledger.Book{Dir: t.TempDir()}, r
	lib.guard = &guard{uid: 1234, user: "ann", policy: filepath.Join(t.TempDir(), "none")}
	host, err := lib.read()
	if err != nil {
		t.Fatal(err)
	}
	take := func() string {
		answer := lib.handle(request{Op: opTake, GPU: host.GPUs[0].UUID, Take: &ledger.Take{}, Holder: resource.Holder{Lineage: "a", State: "/s"}}, changeDeadline)
		if answer.Error != nil {
			return answer.Error.Message
		}
		return ""
	}
	if said := take(); said != "" {
		t.Fatal(said)
	}
	w.Close()
	for _, g := range []*guard{lib.guard, nil} { // of root's agent and of the user's own
		lib.guard = g
		if said := take(); !strings.Contains(said, "has ended") {
			t.Errorf("got %q", said)
		}
	}
}

func TestSudoersLine(t *testing.T) {
	for want, got := range map[string]string{
		"ann ALL=(root) NOPASSWD: /usr/local/bin/cosplay agent --privileged":                              sudoersLine("ann", "/usr/local/bin/cosplay", ""),
		`LAB\\ann ALL=(root) NOPASSWD: /a\ b/cosplay agent --privileged --library /c\,d\:e\=f\*/lib.so.1`: sudoersLine(`LAB\ann`, "/a b/cosplay", "/c,d:e=f*/lib.so.1"),
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestRefused: a rule is not proposed for a binary that others can change, as
// that of this test.
func TestRefused(t *testing.T) {
	if binary, err := os.Executable(); err == nil {
		if _, err := Trusted(binary); err == nil {
			need.Lacking(t, "the test's own program is root's alone: run it by go test, which puts it into a temporary folder")
		}
	}
	t.Setenv("PATH", t.TempDir()) // without sudo
	client := New(Options{Library: "/opt/lib.so", Privileged: true, User: "ann"})
	defer client.Close()
	err := change(client, "GPU-x", resource.MIGMode, resource.On)
	var refused *SudoError
	if !errors.As(err, &refused) || !strings.Contains(refused.Fix, " "+Installed+"\n") || refused.Line != sudoersLine("ann", Installed, "/opt/lib.so") {
		t.Errorf("got %v", err)
	}
}

// TestSystemdUnits: they start the very command that root serves.
func TestSystemdUnits(t *testing.T) {
	units := SystemdUnits("/usr/local/bin/cosplay")
	for _, want := range []string{"ListenStream=" + adminSocket, "Accept=yes", "StandardInput=socket", "ExecStart=" + strings.Join(rootCommand("/usr/local/bin/cosplay", ""), " ") + "\n"} {
		if !strings.Contains(units, want) {
			t.Errorf("no %q in\n%s", want, units)
		}
	}
}

// TestReadWaits: a reader waits while another agent is in the middle of a change.
func TestReadWaits(t *testing.T) {
	dir := t.TempDir()
	_, client := newHost(t, Options{Ledger: dir}, "h200")
	done, err := durable.Announce(filepath.Join(dir, "moving"))
	if err != nil {
		t.Fatal(err)
	}
	slow := New(client.reads.options)
	slow.reads.options.Deadline = 200e6
	defer slow.Close()
	if _, err := slow.Read(t.Context(), resource.MPSSearch{}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d is still changing", os.Getpid())) {
		t.Errorf("got %v", err)
	}
	done()
	read(t, slow)
}
