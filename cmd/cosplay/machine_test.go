package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cosplay/internal/agent"
	"cosplay/internal/ledger"
	"cosplay/internal/need"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// machine is a separate machine, as far as files are concerned: a mount namespace with
// its own /etc, /opt, /home, /run and /var/lib. The tests leave nothing on the machine
// on which they run, however they end. It has two users, ann and bob, and a host that
// looks like hardware: a simulated library in another folder than its simulation, both
// owned by root.
type machine struct {
	t    *testing.T
	pid  string // of the process that holds the namespace
	root string // its files, seen from outside
}

const (
	ann = 1234
	bob = 1235

	installed = "/opt/bin/cosplay"
	hardware  = "/opt/nvml/libnvidia-ml.so.1"
)

const makeMachine = `set -e
mount -t tmpfs -o mode=755 tmpfs /mnt
cp -a /etc /mnt/etc
mount --bind /mnt/etc /etc
for folder in /opt /home /run /var/lib; do mount -t tmpfs -o mode=755 tmpfs $folder; done
for user in ann:1234 bob:1235; do
	name=${user%:*} id=${user#*:}
	sed -i "/^[^:]*:[^:]*:$id:/d" /etc/passwd
	echo "$name:x:$id:$id::/home/$name:/bin/sh" >>/etc/passwd
	echo "$name:*:19000:0:99999:7:::" >>/etc/shadow
	install -d -o $id -g $id /home/$name
done
rm -f /etc/sudoers.d/*
mkdir -p /opt/bin /opt/nvml /opt/lab /var/lib/sudo /run/cosplay
install -m 755 "$0" /opt/bin/cosplay
echo 'host "lab" { simulate = "2 x h200" }' >/opt/lab/lab.hcl
cd /opt/lab
/opt/bin/cosplay plan >/dev/null
cp .cosplay/sim/lab/libnvidia-ml.so.1 /opt/nvml/
chmod 644 .cosplay/sim/lab/host
echo ready
exec cat`

func newMachine(t *testing.T) *machine {
	t.Helper()
	cosplay, err := exec.LookPath("cosplay")
	if err != nil {
		t.Fatal(err)
	}
	need.Root(t, "sudo")
	holder := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", makeMachine, cosplay)
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said := &strings.Builder{}
	holder.Stderr = said
	in, _ := holder.StdinPipe()
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		need.Lacking(t, "%v", err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = holder.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		_ = holder.Wait()
		need.Lacking(t, "no mount namespace can be had: %s", said)
	}
	pid := fmt.Sprint(holder.Process.Pid)
	return &machine{t, pid, "/proc/" + pid + "/root"}
}

// as prepares a command of a user, in a folder.
func (m *machine) as(uid int, folder string, words ...string) *exec.Cmd {
	name := map[int]string{0: "root", ann: "ann", bob: "bob"}[uid]
	enter := []string{"-t", m.pid, "-m", "-S", fmt.Sprint(uid), "-G", fmt.Sprint(uid), "--",
		"env", "-i", "PATH=/opt/bin:/usr/sbin:/usr/bin:/sbin:/bin", "USER=" + name, "HOME=/home/" + name,
		"sh", "-c", `cd "$0" && exec "$@"`, folder}
	return bounded(m.t, "nsenter", append(enter, words...)...)
}

func (m *machine) run(uid int, folder string, words ...string) string {
	m.t.Helper()
	out, err := m.as(uid, folder, words...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%v: %v\n%s", words, err, out)
	}
	return string(out)
}

// fails runs what must fail and say certain things.
func (m *machine) fails(uid int, folder string, words []string, want ...string) string {
	m.t.Helper()
	out, err := m.as(uid, folder, words...).CombinedOutput()
	if err == nil {
		m.t.Errorf("%v: no error\n%s", words, out)
	}
	for _, w := range want {
		if !strings.Contains(string(out), w) {
			m.t.Errorf("%v does not say %q:\n%s", words, w, out)
		}
	}
	return string(out)
}

func (m *machine) write(path, text string, uid int) {
	m.t.Helper()
	at := filepath.Join(m.root, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
	for _, p := range []string{at, filepath.Dir(at)} {
		if strings.HasPrefix(path, "/home/") {
			if err := os.Chown(p, uid, uid); err != nil {
				m.t.Fatal(err)
			}
		}
	}
}

// allow adds a line to the rules of sudo, as an admin would.
func (m *machine) allow(line string) {
	m.t.Helper()
	at := filepath.Join(m.root, "etc/sudoers.d/cosplay")
	old, _ := os.ReadFile(at)
	m.write("/etc/sudoers.d/cosplay", string(old)+line+"\n", 0)
	_ = os.Chmod(at, 0o440)
	m.run(0, "/", "visudo", "-c", "-q")
}

// onSystemLibrary makes the hardware that of the system's library, the only one that the
// agent's socket serves, and a project use it.
func (m *machine) onSystemLibrary(project string) string {
	m.t.Helper()
	m.write("/etc/ld.so.conf.d/cosplay.conf", filepath.Dir(hardware)+"\n", 0)
	m.run(0, "/", "ldconfig")
	return strings.ReplaceAll(project, fmt.Sprintf("nvml    = %q", hardware), "")
}

// gpus are the GPUs as the driver shows them.
func (m *machine) gpus() []resource.GPU {
	m.t.Helper()
	c := m.as(0, "/", installed, "agent", "--library", hardware)
	c.Stdin = strings.NewReader(fmt.Sprintf(`{"version": %d, "op": "read"}`+"\n", agent.Protocol))
	out, err := c.Output()
	var answer struct {
		Host struct {
			Models []resource.Model
			GPUs   []struct {
				resource.GPU
				Kind int `json:"model"`
			}
		}
	}
	if err := errors.Join(err, json.Unmarshal(out, &answer)); err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
	var gpus []resource.GPU
	for _, g := range answer.Host.GPUs {
		g.Model = answer.Host.Models[g.Kind]
		for i := range g.Slices { // an answer does not repeat it
			g.Slices[i].GPU = g.UUID
		}
		gpus = append(gpus, g.GPU)
	}
	return gpus
}

// state is the simulated hardware, bit by bit.
func (m *machine) state() string {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.root, "opt/lab/.cosplay/sim/lab/host"))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(data)
}

func (m *machine) book() []resource.Page {
	m.t.Helper()
	all, err := ledger.Book{Dir: filepath.Join(m.root, ledger.SystemDir)}.Read()
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// wire speaks to a privileged agent by hand.
type wire struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

func (m *machine) wire(uid int, library string) *wire {
	m.t.Helper()
	words := []string{"sudo", "-n", installed, "agent", "--privileged"}
	if library != "" {
		words = append(words, "--library", library)
	}
	return m.wireBy(uid, words...)
}

// wireBy is wire by a command line that ends in the agent.
func (m *machine) wireBy(uid int, words ...string) *wire {
	m.t.Helper()
	c := m.as(uid, "/", words...)
	c.Stderr = os.Stderr
	in, _ := c.StdinPipe()
	out, err := c.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		m.t.Fatal(err)
	}
	w := &wire{m.t, in, bufio.NewReader(out), c}
	m.t.Cleanup(w.close)
	return w
}

func (w *wire) close() {
	w.in.Close()
	_ = w.cmd.Wait()
}

// ask sends a request, which may be no JSON, and gives the error in the answer.
func (w *wire) ask(request any) string {
	w.t.Helper()
	text, raw := request.(string)
	if o, ok := request.(order); ok && o["version"] == nil {
		request = o.with(order{"version": agent.Protocol})
	}
	if !raw {
		data, err := json.Marshal(request)
		if err != nil {
			w.t.Fatal(err)
		}
		text = string(data)
	}
	// An agent that refuses a line before its end does not read the rest.
	if _, err := io.WriteString(w.in, text+"\n"); err != nil && !errors.Is(err, syscall.EPIPE) {
		w.t.Fatal(err)
	}
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	type failure struct {
		Error *struct {
			Message string       `json:"message"`
			Advice  prose.Advice `json:"advice"`
		} `json:"error"`
	}
	var answer struct {
		failure
		Created []failure `json:"created"`
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		w.t.Fatalf("%q: %v", line, err)
	}
	var said []string
	for _, f := range append(answer.Created, answer.failure) {
		if f.Error != nil {
			said = append(said, f.Error.Message+" "+f.Error.Advice.Error())
		}
	}
	return strings.Join(said, "\n")
}

// creates asks for slices of 16 SMs.
func creates(places ...any) order {
	var all []order
	for _, place := range places {
		all = append(all, order{"slice": place, "need": order{"sms": 16, "memory_mib": 1}})
	}
	return order{"op": "create-slices", "creates": all}
}

// refused asks for what must be refused in certain words.
func (w *wire) refused(want string, request any) {
	w.t.Helper()
	if said := w.ask(request); !strings.Contains(said, want) || said == "" {
		w.t.Errorf("%v: %q, want %q", request, said, want)
	}
}

// granted asks for what must be done.
func (w *wire) granted(request any) {
	w.t.Helper()
	if said := w.ask(request); said != "" {
		w.t.Errorf("%v: %s", request, said)
	}
}
