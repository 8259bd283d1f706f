package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const connectedFleet = `
host "gpu1" {
  connect  = "ssh://ada@gpu1"
  simulate = "1 x h200"
}
host "gpu2" {
  connect  = "ssh://gpu2"
  simulate = "1 x h200"
}

session "worker" {
  for_each = { a = "gpu1", b = "gpu1", c = "gpu2", d = "gpu2" }
  host     = each.value
  target   = "2060"
  env      = { PLACE = each.value, TOKEN = sensitive("only-for-the-session") }
}
`

// connected is a user's laptop with a project on two machines, which are containers with OpenSSH's server.
type connected struct {
	*testing.T
	dir      string
	write    func(name, text string)
	machines map[string]string // containers, by name
	config   string
}

func connect(t *testing.T, names ...string) *connected {
	needEngine(t)
	t.Parallel()
	c := &connected{T: t, machines: map[string]string{}}
	c.dir, c.write = rackUser(t)
	for _, name := range names {
		id, config := rackMachine(t, c.dir, name, name != "bare")
		c.machines[name], c.config = id, c.config+config
	}
	c.write("config", c.config)
	c.write("cosplay.hcl", connectedFleet)
	return c
}

func (c *connected) command(args ...string) *exec.Cmd {
	one := bounded(c, "cosplay", args...)
	one.Dir, one.Env = c.dir, append(os.Environ(), "PATH="+c.dir+":"+os.Getenv("PATH"), "HOME="+c.dir, "COLUMNS=100")
	return one
}

// run runs cosplay on the laptop, and wants its exit code and, in this order, texts of its output.
func (c *connected) run(code int, wanted []string, args ...string) string {
	c.Helper()
	one := c.command(args...)
	out, _ := one.CombinedOutput()
	if got := one.ProcessState.ExitCode(); got != code {
		c.Fatalf("cosplay %v: exit code %d instead of %d\n%s", args, got, code, out)
	}
	rest := regexp.MustCompile(`\s+`).ReplaceAllString(string(out), " ")
	for _, text := range wanted {
		_, after, found := strings.Cut(rest, text)
		if !found {
			c.Fatalf("cosplay %v does not say %q:\n%s", args, text, out)
		}
		rest = after
	}
	return string(out)
}

// over runs a command of the shell on a machine, as root.
func (c *connected) over(machine, script string) string {
	c.Helper()
	out, err := bounded(c, "docker", "exec", "--user", "0", c.machines[machine], "sh", "-c", script).CombinedOutput()
	if err != nil {
		c.Fatalf("%s on %s: %v\n%s", script, machine, err, out)
	}
	return string(out)
}

// left are the files of sessions and their programs on a machine, and the settings of its simulated host.
func (c *connected) left(machine string) string {
	c.Helper()
	return c.over(machine, `cd /home/ada/.local/state/cosplay/remote/*/* || exit 0
		find . -path ./.cosplay/sim -prune -o -type f -print; ls -d workspace .cosplay/sessions 2>/dev/null; ps ax -o args | grep '[s]leep 4711' || true`)
}

// hosts are the simulated hosts of a machine, byte for byte, as sums.
func (c *connected) hosts(machine string) string {
	c.Helper()
	return c.over(machine, "cd /home/ada/.local/state/cosplay/remote && sha256sum */*/.cosplay/sim/*/host")
}

// TestConnect has a project on a laptop whose hosts are two machines behind ssh.
func TestConnect(t *testing.T) {
	c := connect(t, "gpu1", "gpu2")
	c.run(0, []string{"gpu1: 1 x NVIDIA H200 (simulated)", "gpu2: 1 x NVIDIA H200", "Plan: 4 to create"}, "plan")
	c.run(0, []string{"Applied: 4 created, 2 GPUs set up"}, "apply", "--auto-approve")
	c.run(0, []string{"No changes"}, "plan", "--detailed-exitcode")
	c.run(0, []string{"worker-c RTX 2060", "4 sessions, all running; no drift"}, "status")

	// Programs run over there, with their input, their exit code and their user; their words and variables are in no argument.
	name := strings.TrimSpace(c.over("gpu2", "hostname"))
	c.run(0, []string{name + " ada gpu2 only-for-the-session /home/ada/.local/state/cosplay/remote/"}, "exec", "worker-c", "--", "sh", "-c", `echo $(hostname) $(id -un) $PLACE $TOKEN $PWD`)
	reads := c.command("exec", "worker-a", "--", "sh", "-c", "cat; exit 7")
	reads.Stdin = strings.NewReader("from the laptop")
	if out, _ := reads.Output(); string(out) != "from the laptop" || reads.ProcessState.ExitCode() != 7 {
		t.Errorf("a program printed %q and ended with %v", out, reads.ProcessState)
	}
	unread := bounded(t, "bash", "-c", "cosplay exec worker-a -- yes | head -1; echo ${PIPESTATUS[0]}")
	unread.Dir, unread.Env = c.dir, reads.Env
	if out, _ := unread.CombinedOutput(); string(out) != "y\n141\n" {
		t.Errorf("of an output that is not read: %q", out)
	}
	c.run(127, []string{`there is no command "nope"`}, "exec", "worker-a", "--", "nope")
	holds := c.command("exec", "--env", "SEED=4712", "worker-a", "--", "sh", "-c", `trap 'echo got; exit 3' TERM; echo begun; while :; do sleep 0.1; done`)
	var said bytes.Buffer
	holds.Stdout = &said
	if err := holds.Start(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the program to begin", func() bool { return c.over("gpu1", "ps ax -o args | grep -c '[e]cho begun' || true") != "0\n" })
	if all := c.over("gpu1", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"); strings.Contains(all, "4712") {
		t.Errorf("an argument of a command over there has what --env gives: %s", all)
	}
	_ = holds.Process.Signal(syscall.SIGTERM)
	if err := holds.Wait(); holds.ProcessState.ExitCode() != 3 || !strings.Contains(said.String(), "got") {
		t.Errorf("SIGTERM: %v, %q", err, said.String())
	}

	c.run(0, []string{"gpu1", "machine ssh://ada@gpu1, as ada, cosplay ", "gpu2", "machine ssh://gpu2, as ada"}, "doctor")
	c.run(0, []string{"The disguise holds: 1 session"}, "verify", "worker-a")

	// A client that is killed ends its program over there.
	killed := c.command("exec", "worker-a", "--", "sleep", "4711")
	killed.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	sleeps := func() bool { return strings.Contains(c.left("gpu1"), "sleep 4711") }
	wait(t, "the program to begin", sleeps)
	_ = killed.Process.Kill()
	c.killSSH()
	wait(t, "the program to end", func() bool { return !sleeps() })
	_ = killed.Wait()

	// What someone changes over there is drift, and repaired.
	c.over("gpu1", "rm -r /home/ada/.local/state/cosplay/remote/*/*/.cosplay/sessions/default/gpu1/worker-b*")
	c.run(2, []string{"worker[\"b\"]", "session folder"}, "drift")
	c.run(0, []string{"Applied: 1 "}, "apply", "--auto-approve")

	c.run(0, []string{"Destroyed: 4 sessions, 2 GPUs given back", "Everything is as it was found"}, "destroy", "--auto-approve")
	for _, machine := range []string{"gpu1", "gpu2"} {
		if left := c.left(machine); left != "" {
			t.Errorf("%s has still:\n%s", machine, left)
		}
	}
}

// TestConnectContainers has containers on another machine, beside processes on a second one.
func TestConnectContainers(t *testing.T) {
	n := 3
	if os.Getenv("COSPLAY_LONG") != "" {
		n = 10
	}
	c := connect(t, "gpu1")
	id, config := engineMachine(t, c.dir, "gpu2")
	c.machines["gpu2"] = id
	c.write("config", c.config+config)
	c.write("cosplay.hcl", strings.ReplaceAll(`
host "gpu1" {
  connect  = "ssh://gpu1"
  simulate = "2 x h200"
}
host "gpu2" {
  connect  = "ssh://ada@gpu2"
  simulate = "2 x h200"
  runtime  = "docker"
}
session "plain" {
  count  = COUNT
  host   = "gpu1"
  target = "2060"
}
session "box" {
  count  = COUNT
  host   = "gpu2"
  target = "2060"
  image  = "cosplay-test/debian"
  env    = { TOKEN = sensitive("only-for-the-session") }
  volume {
    source = "./data"
    target = "/data"
  }
  ssh {
    enabled         = true
    authorized_keys = ["key.pub"]
  }
}
`, "COUNT", fmt.Sprint(n)))
	t.Cleanup(func() { removeContainersOf(t, filepath.Join(c.dir, "cosplay.state.json")) })
	containers := func() string { return docker(t, "ps", "-aq", "--filter", "name=cosplay-box-") }
	// The folder of a volume is over there, where the workspace is.
	home := filepath.Join(c.dir, "gpu2", "ada")
	c.run(1, []string{"there is no ", "/workspace/data to mount"}, "apply", "--auto-approve")
	c.over("gpu2", "runuser -u ada -- sh -c 'cd "+home+"/.local/state/cosplay/remote/*/gpu2 && mkdir -p workspace/data && echo from over there >workspace/data/file'")
	c.run(0, []string{fmt.Sprintf("Applied: %d created, ", 2*n)}, "apply", "--auto-approve")
	c.run(0, []string{"No changes"}, "plan", "--detailed-exitcode")
	c.run(0, []string{fmt.Sprintf("%d sessions, all running; no drift", 2*n)}, "status")

	// Programs and logins.
	c.run(0, []string{"ada only-for-the-session from over there"}, "exec", "box-1", "--", "sh", "-c", `echo $(id -un) $TOKEN $(cat /data/file)`)
	c.run(5, []string{"in by ssh as ada GPU 0: NVIDIA GeForce RTX 2060"}, "ssh", "box-1", "--", `echo in by ssh as $(id -un) $(nvidia-smi -L); exit 5`)
	c.write("ssh-config", c.config+config+c.run(0, nil, "ssh-config", "box-1"))
	in := bounded(t, "/usr/bin/ssh", "-F", filepath.Join(c.dir, "ssh-config"), "cosplay-box-1-"+filepath.Base(c.dir), "hostname")
	in.Env = append(os.Environ(), "HOME="+c.dir)
	if out, err := in.CombinedOutput(); err != nil {
		t.Errorf("ssh with the output of cosplay ssh-config: %v\n%s", err, out)
	}
	c.run(0, []string{"cosplay-init: user ada"}, "logs", "box-1")
	c.run(0, []string{"gpu2", "machine ssh://ada@gpu2, as ada", "Docker"}, "doctor")
	c.run(0, []string{"The disguise holds: 1 session"}, "verify", "--no-ssh", "box-1")

	// What someone changes over there is drift, and repaired; an apply that is cut is completed by the next one.
	docker(t, "rm", "--force", "cosplay-box-2-"+filepath.Base(c.dir))
	c.run(2, []string{"box[2]", "container"}, "drift")
	docker(t, append([]string{"rm", "--force"}, strings.Fields(containers())...)...)
	cut := c.command("apply", "--auto-approve")
	if err := cut.Start(); err != nil {
		t.Fatal(err)
	}
	wait(t, "a container", func() bool { return containers() != "" })
	c.killSSH()
	_ = cut.Wait()
	c.run(0, nil, "apply", "--auto-approve")
	c.run(0, []string{"No changes"}, "plan", "--detailed-exitcode")
	c.run(0, []string{fmt.Sprintf("Destroyed: %d sessions, ", 2*n), "Everything is as it was found"}, "destroy", "--auto-approve")
	if left := containers() + c.over("gpu2", "cd "+home+"/.local/state/cosplay/remote/*/* && find . -path ./.cosplay/sim -prune -o -type f -print"); left != "./workspace/data/file\n" {
		t.Errorf("gpu2 has still:\n%s", left)
	}
	if left := c.left("gpu1"); left != "" {
		t.Errorf("gpu1 has still:\n%s", left)
	}
	if left, err := bounded(t, "find", filepath.Join(c.dir, ".cosplay", "sessions"), "-type", "f").Output(); len(left) > 0 || err != nil {
		t.Errorf("the laptop has still:\n%s%v", left, err)
	}
}

// killSSH kills the clients of ssh that the laptop has left behind.
func (c *connected) killSSH() {
	_ = exec.Command("pkill", "-KILL", "-f", "/usr/bin/ssh -F "+c.dir+"/config").Run() // there may be none
}

// TestConnectRefused: what keeps a machine from being reached is an error in ssh's words, or names the command to type.
func TestConnectRefused(t *testing.T) {
	c := connect(t, "gpu1", "bare")
	only := func(name, to string) {
		c.write("cosplay.hcl", fmt.Sprintf("host %q {\n  connect = %q\n  simulate = \"1 x h200\"\n}\n", name, to))
	}
	only("bare", "ssh://bare")
	c.run(1, []string{"host bare: there is no cosplay:", "not found", "ssh bare 'cat >cosplay && sudo install -m 0755 cosplay /usr/local/bin/cosplay' < $(command -v cosplay)"}, "plan")
	c.over("bare", `printf '#!/bin/sh\necho "Error: unknown flag: --for" >&2; exit 1\n' >/usr/local/bin/cosplay; chmod 755 /usr/local/bin/cosplay`)
	c.run(1, []string{"host bare: its cosplay is an earlier one", "install this cosplay there"}, "plan")
	c.over("bare", `printf '#!/bin/sh\nread line; echo "{\\"version\\":3}"; sleep 5\n' >/usr/local/bin/cosplay`)
	c.run(1, []string{"host bare: its cosplay is of protocol 3", "install this cosplay there"}, "plan")
	c.over("bare", `printf '#!/bin/sh\nyes x\n' >/usr/local/bin/cosplay`)
	c.run(1, []string{"host bare: "}, "plan")

	only("gpu1", "ssh://gpu1")
	c.over("gpu1", `echo 'echo Welcome to gpu1; echo "{}"' >/home/ada/.ssh/rc`) // ssh runs it before the command
	c.run(0, []string{"gpu1: 1 x NVIDIA H200"}, "plan")
	c.write("config", strings.ReplaceAll(c.config, c.dir+"/key", "/dev/null"))
	c.run(1, []string{"Permission denied (publickey", "this must work, without a question: ssh gpu1 true"}, "plan")
	c.write("config", c.config)
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(c.dir, "other")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	other, err := os.ReadFile(filepath.Join(c.dir, "other.pub"))
	if err != nil {
		t.Fatal(err)
	}
	known, err := os.ReadFile(filepath.Join(c.dir, "known"))
	if err != nil {
		t.Fatal(err)
	}
	forged := regexp.MustCompile(`ssh-ed25519 \S+`).ReplaceAllString(string(known), strings.Join(strings.Fields(string(other))[:2], " "))
	c.write("known", forged)
	c.run(1, []string{"REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed"}, "plan")
	c.write("known", string(known))
	only("gpu1", "ssh://no-such-machine.invalid")
	c.run(1, []string{"Could not resolve hostname no-such-machine.invalid"}, "plan")
	only("gpu1", "ssh://gpu1")
	c.over("gpu1", "mkdir -p /home/ada/.local && chown root /home/ada/.local && chmod 755 /home/ada/.local && rm -rf /home/ada/.local/*")
	c.run(1, []string{"host gpu1: the files of sessions cannot be written", "Fix: make room"}, "plan")
}

// TestConnectCut cuts the connections, or kills the client, at random moments of apply and destroy. Whatever was under way,
// the next command reads what the machines have and completes it.
func TestConnectCut(t *testing.T) {
	c := connect(t, "gpu1", "gpu2")
	rounds, random := 3, rand.New(rand.NewSource(time.Now().UnixNano()))
	if os.Getenv("COSPLAY_LONG") != "" {
		rounds = 200
	}
	cut := 0
	c.run(0, nil, "plan") // which makes the hosts
	before := map[string]string{"gpu1": c.hosts("gpu1"), "gpu2": c.hosts("gpu2")}
	for round := range rounds {
		for _, command := range []string{"apply", "destroy"} {
			one := c.command(command, "--auto-approve")
			var out bytes.Buffer
			one.Stdout, one.Stderr = &out, &out
			if err := one.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(20+random.Intn(600)) * time.Millisecond)
			hangs := ""
			switch kind := random.Intn(3); {
			case round%50 == 49: // in the middle of an answer, until the client gives up
				hangs = []string{"gpu1", "gpu2"}[random.Intn(2)]
				c.over(hangs, "pkill -STOP cosplay || true")
			case kind == 0:
				_ = one.Process.Kill()
				c.killSSH()
			case kind == 1:
				c.killSSH()
			default: // the agents over there
				c.over([]string{"gpu1", "gpu2"}[random.Intn(2)], "pkill -KILL cosplay || true")
			}
			if one.Wait() != nil {
				cut++
			}
			if hangs != "" {
				c.over(hangs, "pkill -CONT cosplay || true")
			}
			for try := 0; ; try++ { // an agent over there may still end its step
				done, err := c.command(command, "--auto-approve").CombinedOutput()
				if err == nil {
					break
				}
				if try == 20 {
					t.Fatalf("round %d: %s after a cut:\n%s\nbefore:\n%s", round, command, done, out.String())
				}
				time.Sleep(200 * time.Millisecond)
			}
			if command == "apply" {
				c.run(0, []string{"No changes"}, "plan", "--detailed-exitcode")
				c.run(0, nil, "drift")
				if said := c.run(0, []string{"4 sessions, all running; no drift"}, "status"); strings.Contains(said, "foreign") {
					t.Fatalf("round %d: a slice is there twice:\n%s", round, said)
				}
			}
		}
		for _, machine := range []string{"gpu1", "gpu2"} {
			if left := c.left(machine); left != "" || c.hosts(machine) != before[machine] {
				t.Fatalf("round %d: %s is not as it was; files:\n%s", round, machine, left)
			}
		}
	}
	t.Logf("%d rounds, %d of %d commands were cut", rounds, cut, 2*rounds)
	if cut == 0 {
		t.Error("no command was cut")
	}
}

// TestConnectDown: a machine that is lost in the middle of an apply stops nothing on the other one. What it has is unknown until
// it is back; then the next apply finds it.
func TestConnectDown(t *testing.T) {
	c := connect(t, "gpu1", "gpu2")
	rounds, random := 1, rand.New(rand.NewSource(time.Now().UnixNano()))
	if os.Getenv("COSPLAY_LONG") != "" {
		rounds = 40
	}
	c.run(0, nil, "plan") // which makes the hosts
	before := map[string]string{"gpu1": c.hosts("gpu1"), "gpu2": c.hosts("gpu2")}
	down, lost := filepath.Join(c.dir, "down-gpu2"), 0
	for round := range rounds {
		for _, command := range []string{"apply", "destroy"} {
			one := c.command(command, "--auto-approve")
			if err := one.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(20+random.Intn(700)) * time.Millisecond)
			c.write("down-gpu2", "")
			_ = exec.Command("pkill", "-KILL", "-f", "/usr/bin/ssh -F "+c.dir+"/config .*gpu2").Run() // there may be none
			if one.Wait() != nil {
				lost++
			}
			said := c.run(1, []string{`host "gpu2" cannot be read`}, command, "--auto-approve")
			if command == "apply" {
				c.run(0, []string{"worker-a RTX 2060 gpu1 GPU 0 1g.18gb, slot 4 6144 MiB running", "worker-b RTX 2060 gpu1"}, "status")
				c.run(0, []string{"alive"}, "exec", "worker-a", "--", "echo", "alive")
				drift := c.command("drift") // 2 where an apply was interrupted
				if out, _ := drift.CombinedOutput(); drift.ProcessState.ExitCode() < 1 || !strings.Contains(string(out), "gpu2 cannot be read") {
					t.Errorf("round %d: drift: %v\n%s", round, drift.ProcessState, out)
				}
			} else if left := c.left("gpu1"); left != "" {
				t.Fatalf("round %d: gpu1 has still:\n%s\n%s", round, left, said)
			}
			if err := os.Remove(down); err != nil {
				t.Fatal(err)
			}
			c.run(0, nil, command, "--auto-approve")
			if command == "apply" {
				c.run(0, []string{"No changes"}, "plan", "--detailed-exitcode")
				c.run(0, nil, "drift")
			}
		}
		for _, machine := range []string{"gpu1", "gpu2"} {
			if left := c.left(machine); left != "" || c.hosts(machine) != before[machine] {
				t.Fatalf("round %d: %s is not as it was; files:\n%s", round, machine, left)
			}
		}
	}
	t.Logf("%d rounds, a machine was lost in %d of %d commands", rounds, lost, 2*rounds)
}

// TestConnectRoot: where only root changes the GPUs over there, root's agent of that machine does, by the rule of sudo that
// the error prints.
func TestConnectRoot(t *testing.T) {
	c := connect(t, "gpu1")
	c.over("gpu1", `mkdir -p /opt/nvml /opt/lab && cd /opt/lab && echo 'host "lab" { simulate = "1 x h200" }' >lab.hcl &&
		cosplay plan >/dev/null && cp .cosplay/sim/lab/libnvidia-ml.so.1 /opt/nvml/ && chmod 644 .cosplay/sim/lab/host`)
	host := func() string { return c.over("gpu1", "cd /opt/lab && cosplay sim show") }
	before := host()
	c.write("cosplay.hcl", `
host "gpu1" {
  connect = "ssh://ada@gpu1"
  nvml    = "/opt/nvml/libnvidia-ml.so.1"
}
session "worker" {
  count  = 2
  target = "2060"
}
`)
	said := c.run(0, []string{`you have no permission to change the GPUs of host "gpu1"`, "visudo"}, "plan")
	line := regexp.MustCompile(`(?m)^ *(ada ALL=\(root\) NOPASSWD: .*)$`).FindStringSubmatch(said)
	if line == nil {
		t.Fatalf("there is no line for sudo:\n%s", said)
	}
	c.run(1, []string{"visudo", "ada ALL=(root) NOPASSWD: /usr/local/bin/cosplay agent --privileged"}, "apply", "--auto-approve")
	if now := host(); now != before {
		t.Errorf("the host was changed:\n%s", now)
	}
	c.over("gpu1", "echo '"+line[1]+"' >/etc/sudoers.d/cosplay")
	c.run(0, []string{"Applied: 2 created"}, "apply", "--auto-approve")
	c.run(0, []string{"No changes"}, "plan", "--detailed-exitcode")
	if history := c.over("gpu1", "cosplay history"); !strings.Contains(history, "ada ") {
		t.Errorf("the history over there does not name the user:\n%s", history)
	}
	if said := c.run(0, []string{"2 sessions, all running; no drift"}, "status"); strings.Contains(said, "another user") {
		t.Errorf("the user's account over there is taken for another user:\n%s", said)
	}
	c.run(0, []string{"Everything is as it was found"}, "destroy", "--auto-approve")
	if said := c.run(0, nil, "drift") + c.run(0, nil, "plan"); strings.Contains(said, "another user") || strings.Contains(said, "removed by") {
		t.Errorf("the user's own destroy is taken for another user's:\n%s", said)
	}
	c.run(0, []string{"Applied: 2 created"}, "apply", "--auto-approve")
	if err := os.Remove(filepath.Join(c.dir, "cosplay.state.json")); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(c.dir, "cosplay.state.json.backup"))
	c.run(0, []string{"2 sessions"}, "state", "rebuild", "--auto-approve")
	c.run(0, []string{"Everything is as it was found"}, "destroy", "--auto-approve")
	if now := host(); now != before {
		t.Errorf("the host is not as it was:\n%s", now)
	}
}
