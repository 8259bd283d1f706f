package mps

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cosplay/internal/need"
	"cosplay/internal/resource"
)

const gpu = "GPU-11112222-3333-4444-5555-666677778888"

// real is a service with NVIDIA's own control daemon, which starts without a GPU.
func real(t *testing.T) (Service, resource.MPS) {
	t.Helper()
	dir, there := need.MPS(t)
	if !there {
		t.Skip("there is no " + resource.MPSControl)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	short, err := os.MkdirTemp("", "mps") // a Unix socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	s := Service{Dir: filepath.Join(short, "cosplay", "mps", "5a5a5a5a")}
	m := resource.MPS{Folder: filepath.Join(s.Dir, "00c0ffee"), Percent: 30, MemoryMiB: 6656}
	t.Cleanup(func() {
		if err := s.Stop(t.Context(), m); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		for _, p := range using(m) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		_ = os.RemoveAll(short)
	})
	return s, m
}

func run(t *testing.T, s Service, m resource.MPS) {
	t.Helper()
	if err := s.Run(t.Context(), gpu, m); err != nil {
		t.Fatal(err)
	}
	if d := now(t, s, m); !d.Has(m) {
		t.Fatalf("%+v does not have %+v", d, m)
	}
}

func now(t *testing.T, s Service, m resource.MPS) resource.MPSDaemon {
	t.Helper()
	all, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, _ := all.Daemon(m.Folder)
	return d
}

// pid is the one process of a daemon.
func pid(t *testing.T, m resource.MPS) int {
	t.Helper()
	all := using(m)
	if len(all) != 1 {
		t.Fatalf("the daemon has processes %v", all)
	}
	return all[0].pid
}

// TestDaemon gives NVIDIA's daemon each command that cosplay uses. Its log shows what it understood.
func TestDaemon(t *testing.T) {
	s, m := real(t)
	if d := now(t, s, m); d.Running {
		t.Fatalf("it runs already: %+v", d)
	}
	run(t, s, m)
	first := pid(t, m)
	info, err := os.Stat(m.Folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("other users can enter the folder of the daemon: %v %v", info, err)
	}
	run(t, s, m)
	if pid(t, m) != first {
		t.Error("a daemon that runs was started again")
	}
	more := m
	more.Percent, more.MemoryMiB = 55, 700
	run(t, s, more)
	if d := now(t, s, m); d.Has(m) || d.Percent != 55 || d.MemoryMiB != 700 {
		t.Errorf("after a change it is %+v", d)
	}
	var log []byte
	for _, command := range []string{"get_server_list", "set_default_device_pinned_mem_limit 0 6656M", "set_default_active_thread_percentage 30",
		"get_default_active_thread_percentage", "get_default_device_pinned_mem_limit 0", "set_default_active_thread_percentage 55"} {
		for tries := 50; !strings.Contains(string(log), "Cmd:"+command+"\n"); tries-- { // the daemon writes it after its answer
			if tries == 0 {
				t.Errorf("the daemon has no command %q", command)
				break
			}
			time.Sleep(100 * time.Millisecond)
			if log, err = os.ReadFile(filepath.Join(m.Logs(), "control.log")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, complaint := range []string{"Unknown", "Invalid", "rror"} {
		if strings.Contains(string(log), complaint) {
			t.Errorf("the daemon complains:\n%s", log)
		}
	}
	if err := s.Stop(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Dir); err == nil || len(using(m)) > 0 {
		t.Errorf("something is left: %v %v", err, using(m))
	}
	if err := s.Stop(t.Context(), m); err != nil {
		t.Errorf("what is stopped cannot be stopped again: %v", err)
	}
}

// TestLost starts a daemon that was killed, and replaces one that does not answer. The pipe folder stays the one that
// containers have mounted.
func TestLost(t *testing.T) {
	s, m := real(t)
	run(t, s, m)
	folder := func() uint64 {
		info, err := os.Stat(m.Pipes())
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	before := folder()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		old := pid(t, m)
		if err := syscall.Kill(old, signal); err != nil {
			t.Fatal(err)
		}
		if signal == syscall.SIGKILL {
			for len(using(m)) > 0 {
				time.Sleep(pollEvery)
			}
		}
		d := now(t, s, m)
		if silent := signal == syscall.SIGSTOP; d.Running != silent || (d.Silent != "") != silent {
			t.Errorf("after %s: %+v", signal, d)
		}
		run(t, s, m)
		if pid(t, m) == old {
			t.Errorf("after %s the daemon is the same", signal)
		}
	}
	old := pid(t, m)
	if err := s.Run(t.Context(), "MIG-5c2e0000", m); err != nil || pid(t, m) == old || using(m)[0].visible != "MIG-5c2e0000" {
		t.Errorf("a daemon for another slice goes on: %v", err)
	}
	if folder() != before {
		t.Error("the pipe folder is another one")
	}
}

// TestForeign finds a daemon that another program has started, and leaves it alone.
func TestForeign(t *testing.T) {
	s, m := real(t)
	other := resource.MPS{Folder: t.TempDir()}
	for _, dir := range []string{other.Pipes(), other.Logs()} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(Program(), "-d")
	command.Env = append(environment(other), "CUDA_VISIBLE_DEVICES="+gpu[:12])
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	foreign := pid(t, other)
	defer func() { _ = syscall.Kill(foreign, syscall.SIGKILL) }()
	run(t, s, m)
	all, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all.Foreign, func(d resource.ForeignDaemon) bool { return d.PID == foreign })
	if i < 0 {
		t.Fatalf("the foreign daemon %d is not among %+v", foreign, all.Foreign)
	}
	d := all.Foreign[i]
	if d.Pipe != other.Pipes() || d.User == "" || !d.Serves(resource.GPU{UUID: gpu}, false) || d.Serves(resource.GPU{UUID: "GPU-9"}, true) {
		t.Errorf("it is read as %+v", d)
	}
	if err := s.Stop(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if pid(t, other) != foreign {
		t.Error("the foreign daemon has ended")
	}
}

// TestFolder: a state that names another folder makes cosplay touch nothing there.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "cosplay", "mps", "5a5a5a5a")
	service := Service{Dir: own}
	make := func(parts ...string) string {
		path := filepath.Join(parts...)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	make(own, "00000001", "pipe")
	make(own, "00000001", "log")
	make(own, "00000002", "thesis")
	make(dir, "home", "pipe")
	if err := os.Symlink(filepath.Join(dir, "home"), filepath.Join(own, "00000003")); err != nil {
		t.Fatal(err)
	}
	for folder, fine := range map[string]bool{
		own + "/00000001": true, own + "/00000009": true, own + "/00000002": false, own + "/00000003": false,
		dir + "/home": false, own + "/../5a5a5a5a/00000001": false, "cosplay/mps/5a5a5a5a/00000001": false, "": false,
	} {
		if err := service.check(folder); (err == nil) != fine {
			t.Errorf("%q: %v", folder, err)
		}
		if fine {
			continue
		}
		m := resource.MPS{Folder: folder, MemoryMiB: 512}
		if service.Run(t.Context(), gpu, m) == nil || service.Stop(t.Context(), m) == nil {
			t.Errorf("%q is used", folder)
		}
	}
	for _, path := range []string{own + "/00000002/thesis", own + "/00000003", dir + "/home/pipe"} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	service.As = &syscall.Credential{Uid: uint32(os.Geteuid()) + 1}
	if service.check(own+"/00000001") == nil {
		t.Error("the folder of another user is used")
	}
}

// TestOthers: root finds the control daemon of another user, with the GPUs that it serves, and not that of the user.
func TestOthers(t *testing.T) {
	need.Root(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	installed, users, link := filepath.Join(t.TempDir(), resource.MPSControl), filepath.Join(t.TempDir(), resource.MPSControl), filepath.Join(t.TempDir(), resource.MPSControl)
	for _, program := range []string{installed, users} {
		if err := os.WriteFile(program, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chown(users, 4242, 4242), os.Symlink(sleep, link)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, variable, want string }{
		{installed, "CUDA_VISIBLE_DEVICES=GPU-7", "GPU-7"},
		{installed, "USER=root", "GPU-1,GPU-2"},
		{installed, "CUDA_VISIBLE_DEVICES=", ""},
		{users, "USER=root", ""},
		{link, "USER=root", ""},
	} {
		command := exec.Command(c.program, "60")
		command.Env = []string{"HOME=/", c.variable}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		found := func(uid int) (all []resource.ForeignDaemon) {
			return slices.DeleteFunc(Others(uid, "GPU-1,GPU-2"), func(d resource.ForeignDaemon) bool { return d.PID != command.Process.Pid })
		}
		if all := found(4242); c.want == "" && len(all) > 0 || c.want != "" && (len(all) != 1 || all[0].GPUs != c.want || all[0].User != "root" || all[0].Pipe != "") {
			t.Errorf("%s %s: another user's daemon is read as %+v", c.program, c.variable, all)
		}
		if all := found(0); len(all) != 0 {
			t.Errorf("the user's own daemon is read as %+v", all)
		}
		_ = command.Process.Kill()
		_ = command.Wait()
	}
}

// TestSilentDaemons: daemons that hang do not keep the others from being asked.
func TestSilentDaemons(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	s := Service{Dir: filepath.Join(dir, "cosplay", "mps", "5a5a5a5a")}
	program := "#!/bin/sh\ncase $CUDA_MPS_PIPE_DIRECTORY in */hangs*) exec sleep 60;; esac\necho 100\n"
	if err := os.WriteFile(filepath.Join(dir, resource.MPSControl), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	var folders []string
	var running []process
	for _, name := range []string{"hangs1", "hangs2", "hangs3", "hangs4", "sound"} {
		m := resource.MPS{Folder: filepath.Join(s.Dir, name)}
		if err := os.MkdirAll(m.Folder, 0o755); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, m.Folder)
		running = append(running, process{pid: 1, control: true, pipe: m.Pipes()})
	}
	begun := time.Now()
	all := s.daemons(t.Context(), Program(), folders, running)
	if took := time.Since(begun); took > 3*answerTime {
		t.Errorf("took %s", took)
	}
	for _, d := range all {
		if silent := d.Silent != ""; silent == strings.HasSuffix(d.Folder, "sound") {
			t.Errorf("%+v", d)
		}
	}
}

// TestAskedAtOnce: the daemon answers one command at a time. Others that ask it meanwhile get the whole answer, and it is
// not taken for one that does not answer, which would end the programs that it serves.
func TestAskedAtOnce(t *testing.T) {
	s, m := real(t)
	run(t, s, m)
	first := pid(t, m)
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for range 5 {
				if all, err := s.Read(t.Context()); err != nil {
					t.Error(err)
				} else if d, _ := all.Daemon(m.Folder); !d.Has(m) {
					t.Errorf("it is read as %+v", d)
				}
				if err := s.Run(t.Context(), gpu, m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asking.Wait()
	if pid(t, m) != first {
		t.Error("the daemon was started again")
	}
}
