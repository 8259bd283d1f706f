package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cosplay/internal/agent"
	"cosplay/internal/need"
)

// bootSystemd makes a machine boot its systemd as process 1, in namespaces. All files are
// read-only but for those of the machine. It enables no unit of the real machine.
const bootSystemd = `set -e
rm -rf /etc/systemd/system /etc/init.d /etc/rc?.d /etc/fstab
cp -a /etc/systemd/kept /etc/systemd/system
mount -t cgroup2 cgroup2 /mnt
mkdir -p /mnt/$CGROUP
echo $$ >/mnt/$CGROUP/cgroup.procs
umount /mnt
exec unshare --mount --pid --cgroup --uts --ipc --fork sh -ec '
	mount -t proc proc /proc
	mount --bind /proc/sys /proc/sys
	mount -o remount,bind,ro /proc/sys
	umount -R /sys 2>/dev/null || true
	mount -t sysfs -o ro sysfs /sys
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mount -t tmpfs tmpfs /mnt
	mkdir /mnt/shm /mnt/pts
	mknod -m 666 /mnt/null c 1 3 # new nodes: systemd changes the modes of devices
	mknod -m 666 /mnt/zero c 1 5
	mknod -m 666 /mnt/full c 1 7
	mknod -m 666 /mnt/random c 1 8
	mknod -m 666 /mnt/urandom c 1 9
	mknod -m 666 /mnt/tty c 5 0
	mount --move /mnt /dev
	for folder in /run /tmp /var/tmp /var/log; do mount -t tmpfs -o mode=1777 tmpfs $folder; done
	mount -o remount,bind,ro /
	exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
'`

// boot boots the machine, with the units in /etc/systemd/kept, and enters it instead of
// its first namespace. It returns what ends it at once, like a loss of power.
func (m *machine) boot() (powerOff func()) {
	m.t.Helper()
	cgroup := fmt.Sprintf("cosplay-test-%d", os.Getpid())
	first := *m
	machine := m.as(0, "/", "env", "CGROUP="+cgroup, "sh", "-c", bootSystemd)
	machine.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said := &strings.Builder{}
	machine.Stdout, machine.Stderr = said, said
	if err := machine.Start(); err != nil {
		m.t.Fatal(err)
	}
	children := fmt.Sprintf("/proc/%d/task/%[1]d/children", machine.Process.Pid)
	pid := ""
	m.until("systemd runs", func() bool {
		data, _ := os.ReadFile(children)
		pid = strings.TrimSpace(string(data))
		name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
		return string(name) == "systemd\n"
	})
	m.pid, m.root = pid, "/proc/"+pid+"/root"
	off := false
	powerOff = func() {
		if off {
			return
		}
		off = true
		_ = exec.Command("kill", "-9", pid).Run()
		_ = machine.Wait()
		*m = first
		_ = first.as(0, "/", "sh", "-c", "mount -t cgroup2 cgroup2 /mnt && find /mnt/"+cgroup+" -depth -type d -exec rmdir {} +; umount /mnt").Run()
		if m.t.Failed() {
			m.t.Log(said)
		}
	}
	m.t.Cleanup(powerOff)
	m.until("systemd is up", func() bool {
		out, _ := m.inside(0, "/", "systemctl", "is-system-running").Output()
		state := strings.TrimSpace(string(out))
		return state == "running" || state == "degraded"
	})
	return powerOff
}

// inside is as, in all namespaces of a machine that has booted, and with the groups of /etc/group.
func (m *machine) inside(uid int, folder string, words ...string) *exec.Cmd {
	if uid == ann {
		words = append([]string{"runuser", "-u", "ann", "--", "env", "USER=ann", "HOME=/home/ann"}, words...)
	}
	c := m.as(0, folder, words...)
	c.Args = slices.Insert(c.Args, slices.Index(c.Args, "-m"), "-p", "-u", "-i", "-C")
	return c
}

func (m *machine) systemctl(words ...string) string {
	m.t.Helper()
	out, err := m.inside(0, "/", append([]string{"systemctl", "--no-pager"}, words...)...).CombinedOutput()
	if err != nil {
		journal, _ := m.inside(0, "/", "journalctl", "--no-pager", "-n", "40").CombinedOutput()
		m.t.Fatalf("systemctl %v: %v\n%s\n%s", words, err, out, journal)
	}
	return strings.TrimSpace(string(out))
}

func (m *machine) until(what string, holds func() bool) {
	m.t.Helper()
	for end := time.Now().Add(90 * time.Second); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			journal, _ := m.inside(0, "/", "journalctl", "--no-pager", "-n", "60").CombinedOutput()
			m.t.Fatalf("after 90 s it does not hold that %s\n%s", what, journal)
		}
	}
}

// install installs the units that doctor prints to a user, each in the file that the comment above it names.
func (m *machine) install(uid int, folder string) {
	m.t.Helper()
	m.write("/home/units", strings.ReplaceAll(m.run(uid, folder, installed, "doctor", "--systemd"), agent.Installed, installed), 0)
	m.run(0, "/", "awk", `/^# \/etc\/systemd\/system\//{f = "/etc/systemd/kept/" substr($2, 21)} /^# (Then|The fleet)/{f = ""} f{print >f}`, "/home/units")
}

// TestSystemd: under a real systemd, the units that doctor prints bring the fleet of a user up after a reboot into the
// same placements, keep it as it was applied, and start again when they are killed.
func TestSystemd(t *testing.T) {
	t.Parallel()
	need.Root(t, "systemctl", "unshare", "nsenter")
	m := newMachine(t)
	const fleet, name = "/home/ann/fleet", "fleet"
	m.write(fleet+"/cosplay.hcl", m.onSystemLibrary(workers(0, 3)), ann)
	m.run(0, "/", "sh", "-c", "echo cosplay:x:4321:ann >>/etc/group; mkdir -p /etc/systemd/kept")
	m.install(ann, fleet)
	m.write("/etc/systemd/kept/cosplay-watch-"+name+".service.d/soon.conf", "[Service]\nRestartSec=0\n", 0)
	wants := "/etc/systemd/kept/%s.target.wants"
	m.run(0, "/", "sh", "-ec", fmt.Sprintf(`d=%s; mkdir $d; ln -s ../cosplay-agent.socket $d/`, fmt.Sprintf(wants, "sockets")))
	m.run(0, "/", "sh", "-ec", fmt.Sprintf(`d=%s; mkdir $d; ln -s ../cosplay-boot-%s.service $d/`, fmt.Sprintf(wants, "multi-user"), name))
	m.run(0, "/", "sh", "-ec", fmt.Sprintf(`d=%s; mkdir $d; ln -s ../cosplay-boot-%s.timer $d/`, fmt.Sprintf(wants, "timers"), name))

	powerOff := m.boot()
	as := func(words ...string) string {
		t.Helper()
		out, err := m.inside(ann, fleet, append([]string{installed}, words...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
		return string(out)
	}
	as("apply", "--auto-approve")
	placement := func() string {
		var lines []string
		for line := range strings.Lines(as("state", "show", "worker-2")) {
			if kind := strings.Fields(line)[0]; kind == "GPU" || kind == "slice" || kind == "fit" {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	placed := placement()

	powerOff()
	m.run(0, "/opt/lab", installed, "sim", "reboot")
	m.boot()
	boot := "cosplay-boot-" + name
	m.until("the boot unit has run", func() bool {
		return m.systemctl("show", "-P", "ExecMainStatus,ActiveState,Result", boot+".service") != "" &&
			m.systemctl("show", "-P", "ExecMainExitTimestampMonotonic", boot+".service") != "0"
	})
	if got := m.systemctl("show", "-P", "Result", boot+".service"); got != "success" {
		t.Errorf("the boot unit: %s", got)
	}
	as("plan", "--detailed-exitcode")
	if now := placement(); now != placed || placed == "" {
		t.Errorf("after the reboot\n%s\nbefore\n%s", now, placed)
	}
	if next := m.systemctl("show", "-P", "NextElapseUSecMonotonic", boot+".timer"); next == "" || next == "infinity" {
		t.Errorf("the timer runs at %q", next)
	}

	watch := "cosplay-watch-" + name + ".service"
	m.systemctl("start", watch)
	pid := func() string { return m.systemctl("show", "-P", "MainPID", watch) }
	status := m.inside(0, "/", "grep", "-E", "^(Uid|NoNewPrivs):", "/proc/"+pid()+"/status")
	if out, _ := status.Output(); !strings.Contains(string(out), "Uid:\t1234\t1234") || !strings.Contains(string(out), "NoNewPrivs:\t1") {
		t.Errorf("watch runs with %s", out)
	}
	m.run(0, "/opt/lab", installed, "sim", "set", "0", "persistence", "off")
	before := pid()
	m.systemctl("kill", "--signal=KILL", watch)
	m.until("watch runs again", func() bool { now := pid(); return now != before && now != "0" })
	m.until("watch has repaired the drift", func() bool {
		return m.inside(ann, fleet, installed, "drift", "--quiet").Run() == nil
	})
	m.systemctl("stop", watch)
	if got := m.systemctl("show", "-P", "Result", watch); got != "success" {
		t.Errorf("a stop of watch: %s", got)
	}
	as("destroy", "--auto-approve")
}
