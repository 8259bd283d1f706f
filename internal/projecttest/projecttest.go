// Package projecttest opens and applies projects on a simulated host, for tests.
package projecttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cosplay/internal/agent"
	"cosplay/internal/machine"
	"cosplay/internal/project"
)

// SevenWorkers is a configuration that fills a GPU.
const SevenWorkers = `
host "lab" { simulate = "1 x h200" }
session "worker" {
  count  = 7
  target = "2060"
}
`

// Main runs the tests; it lets the test binary be the agent, as cosplay is its own.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		flags := map[string]string{}
		for i := 2; i+1 < len(os.Args); i += 2 {
			flags[os.Args[i]] = os.Args[i+1]
		}
		if err := agent.Serve(os.Stdin, os.Stdout, agent.Service{Library: flags["--library"], Ledger: flags["--ledger"]}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// New writes a configuration into a new folder.
func New(t testing.TB, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	Write(t, dir, text)
	return dir
}

// Write writes a configuration into a folder.
func Write(t testing.TB, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "cosplay.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Open opens the project of a folder until the test ends.
func Open(t testing.TB, dir string) *project.Project {
	t.Helper()
	p, _, diags, err := project.Open(project.Options{Dir: dir, Version: "test", Clusters: true})
	if err != nil {
		t.Fatal(err)
	}
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Apply plans and applies once, and returns the steps of the plan.
func Apply(t testing.TB, dir string, goal project.Goal) string {
	t.Helper()
	p := Open(t, dir)
	defer p.Close()
	ctx := context.Background()
	if err := p.Lock(ctx, "test", time.Second); err != nil {
		t.Fatal(err)
	}
	o, diags, err := p.Plan(ctx, project.Aim{Goal: goal})
	if err != nil {
		t.Fatal(err)
	}
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if o.Plan.Empty() {
		return ""
	}
	result, err := p.Apply(ctx, o.Plan, o.Prior, o.Live, project.ApplyOptions{Parallelism: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Failures {
		t.Fatal(f)
	}
	return o.Plan.String()
}

// Hardware is the content of the simulated host "lab".
func Hardware(t testing.TB, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, machine.ScratchDir, "sim", "lab", "host"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
