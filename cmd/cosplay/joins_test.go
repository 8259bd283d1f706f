package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// joiners are seven projects that share the simulated host of the first, each with a session.
func joiners(t *testing.T) (folder string, all []project) {
	t.Helper()
	first, _ := runnable(t)
	for i := range 7 {
		text := fmt.Sprintf("host \"lab\" {\n  simulate = \"1 x h200\"\n}\ncosplay {\n  state = \"s%d.json\"\n}\nsession \"w\" {\n  target = \"2060\"\n}\n", i)
		if err := os.WriteFile(filepath.Join(first.dir, fmt.Sprintf("p%d.hcl", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		all = append(all, first)
	}
	return first.dir, all
}

// together starts all at once, and returns what each printed and whether it succeeded.
func together(t *testing.T, all []project, words ...string) (said []string, fine int, took time.Duration) {
	t.Helper()
	said = make([]string, len(all))
	var failed, group = make([]bool, len(all)), sync.WaitGroup{}
	begun := time.Now()
	for i, p := range all {
		c := p.command(append([]string{"--file", fmt.Sprintf("p%d.hcl", i)}, words...)...)
		group.Go(func() {
			out, err := c.CombinedOutput()
			said[i], failed[i] = string(out), err != nil
		})
	}
	group.Wait()
	for _, f := range failed {
		if !f {
			fine++
		}
	}
	return said, fine, time.Since(begun)
}

// TestJoins: seven projects that join one GPU at the same time all get in, with --wait and without it.
func TestJoins(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"--wait=20s", ""} {
		_, all := joiners(t)
		words := strings.Fields("apply --auto-approve " + flags)
		said, fine, took := together(t, all, words...)
		t.Logf("%q: %d in %s", flags, fine, took)
		if fine != len(all) {
			t.Errorf("%q: %d of %d got in:\n%s", flags, fine, len(all), strings.Join(said, "\n---\n"))
		}
		if out, err := all[0].command("--file", "p0.hcl", "plan", "--detailed-exitcode").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
