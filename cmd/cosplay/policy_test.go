package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cosplay/internal/ledger"
)

// TestPrivilegedPolicy: root's agent refuses what the admin's rules do not permit a user, whatever the client is; plan
// reports it early, and doctor lists the rules.
func TestPrivilegedPolicy(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const project = "/home/bob/fleet"
	m.allow("bob ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware)
	gpus := m.gpus()
	first, second := gpus[0].UUID, gpus[1].UUID
	m.write("/etc/cosplay/gpus", "# the lab\n"+
		first+" user=bob manage=mig-mode,slices slices=2\n"+
		first+" user=ann\n"+
		second+" group=lab slices=0\n", 0)
	const rule = "the rule /etc/cosplay/gpus:2 ("

	of := func(lineage, gpu string) order {
		return order{"gpu": gpu, "holder": order{"lineage": lineage, "state": "/home/bob/" + lineage + ".json"}}
	}
	slice := func(lineage string, start int) order {
		return of(lineage, first).with(creates(order{"gpu": first, "host": "lab", "profile": "1g.18gb", "start": start, "size": 1}))
	}
	take := func(lineage, gpu string, others ...string) order {
		return of(lineage, gpu).with(order{"op": "take", "take": order{"others": others}})
	}
	w := m.wire(bob, hardware)
	w.refused(rule, take("one", first).with(order{"take": order{"whole": true}}))
	w.granted(take("one", first))
	w.refused("does not permit bob to change the SM clock", of("one", first).with(order{"op": "set", "setting": "clock", "value": gpus[0].Model.ClocksMHz[0]}))
	w.refused("does not permit bob to change the power limit", of("one", first).with(order{"op": "set", "setting": "power", "value": gpus[0].Model.PowerMinMW}))
	w.refused("does not permit bob to change the persistence mode", of("one", first).with(order{"op": "set", "setting": "persistence", "value": 1}))
	w.granted(of("one", first).with(order{"op": "set", "setting": "mig", "value": 1}))
	w.granted(slice("one", 0))

	// A user waits for GPUs that exist and that the rules permit, under the true name.
	queue := func(gpus ...string) order {
		return order{"op": "queue", "gpus": gpus, "holder": order{"lineage": "x", "state": "/x", "user": "root"}}
	}
	w.refused("no rule of /etc/cosplay/gpus permits bob to change "+second, queue(first, second))
	w.refused("is none", queue(first, first))
	w.refused("is none", queue("GPU-"+strings.Repeat("x", 10000)))
	w.refused("names no GPU", queue())
	w.granted(queue(first))
	w.granted(queue(first))
	data, err := os.ReadFile(filepath.Join(m.root, ledger.SystemDir, "queue.json"))
	if err != nil || strings.Count(string(data), "number") != 1 || !strings.Contains(string(data), `"uid":1235,"user":"bob"`) {
		t.Errorf("the queue is %s, %v", data, err)
	}
	w.granted(order{"op": "leave-queue"})

	// The bound holds within one request, too.
	place := func(start int) order {
		return order{"gpu": first, "host": "lab", "profile": "1g.18gb", "start": start, "size": 1}
	}
	if said := w.ask(of("one", first).with(creates(place(3), place(4), place(5)))); strings.Count(said, "more than 2 slices: bob has 1, and this asks for 2 or more") != 2 {
		t.Errorf("three slices at once: %q", said)
	}
	w.granted(of("one", first).with(order{"op": "destroy-slice", "slice": m.gpus()[0].Slices[1]}))

	// The bound holds over all projects, and for requests at the same moment.
	w.granted(take("two", first, "one"))
	var both sync.WaitGroup
	said := [2]string{}
	for i, lineage := range []string{"one", "two"} {
		other := m.wire(bob, hardware)
		both.Go(func() { said[i] = other.ask(slice(lineage, 1+i)) })
	}
	both.Wait()
	if (said[0] == "") == (said[1] == "") || !strings.Contains(said[0]+said[1], "more than 2 slices, and bob has 2") {
		t.Errorf("two requests at once: %q", said)
	}
	w.refused("more than 2 slices, and bob has 2", slice("two", 5))
	if now := m.gpus()[0]; len(now.Slices) != 2 {
		t.Errorf("the GPU has %+v", now.Slices)
	}

	// Each change and each refusal is in root's record.
	for file, want := range map[string][]string{
		"1235.jsonl":         {`"op":"set-mig"`, `"was":"off","value":"on"`},
		"1235.refused.jsonl": {`"op":"set-clock"`, `the rule /etc/cosplay/gpus:2 (`},
	} {
		data, err := os.ReadFile(filepath.Join(m.root, ledger.SystemDir, "history", file))
		for _, w := range want {
			if err != nil || !strings.Contains(string(data), w) {
				t.Errorf("%s lacks %s: %v\n%s", file, w, err, data)
			}
		}
	}

	// Groups, and a rule that permits nothing.
	w.refused("no rule of /etc/cosplay/gpus permits bob to change "+second, take("one", second))
	m.run(0, "/", "sh", "-c", "echo lab:x:4322:bob >>/etc/group")
	w.granted(take("one", second))
	w.refused("more than 0 slices", of("one", second).with(creates(order{"gpu": second, "host": "lab", "profile": "1g.18gb", "start": 0, "size": 1})))
	w.granted(of("one", second).with(order{"op": "release"}))

	// Slices can be destroyed and the baseline restored, whatever the rules are by then.
	m.write("/etc/cosplay/gpus", first+" user=ann\n", 0)
	w.refused("no rule of /etc/cosplay/gpus", slice("one", 6))
	for _, s := range m.gpus()[0].Slices {
		if w.ask(of("one", first).with(order{"op": "destroy-slice", "slice": s})) != "" {
			w.granted(of("two", first).with(order{"op": "destroy-slice", "slice": s}))
		}
	}
	w.granted(of("two", first).with(order{"op": "release", "as_it_is": true}))
	w.granted(of("one", first).with(order{"op": "leave"}))
	w.granted(of("one", first).with(order{"op": "set", "setting": "mig", "value": 0}))
	w.granted(of("one", first).with(order{"op": "release"}))

	// The client knows early.
	m.write("/etc/cosplay/gpus", first+" user=bob manage=mig-mode,slices slices=2\n", 0)
	m.write(project+"/fleet.hcl", workers(0, 2), bob)
	if said := oneLine(m.run(bob, project, installed, "plan")); !strings.Contains(said, `the rules of host "lab" do not permit all of the plan`) || !strings.Contains(said, "/etc/cosplay/gpus:1 (") {
		t.Errorf("plan says %s", said)
	}
	before := m.state()
	m.fails(bob, project, []string{installed, "apply", "--auto-approve"}, "do not permit all of the plan", "out of manage in the host block")
	if m.state() != before {
		t.Error("a refused apply changed the GPU")
	}
	m.write(project+"/fleet.hcl", strings.Replace(workers(0, 2), "runtime", "manage = [\"mig-mode\", \"slices\"]\n  runtime", 1), bob)
	m.run(bob, project, installed, "apply", "--auto-approve")
	m.write(project+"/fleet.hcl", strings.Replace(workers(0, 3), "runtime", "manage = [\"mig-mode\", \"slices\"]\n  runtime", 1), bob)
	m.fails(bob, project, []string{installed, "apply", "--auto-approve"}, "more than 2 slices")
	if said := oneLine(m.run(bob, project, "sh", "-c", installed+" doctor || true")); !strings.Contains(said, first+" user=bob manage=mig-mode,slices slices=2") {
		t.Errorf("doctor says %s", said)
	}

	// Rules that are wrong permit nothing, but to remove and restore.
	m.write("/etc/cosplay/gpus", "*\n"+first+" users=bob\n", 0)
	w.refused(`/etc/cosplay/gpus:2: a rule has no "users=bob"`, take("three", second))
	m.run(bob, project, installed, "destroy", "--auto-approve")
	m.run(0, "/", "sh", "-c", "rm /etc/cosplay/gpus; echo '*' >/home/bob/gpus; chown 1235 /home/bob/gpus; ln -s /home/bob/gpus /etc/cosplay/gpus")
	w.refused("not root's: chown", take("three", second))
}
