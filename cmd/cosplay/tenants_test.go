package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/ledger"
	"cosplay/internal/public"
)

// TestPrivilegedTenants: in a folder without a project, status, ps and map show the machine with the projects of all its
// users; the sessions of others only to root.
func TestPrivilegedTenants(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.allow("ALL ALL=(root) NOPASSWD: " + installed + " agent --privileged")
	m.fails(ann, "/home/ann", []string{installed, "status"}, "no GPU of this machine can be read", "libnvidia-ml.so.1", "cosplay init", "cosplay doctor")
	project := m.onSystemLibrary(strings.Replace(workers(0, 2), "count ", "ttl = \"8h\"\n  count ", 1))
	if said := m.run(ann, "/home/ann", installed, "ps"); said != "No project holds a GPU of this machine.\n" {
		t.Errorf("an unused machine: %s", said)
	}
	for name, uid := range map[string]int{"ann": ann, "bob": bob} {
		m.write("/home/"+name+"/fleet/fleet.hcl", project, uid)
		m.run(uid, "/home/"+name+"/fleet", installed, "apply", "--auto-approve")
	}
	read := func(uid int, command string) (shown public.Machine) {
		t.Helper()
		if err := json.Unmarshal([]byte(m.run(uid, "/home", installed, command, "--json")), &shown); err != nil || len(shown.Projects) != 2 {
			t.Fatalf("%+v, %v", shown, err)
		}
		return shown
	}
	theirs := read(0, "status")
	for i, user := range []string{"ann", "bob"} {
		p := theirs.Projects[i]
		if p.User != user || p.Folder != "/home/"+user+"/fleet" || !p.Readable || p.Lost || p.Run || len(p.Held) != 1 || len(p.Held[0].Slices) != 2 || len(p.Sessions) != 2 {
			t.Fatalf("root sees %+v", p)
		}
		if s := p.Sessions[1]; s.Name != "worker-1" || s.ExpiresBy != "ttl" || *s.TimeLeft < 28000 || s.UpAt == "" {
			t.Errorf("root sees %+v", s)
		}
	}
	if host := theirs.Host; host == nil || len(host.GPUs) != 2 || host.GPUs[0].ClockLock != "held" || host.GPUs[0].Acquired || len(host.GPUs[0].Holders) != 2 {
		t.Errorf("root sees %+v", host)
	}
	if one := read(ann, "map").Projects; !one[0].Readable || one[1].Readable || len(one[1].Sessions) != 0 || len(one[1].Held[0].Slices) != 2 {
		t.Errorf("ann sees %+v", one)
	}
	for _, uid := range []int{0, ann} {
		said := m.run(uid, "/home", installed, "status")
		for want, root := range map[string]bool{"MIG on": true, "(locked)": true, "/home/bob/fleet": true, "2 projects of 2 users": true, "4 sessions": uid == 0, "sudo cosplay status": uid != 0} {
			if strings.Contains(said, want) != root {
				t.Errorf("user %d: %q is %v in\n%s", uid, want, !root, said)
			}
		}
	}

	// A lost state, a state of another user under the path that one has in the ledger, and a slice of no project.
	state := filepath.Join(m.root, "home/ann/fleet/cosplay.state.json")
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	if said := m.run(0, "/home", installed, "ps"); !strings.Contains(said, "state lost") || !strings.Contains(said, "cosplay reset --holder") {
		t.Errorf("a lost state: %s", said)
	}
	m.run(0, "/", "cp", "-p", "/home/bob/fleet/cosplay.state.json", "/home/ann/fleet/")
	if one := read(0, "ps").Projects[0]; one.Readable {
		t.Errorf("the state of another user: %+v", one)
	}
	if said := m.run(0, "/home", installed, "ps"); !strings.Contains(said, fmt.Sprintf("/home/ann/fleet: state not read: it belongs to UID %d, and the project to UID %d.", bob, ann)) || strings.Contains(said, "sudo") {
		t.Errorf("the state of another user: %s", said)
	}

	// A driver that does not answer leaves the ledger.
	if err := os.Rename(filepath.Join(m.root, hardware), filepath.Join(m.root, hardware+".not")); err != nil {
		t.Fatal(err)
	}
	if shown := read(0, "status"); shown.Host != nil || !strings.Contains(shown.Unread, "libnvidia-ml.so.1") {
		t.Errorf("without a driver: %+v", shown)
	}
	if said := oneLine(m.run(0, "/home", installed, "status")); !strings.Contains(said, "The GPUs cannot be read") || !strings.Contains(said, "/home/bob/fleet") {
		t.Errorf("without a driver: %s", said)
	}
	if err := os.WriteFile(filepath.Join(m.root, ledger.SystemDir, "ledger", theirs.Host.GPUs[0].UUID+".json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	m.fails(0, "/home", []string{installed, "status"}, theirs.Host.GPUs[0].UUID)
}
