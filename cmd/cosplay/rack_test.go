package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const rackFleet = `
host "lab" { simulate = "1 x h200" }

session "worker" {
  count  = 3
  target = "2060"
}
`

// TestRack runs what docs/rack.md says, in its order, on two machines: containers with OpenSSH's server and cosplay.
func TestRack(t *testing.T) {
	needEngine(t)
	t.Parallel()
	page, err := os.ReadFile("../../docs/rack.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, write := rackUser(t)
	write("fleet.hcl", rackFleet)
	_, gpu1 := rackMachine(t, dir, "gpu1", true)
	_, gpu2 := rackMachine(t, dir, "gpu2", true)
	write("config", gpu1+gpu2)
	_, own, found := strings.Cut(string(page), "\n## A project on each machine\n")
	if !found {
		t.Fatal("the page has no part for projects on the machines")
	}
	wanted := [][]string{ // of each fence, in this order
		{"Plan: 3 to create", "Applied: 3 created", "GPU 0: NVIDIA GeForce RTX 2060", "worker-2   RTX 2060"},
		{"No changes", "nothing was done"},
		{"No changes", "Applied: 3 created"},
		{"GPU 0: NVIDIA GeForce RTX 2060"},
		{"Everything is as it was found", "Everything is as it was found"},
	}
	fences := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(own, -1)
	if len(fences) != len(wanted) {
		t.Fatalf("the page has %d pieces of a shell, not %d", len(fences), len(wanted))
	}
	for i, fence := range fences {
		c := bounded(t, "bash", "-c", "set -e\n"+fence[1])
		c.Dir, c.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		c.Stdin = strings.NewReader("nvidia-smi -L\n") // for the shell in the session
		out, err := c.CombinedOutput()
		rest := string(out)
		if strings.Contains(rest, "exit code") { // of a drift that should be none
			t.Errorf("%s\n%s", fence[1], out)
		}
		for _, one := range wanted[i] {
			var found bool
			if _, rest, found = strings.Cut(rest, one); !found || err != nil {
				t.Fatalf("%s\n%v, without %q:\n%s", fence[1], err, one, out)
			}
		}
	}
}

// unlessDown ends a program of OpenSSH where a file in the folder says that its machine is down.
const unlessDown = `for word; do
	[ ! -e "%s/down-${word#*@}" ] || { echo "ssh: connect to host ${word#*@} port 22: Connection refused" >&2; exit 255; }
done`

// rackUser is a folder with a user's key, and with programs of OpenSSH that have the file config as the user's configuration.
func rackUser(t *testing.T) (dir string, write func(name, text string)) {
	t.Helper()
	dir = t.TempDir()
	write = func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"ssh", "scp"} {
		write(program, fmt.Sprintf("#!/bin/sh\n%s\nexec /usr/bin/%s -F %[3]s/config \"$@\"\n", fmt.Sprintf(unlessDown, dir), program, dir))
	}
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "key")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir, write
}

// rackMachine starts a machine, with cosplay or without, that accepts the key in a folder. It returns the machine's
// container, and how ssh reaches it.
func rackMachine(t *testing.T, dir, name string, has bool) (id, config string) {
	t.Helper()
	target := installedAt
	if !has {
		target = "/opt/elsewhere"
	}
	id = startMachine(t, dir, "/home/ada", sshd, "--volume", thisProgram(t)+":"+target+":ro")
	return id, sshConfig(dir, name, docker(t, "inspect", "--format", "{{.NetworkSettings.IPAddress}}", id), sshd)
}

// engineMachine is a rackMachine with the engine of this one, and the network and the processes that its containers have. Its
// user's home has the same path as on this one, where the engine looks for what it mounts.
func engineMachine(t *testing.T, dir, name string) (id, config string) {
	t.Helper()
	home, port := filepath.Join(dir, name), freePort(t)
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	open(home)
	id = startMachine(t, dir, filepath.Join(home, "ada"), port, "--volume", thisProgram(t)+":"+installedAt+":ro", "--network", "host", "--pid", "host",
		"--volume", home+":"+home, "--volume", "/var/run/docker.sock:/var/run/docker.sock")
	t.Cleanup(func() { // before the folder, which has files of ada's
		docker(t, "exec", "--user", "0", id, "rm", "-rf", filepath.Join(home, "ada"))
		docker(t, "rm", "--force", id)
	})
	return id, sshConfig(dir, name, "127.0.0.1", port)
}

const (
	installedAt = "/usr/local/bin/cosplay"
	sshd        = 2222 // the port of OpenSSH's server
)

func thisProgram(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("cosplay")
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// freePort is a port that no process listens on now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := bounded(t, "docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// startMachine starts a container with OpenSSH's server, on a port, and a user ada, who accepts the key in a folder.
func startMachine(t *testing.T, dir, home string, port int, options ...string) (id string) {
	t.Helper()
	begin := fmt.Sprintf(`useradd --create-home --home-dir %[1]s --password "*" ada && install -D -o ada -m 600 /key.pub %[1]s/.ssh/authorized_keys &&
		chown ada %[1]s/.ssh && if [ -e /var/run/docker.sock ]; then
			group=$(stat -c %%g /var/run/docker.sock); groupadd -o -g $group engine; usermod -a -G engine ada
		fi && exec /usr/sbin/sshd -D -e -p %d -o "Subsystem=sftp internal-sftp"`, home, port)
	args := append([]string{"run", "--detach", "--rm", "--user", "0", "--volume", filepath.Join(dir, "key.pub") + ":/key.pub:ro"}, options...)
	id = docker(t, append(args, "--entrypoint", "sh", "cosplay-test/sshd", "-c", begin)...)
	t.Cleanup(func() { _ = bounded(t, "docker", "rm", "--force", id).Run() })
	for end := time.Now().Add(hang); !strings.Contains(docker(t, "logs", id), "listening"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the machine does not start:\n%s", docker(t, "logs", id))
		}
	}
	return id
}

// sshConfig is how ssh reaches a machine.
func sshConfig(dir, name, address string, port int) string {
	return fmt.Sprintf("Host %s\n  HostName %s\n  Port %d\n  User ada\n  IdentityFile %[4]s/key\n  UserKnownHostsFile %[4]s/known\n  StrictHostKeyChecking accept-new\n",
		name, address, port, dir)
}
