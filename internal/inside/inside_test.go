package inside

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"cosplay/catalog"
	"cosplay/driver"
	"cosplay/internal/cdi"
	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/shared"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const hostName = "lab"

func sessions(t *testing.T) Sessions {
	t.Helper()
	return On(runtime.Host{Folders: filepath.Join(t.TempDir(), "sessions"), Name: hostName, Owner: resource.Owner{Lineage: "l", Key: "key"}})
}

// session has jane as its user.
func session(t *testing.T) resource.Session {
	t.Helper()
	target, err := catalog.Target("rtx-2060")
	check(t, err)
	return resource.Session{
		Address: resource.One("one"), ID: "one", Target: target, Runtime: "docker",
		Slice:   resource.Slice{Host: hostName, GPU: "GPU-0", Profile: "1g.18gb", Size: 1},
		Program: resource.Program{Workspace: t.TempDir(), Env: map[string]string{"SEED": "14"}},
		Spec: resource.ContainerSpec{
			Image: "busybox", Sudo: true, SSH: resource.SSH{Enabled: true, Bind: "127.0.0.1"},
			User: resource.User{Name: "jane", UID: 1234, GID: 1235, Group: "people"},
		},
	}
}

func TestFolder(t *testing.T) {
	in, s := sessions(t), session(t)
	s.Env["NVIDIA_DRIVER_CAPABILITIES"] = "all"
	command := []string{"sleep", "1"}
	for range 2 { // again over the first
		check(t, in.Furnish(s, resource.Handle{UUID: "MIG-1"}, Grant{Env: map[string]string{"LD_LIBRARY_PATH": "/first"}}, command))
	}
	modes := map[string]os.FileMode{".": 0o700, Dir: 0o755, "inside/init.json": 0o600, "inside/host_key": 0o600, "inside/cosplay-init": 0o755, "inside/figures": 0o444, "inside/" + facadeFile: 0o755, "inside/" + driverFile: 0o644}
	for path, mode := range modes {
		if info, err := os.Stat(filepath.Join(in.Folder(s.ID), path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	data, err := os.ReadFile(filepath.Join(in.Inside(s.ID), "init.json"))
	check(t, err)
	var c initd.Config
	check(t, json.Unmarshal(data, &c))
	if err := c.Validate(); err != nil || c.User.Name != "jane" || !c.User.Sudo || !c.SSH.Enabled || !slices.Equal(c.Command, command) || c.Env["NVIDIA_DRIVER_CAPABILITIES"] != "all" || c.Env["LD_LIBRARY_PATH"] != "/first" {
		t.Errorf("cosplay-init gets %+v, %v", c, err)
	}
	// A program that a crash has left incomplete is repaired by the next process.
	program, err := filepath.Glob(filepath.Join(in.Folders, shared.Dir, "cosplay-init-*"))
	check(t, err)
	if len(program) != 1 {
		t.Fatalf("shared programs: %v", program)
	}
	entries, err := os.ReadDir(in.Inside(s.ID))
	check(t, err)
	if len(entries) != 9 {
		t.Errorf("in the folder: %v", entries)
	}
	check(t, in.Clear(s.ID))
	if _, err := os.Stat(in.Folders); err == nil {
		t.Error("the shared folder stays")
	}
}

// TestRewrite: a session's record can be changed; one that is missing or damaged is left as it is.
func TestRewrite(t *testing.T) {
	in, s := sessions(t), session(t)
	check(t, in.Furnish(s, resource.Handle{UUID: "MIG-1"}, Grant{}, nil))
	check(t, in.Readdress(s.ID, resource.One("two")))
	if got, found, err := in.Recorded(s.ID); !found || err != nil || got.Address != resource.One("two") || got.Target.Name != s.Target.Name {
		t.Errorf("recorded: %+v, %v, %v", got, found, err)
	}
	check(t, in.Readdress("absent", resource.One("two")))
	if _, err := os.Stat(in.Folder("absent")); err == nil {
		t.Error("a folder was made")
	}
	file := filepath.Join(in.Folder(s.ID), sessionFile)
	check(t, os.WriteFile(file, []byte("{"), 0o600))
	check(t, in.Readdress(s.ID, resource.One("three")))
	if data, err := os.ReadFile(file); err != nil || string(data) != "{" {
		t.Errorf("a damaged one became %s, %v", data, err)
	}
	if err := in.Readdress("../one", resource.One("two")); err == nil {
		t.Error("a path was taken for an id")
	}
}

const hidden = "hunter2-hidden"

// Sensitive values are in three files of the session's user and nowhere else, and
// what an engine is given does not show them.
func TestSecretsInFolder(t *testing.T) {
	in, s := sessions(t), session(t)
	s.Secret = map[string]string{"TOKEN": hidden, "SEED": hidden, resource.LoaderVariable: hidden}
	s.Env[resource.LoaderVariable] = "never both"
	s = s.Seal("key")
	granted := Grant{Env: map[string]string{resource.LoaderVariable: "/first:" + hidden, "OTHER": "open"}}
	s.Spec.User = resource.User{Name: "jane", UID: os.Getuid(), GID: os.Getgid()}
	if os.Geteuid() == 0 {
		s.Spec.User.UID, s.Spec.User.GID = 1234, 1235
	}
	for range 2 { // again over the first
		check(t, in.Furnish(s, resource.Handle{UUID: "MIG-1"}, granted, nil))
	}
	var holders []string
	check(t, filepath.Walk(in.Folders, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || strings.Contains(path, shared.Dir) {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), hidden) {
			owner := info.Sys().(*syscall.Stat_t)
			if info.Mode().Perm() != 0o400 || int(owner.Uid) != s.Spec.User.UID || int(owner.Gid) != s.Spec.User.GID {
				t.Errorf("%s is %v of user %d", path, info.Mode(), owner.Uid)
			}
			holders = append(holders, strings.TrimPrefix(path, in.Inside(s.ID)))
		}
		return err
	}))
	if want := []string{"/private/environment", "/private/profile.sh", "/private/secrets.json"}; !slices.Equal(holders, want) {
		t.Errorf("the value is in %q, want %q", holders, want)
	}
	if info, err := os.Stat(filepath.Join(in.Inside(s.ID), privateDir)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("their folder is %v, %v", info, err)
	}
	c, err := initd.Load(filepath.Join(in.Inside(s.ID), "init.json"))
	check(t, err)
	if c.Secrets["TOKEN"] != hidden || c.Secrets["SEED"] != hidden || c.Secrets[resource.LoaderVariable] != "/first:"+hidden || c.Env["OTHER"] != "open" || c.Env[resource.LoaderVariable] != "" {
		t.Errorf("cosplay-init reads %+v", c)
	}
	given, err := json.Marshal([]any{in.Environment(s, "MIG-1", granted.Env), in.Mounts(s, true)})
	check(t, err)
	if strings.Contains(string(given), hidden) || !strings.Contains(string(given), `"OTHER":"open"`) {
		t.Errorf("an engine is given %s", given)
	}

	s.Secret = nil
	check(t, in.Furnish(s, resource.Handle{UUID: "MIG-1"}, Grant{}, nil))
	if _, err := os.Stat(filepath.Join(in.Inside(s.ID), privateDir)); !os.IsNotExist(err) {
		t.Errorf("without sensitive values their folder stays: %v", err)
	}
}

// TestHostKey: the key stays the same over a replacement, and is each session's and each state's own.
func TestHostKey(t *testing.T) {
	in := On(runtime.Host{Name: hostName, Owner: resource.Owner{Lineage: "l", Key: "key"}})
	key := in.HostKey("worker-0")
	other := in
	other.Owner.Key = "other"
	elsewhere := in
	elsewhere.Host.Name = "elsewhere"
	if key != in.HostKey("worker-0") || !strings.HasPrefix(key, "ssh-ed25519 ") {
		t.Errorf("the key is %q, then %q", key, in.HostKey("worker-0"))
	}
	for name, different := range map[string]string{"session": in.HostKey("worker-1"), "state": other.HostKey("worker-0"), "host": elsewhere.HostKey("worker-0")} {
		if different == key {
			t.Errorf("another %s has the same key", name)
		}
	}
	any := resource.SSH{Bind: "0.0.0.0"}
	line := in.knownHosts("worker-0", any, 2222)
	if !strings.HasPrefix(line, "cosplay-worker-0,[127.0.0.1]:2222 "+key+" ") || !in.knows(line, "worker-0", any, 2222) {
		t.Errorf("the line is %q", line)
	}
	forged := strings.Replace(line, key, other.HostKey("worker-0"), 1)
	if in.knows(forged, "worker-0", any, 2222) || in.knows(line, "worker-0", any, 2223) || in.knows(line, "worker-1", any, 2222) || other.knows(line, "worker-0", any, 2222) || in.knows("", "worker-0", any, 2222) {
		t.Errorf("a line that is not the session's is known: %q", forged)
	}
}

// TestOwnFolder: the project's scratch folder is found in a workspace, and covered there.
func TestOwnFolder(t *testing.T) {
	for _, c := range []struct{ workspace, base, want string }{
		{"/p", "/p/.cosplay/sessions/default/lab.containers", ".cosplay"},
		{"/home/jane", "/home/jane/p/.cosplay/sessions/default/lab.containers", "p/.cosplay"},
		{"/", "/p/.cosplay/sessions", "p/.cosplay"},
		{"/p/work", "/p/.cosplay/sessions", ""},
		{"/p/.cosplay/work", "/p/.cosplay/sessions", ""},
		{"/home/jane", "/home/jane/sessions", ""},
		{"/p", "/p2/.cosplay/sessions", ""},
	} {
		in := On(runtime.Host{Folders: c.base})
		if got := in.ownFolder(c.workspace); got != c.want {
			t.Errorf("of %s in %s: %q, want %q", c.base, c.workspace, got, c.want)
		}
		covered := slices.ContainsFunc(in.Mounts(resource.Session{ID: "one", Program: resource.Program{Workspace: c.workspace}}, false), func(f cdi.File) bool {
			return f == cdi.File{Host: c.base + "/one/empty", Container: initd.WorkDir + "/" + c.want}
		})
		if covered != (c.want != "") {
			t.Errorf("of %s in %s: covered %v", c.base, c.workspace, covered)
		}
	}
}

// A container of several GPUs gets the nodes of all of them, and what they share once.
func TestNodesOfSeveralGPUs(t *testing.T) {
	root := t.TempDir()
	for i, address := range []string{"0000:84:00.0", "0000:19:00.0", "0000:3b:00.0"} {
		path := filepath.Join(root, "proc/driver/nvidia/gpus", address, "information")
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, fmt.Appendf(nil, "GPU UUID: \t GPU-%d\nDevice Minor: \t %d\n", i, i), 0o644))
	}
	check(t, os.MkdirAll(filepath.Join(root, "dev"), 0o755))
	for _, node := range []string{"nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1", "nvidia2"} {
		check(t, unix.Mknod(filepath.Join(root, "dev", node), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))) // as /dev/null
	}
	s := resource.Session{ID: "one", Slice: resource.Slice{Host: hostName, GPU: "GPU-2"}, More: []resource.Slice{{Host: hostName, GPU: "GPU-0"}}}
	in := Sessions{Driver: cdi.Driver{Root: root}}
	nodes, err := in.nodes(s, resource.Handle{UUID: "GPU-2"})
	check(t, err)
	var at []string
	for _, n := range nodes {
		at = append(at, n.Container)
	}
	if want := []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia2", "/dev/nvidia0"}; !slices.Equal(at, want) {
		t.Errorf("the nodes are %v, want %v", at, want)
	}
	if env := in.Environment(s, "GPU-2", nil); env["CUDA_VISIBLE_DEVICES"] != "0,1" || env["NVIDIA_VISIBLE_DEVICES"] != "GPU-2,GPU-0" {
		t.Errorf("the environment is %v", env)
	}
}

// TestFinding: where the loader has to look first, its variable keeps what the user sets, or else the image.
func TestFinding(t *testing.T) {
	in, s := Sessions{}, session(t)
	image := ""
	value := func(variable string) (string, error) {
		if variable != resource.LoaderVariable {
			return "", nil
		}
		return image, nil
	}
	lib := InContainer(filepath.Dir("lib/" + driver.NVML))
	for _, c := range []struct{ image, user, want string }{{"", "", lib}, {"/image", "", lib + ":/image"}, {"/image", "/mine", lib + ":/mine"}} {
		if image = c.image; c.user != "" {
			s.Env[resource.LoaderVariable] = c.user
		}
		if env, err := in.Finding(s, true, value); err != nil || env[resource.LoaderVariable] != c.want {
			t.Errorf("%+v: %v, %v", c, env, err)
		}
	}
	if env, err := in.Finding(s, false, value); err != nil || env[resource.LoaderVariable] != "" {
		t.Errorf("with the facades in front: %v, %v", env, err)
	}
}
