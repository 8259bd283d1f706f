package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/projecttest"
)

// TestExamples: each example is valid and says how it wants to be used; those on
// a simulated host are applied, found unchanged, and destroyed without a trace.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.hcl")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newProject(t, string(text))
			p.run("validate")
			if !strings.Contains(string(text), "\n  simulate = ") {
				return // for the GPUs of the machine
			}
			if strings.Contains(string(text), "prevent_destroy = true") {
				p.through()
				return
			}
			p.thereAndBack()
		})
	}
}

// TestExampleFolders: the same for those that are more than a file, in the ways
// in which they want to be used.
func TestExampleFolders(t *testing.T) {
	const secret = "hunter2-of-the-ci"
	for _, use := range []struct {
		folder, sessions string
		env, flags       []string
	}{
		{"branches", "3 to create", nil, nil},
		{"branches", "4 to create", nil, []string{"--var-file", "large.hclvars"}},
		{"branches", "1 to create", []string{"COSPLAY_VAR_branch=mine"}, []string{"--var", "seeds=[7]"}},
		{"ci", "1 to create", []string{"COSPLAY_VAR_token=" + secret}, nil},
		{"laptop", "3 to create", nil, nil},
	} {
		t.Run(use.folder+strings.Join(use.flags, ""), func(t *testing.T) {
			p := project{t: t, dir: t.TempDir()}
			if err := os.CopyFS(p.dir, os.DirFS(filepath.Join("../../examples", use.folder))); err != nil {
				t.Fatal(err)
			}
			for _, variable := range use.env {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			p.run("fmt", "--check")
			if plan := p.run(slices.Concat([]string{"plan"}, use.flags)...); !strings.Contains(plan, use.sessions) {
				t.Errorf("no %q in\n%s", use.sessions, plan)
			}
			printed := p.run(slices.Concat([]string{"plan", "--markdown"}, use.flags)...) + p.thereAndBack(use.flags...)
			if strings.Contains(printed, secret) {
				t.Error("the secret is printed")
			}
		})
	}
}

// thereAndBack applies a project, finds it unchanged, and destroys it without a
// trace. It returns the output, and the state as it was.
func (p project) thereAndBack(flags ...string) string {
	p.t.Helper()
	before, printed := p.through(flags...)
	printed += p.run(slices.Concat([]string{"destroy", "--auto-approve"}, flags)...)
	if !bytes.Equal(p.hardware(), before) {
		p.t.Error("the host is not as it was")
	}
	return printed
}

// through plans and applies a project, and finds it unchanged. It returns the hosts
// as they were before, the output, and the state.
func (p project) through(flags ...string) ([]byte, string) {
	p.t.Helper()
	with := func(args ...string) []string { return slices.Concat(args, flags) }
	printed := p.run(with("plan")...)
	before := p.hardware()
	printed += p.run(with("apply", "--auto-approve")...) + p.run(with("plan", "--detailed-exitcode")...)
	state, err := os.ReadFile(filepath.Join(p.dir, "cosplay.state.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	return before, printed + string(state)
}

// TestFences: every piece of configuration in the documents is valid.
func TestFences(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?s)```hcl\n(.*?)```")
	found := 0
	for _, document := range append(documents, "../../README.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
			found++
			p := newProject(t, m[1])
			if err := os.WriteFile(filepath.Join(p.dir, "cluster.json"), projecttest.NewCluster(2, "h200").JSON(), 0o600); err != nil {
				t.Fatal(err)
			}
			p.run("validate")
		}
	}
	if found == 0 {
		t.Error("no document has a piece of configuration")
	}
}
