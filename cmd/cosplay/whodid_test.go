package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPrivilegedWhoDidIt: what root removes from a user's project is drift, which names who did it, and the history names
// both.
func TestPrivilegedWhoDidIt(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const project = "/home/ann/fleet"
	m.allow("ann ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware)
	m.write(project+"/fleet.hcl", workers(0, 2), ann)
	m.write("/opt/admin/fleet.hcl", workers(0, 0), 0)
	m.run(ann, project, installed, "apply", "--auto-approve")
	m.run(0, "/opt/admin", installed, "reset", "--all-projects", "--auto-approve")
	data, _ := os.ReadFile(filepath.Join(m.root, "var/lib/cosplay/history/0.jsonl"))
	if text := string(data); !strings.Contains(text, `"user":"root","uid":0,"for":"ann","op":"release"`) {
		t.Errorf("the history has\n%s", text)
	}
	out, err := m.as(ann, project, installed, "drift").CombinedOutput()
	today := time.Now().UTC().Format("by root at 2006-01")
	if err == nil || !strings.Contains(err.Error(), "2") || !strings.Contains(oneLine(string(out)), today) {
		t.Errorf("drift: %v\n%s", err, out)
	}
	if said := m.run(ann, project, installed, "status"); !strings.Contains(oneLine(said), today) {
		t.Errorf("status: %s", said)
	}
}
