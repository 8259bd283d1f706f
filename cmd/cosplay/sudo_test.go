package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// foreign lists the files of a folder that do not belong to a user.
func (m *machine) foreign(folder string, uid int) (all []string) {
	m.t.Helper()
	err := filepath.WalkDir(filepath.Join(m.root, folder), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != uint32(uid) {
			all = append(all, strings.TrimPrefix(path, m.root))
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// TestPrivilegedSudo: what sudo cosplay creates belongs to the user who called sudo, and the user goes on without sudo.
func TestPrivilegedSudo(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const project = "/home/ann/fleet"
	m.allow("ann ALL=(root) NOPASSWD: " + installed)
	m.write(project+"/fleet.hcl", strings.Replace(workers(0, 2), "count", "workspace = \"./exp/${count.index}\"\n  count", 1), ann)
	sudo := func(words ...string) string {
		t.Helper()
		return m.run(ann, project, append([]string{"sudo", "-n", installed}, words...)...)
	}
	sudo("plan", "--out", "saved")
	sudo("fmt")
	sudo("apply", "--auto-approve")
	if all := m.foreign(project, ann); len(all) > 0 {
		t.Errorf("not the user's:\n%s", strings.Join(all, "\n"))
	}
	if all := m.foreign("/var/lib/cosplay", 0); len(all) > 0 {
		t.Errorf("not root's:\n%s", strings.Join(all, "\n"))
	}
	m.run(ann, project, installed, "status")
	m.run(ann, project, installed, "exec", "worker[0]", "--", "true")
	m.run(ann, project, installed, "plan", "--detailed-exitcode")

	// A project with root's files, as earlier versions left it, gets the command that repairs it.
	m.run(0, project, "chown", "-R", "root:", "cosplay.state.json", "cosplay.state.json.lock", ".cosplay")
	const repair = "sudo chown -R ann: /home/ann/fleet/.cosplay /home/ann/fleet/cosplay.state.json"
	for _, words := range [][]string{{"status"}, {"exec", "worker[0]", "--", "true"}, {"destroy", "--auto-approve"}} {
		m.fails(ann, project, append([]string{installed}, words...), "belong to root", repair)
	}
	sudo("plan")
	if all := m.foreign(project, ann); len(all) > 0 {
		t.Errorf("not repaired:\n%s", strings.Join(all, "\n"))
	}

	// Files of others behind links stay theirs.
	m.write("/opt/theirs", "x", 0)
	m.run(ann, project, "ln", "-s", "/opt/theirs", ".cosplay/link")
	m.allow("ann ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware)
	sudo("plan")
	if info, err := os.Lstat(filepath.Join(m.root, "/opt/theirs")); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("root's file: %v, %v", info, err)
	}
	m.run(ann, project, installed, "destroy", "--auto-approve")
	if len(m.book()) > 0 || m.gpus()[0].MIG {
		t.Errorf("left: %+v", m.book())
	}
}
