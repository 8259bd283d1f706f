package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
			p.run("plan")
			before := p.hardware()
			p.run("apply", "--auto-approve")
			p.run("plan", "--detailed-exitcode")
			p.run("destroy", "--auto-approve")
			if !bytes.Equal(p.hardware(), before) {
				t.Error("the host is not as it was")
			}
		})
	}
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
			newProject(t, m[1]).run("validate")
		}
	}
	if found == 0 {
		t.Error("no document has a piece of configuration")
	}
}
