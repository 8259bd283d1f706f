package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cosplay/internal/ledger"
	"cosplay/internal/public"
)

// TestPrivilegedHistory: history joins the ledger with the audit logs that the user may read, one line for each event.
func TestPrivilegedHistory(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.allow("ALL ALL=(root) NOPASSWD: " + installed + " agent --privileged")
	project := m.onSystemLibrary(workers(0, 2))
	if said := m.run(ann, "/home/ann", installed, "history"); said != "Nothing is on record.\n" {
		t.Errorf("an unused machine: %s", said)
	}
	m.write("/home/ann/fleet/fleet.hcl", project, ann)
	m.run(ann, "/home/ann/fleet", installed, "apply", "--auto-approve")
	m.run(0, "/opt", installed, "reset", "--all-projects", "--auto-approve")

	read := func() (shown public.History) {
		t.Helper()
		if err := json.Unmarshal([]byte(m.run(0, "/home", installed, "history", "--json")), &shown); err != nil {
			t.Fatal(err)
		}
		return shown
	}
	created := read().Events
	created = created[slices.IndexFunc(created, func(e public.Event) bool { return e.Op == "create-slice" }):]
	forged, _ := json.Marshal(map[string]any{"time": created[0].Time, "user": "ann", "uid": bob, "project": created[0].Lineage, "state": created[0].State, "host": "forged",
		"command": "forged", "op": "create-slice", "gpu": created[0].GPU, "address": "session.forged", "new": created[0].New, "outcome": "done"})

	// A refused request, and a log with lines about another user, or by the name of one.
	gpu := m.gpus()[0].UUID
	w := m.wire(bob, "")
	m.write("/etc/cosplay/gpus", gpu+" user=ann\n", 0)
	w.refused("no rule of", order{"op": "take", "gpu": gpu, "take": order{}, "holder": order{"lineage": "b", "state": "/home/bob/fleet/cosplay.state.json"}})
	m.write("/home/bob/fleet/.cosplay/audit.jsonl", `{"time":"2026-01-02T03:04:05Z","user":"root","uid":0,"command":"apply","op":"set-gpu","gpu":"`+gpu+`","setting":"power","new":"1 W","outcome":"done"}`+"\nnone\n"+string(forged)+"\n", bob)
	now := time.Now()
	late := ledger.Attempted{At: ledger.Stamp(now), User: "bob", UID: bob, Op: "queue", GPU: gpu, Refused: "it did not answer for 10s"}
	if err := (ledger.Book{Dir: filepath.Join(m.root, ledger.SystemDir)}).Record(late); err != nil {
		t.Fatal(err)
	}

	said := m.run(0, "/home", installed, "history")
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for want, times := range map[string]int{
		"worker-0: create slice 1g.18gb, slot ":                                      1,
		"worker-1: create session folder worker-1 /home/ann/fleet/.cosplay/sessions": 1,
		"create slice": 3, "acquire the GPU\n": 1, "MIG mode off -> on": 1,
		"/home/ann/fleet  GPU 0  release the GPU": 1, "root (by the log of bob)": 1,
		"acquire the GPU; refused: no rule of /etc/cosplay/gpus permits bob to change": 1,
		"turn in the queue; refused: it did not answer for 10s":                        1,
	} {
		if have := strings.Count(said, want); have != times && (times != 0 || have == 0) {
			t.Errorf("root sees %d of %q, want %d, in\n%s", have, want, times, said)
		}
	}
	if !strings.Contains(lines[0], "1 W") || !strings.Contains(lines[len(lines)-1], "turn in the queue") {
		t.Errorf("the newest is not last:\n%s", said)
	}
	for _, e := range read().Events {
		if marked := e.Command == "forged" || e.Host == "forged" || e.Session == "session.forged"; marked && (e.Log != "project" || e.User != "bob") {
			t.Errorf("bob's log says %+v", e)
		}
	}
	mine := m.run(bob, "/home", installed, "history")
	if strings.Contains(mine, "worker-0") || !strings.Contains(mine, "create slice 1g.18gb") {
		t.Errorf("bob sees the log of ann, or not the ledger:\n%s", mine)
	}
	for _, one := range []struct {
		flags      []string
		want, lack string
	}{
		{[]string{"--user", "bob"}, "permits bob", "/home/ann"},
		{[]string{"--user", "1234"}, "worker-0", "bob"},
		{[]string{"--gpu", "0", "--since", "10m"}, "acquire the GPU", "1 W"},
		{[]string{"--gpu", gpu[:10], "--since", now.Add(time.Hour).Format(time.RFC3339)}, "Nothing is on record", "acquire"},
	} {
		said := m.run(0, "/home", append([]string{installed, "history"}, one.flags...)...)
		if !strings.Contains(said, one.want) || strings.Contains(said, one.lack) {
			t.Errorf("%v: %s", one.flags, said)
		}
	}
	if said := m.run(0, "/home", installed, "history", "--gpu", "1"); said != "Nothing is on record.\n" {
		t.Errorf("an idle GPU: %s", said)
	}
	m.fails(0, "/home", []string{installed, "history", "--gpu", "7"}, "nothing is known of such a GPU")
	var shown public.History
	if err := json.Unmarshal([]byte(m.run(ann, "/home/ann/fleet", installed, "history", "--json", "--user", "ann")), &shown); err != nil || len(shown.Events) < 10 {
		t.Fatalf("%+v, %v", shown, err)
	}
	for _, e := range shown.Events {
		if e.Op == "create-slice" && (e.Session == "" || e.Command != "apply" || e.Log != "ledger" || e.Index == nil) {
			t.Errorf("%+v", e)
		}
		if e.Op == "release" && (e.User != "root" || e.For != "ann") {
			t.Errorf("%+v", e)
		}
	}

	// A log that is no file is left out.
	log := filepath.Join(m.root, "home/bob/fleet/.cosplay/audit.jsonl")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	m.run(bob, "/home/bob/fleet", "mkfifo", ".cosplay/audit.jsonl")
	if said := m.run(0, "/home", installed, "history"); strings.Contains(said, "1 W") || !strings.Contains(said, "Left out: ") {
		t.Errorf("a pipe: %s", said)
	}
}
