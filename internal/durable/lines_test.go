package durable

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLines: writers that take turns lose no line in rotations, and a line after an incomplete one is whole.
func TestLines(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	lines := Lines{Path: path, Max: 600, Mode: 0o600, Older: []string{path + ".1", path + ".2", path + ".3", path + ".4", path + ".5", path + ".6", path + ".7", path + ".8"}}
	if err := os.WriteFile(path, []byte("incompl"), 0o600); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 50 {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				lock, err := LockByte(ctx, path+".lock", 0)
				cancel()
				if err != nil {
					t.Error(err)
					return
				}
				if err := lines.Append(fmt.Appendf(nil, "line %d.%d.", w, n)); err != nil {
					t.Error(err)
				}
				lock.Close()
			}
		})
	}
	writers.Wait()
	files, _ := filepath.Glob(path + "*")
	all := ""
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, ".lock") && len(data) > 620 {
			t.Errorf("%s has %d bytes", file, len(data))
		}
		all += string(data)
	}
	for w := range 4 {
		for n := range 50 {
			if line := fmt.Sprintf("line %d.%d.\n", w, n); strings.Count(all, line) != 1 || strings.Contains(all, "incompl"+line) {
				t.Errorf("%q is there %d times", line, strings.Count(all, line))
			}
		}
	}
	if len(files) < 4 {
		t.Errorf("the files are %q: nothing was rotated", files)
	}
}

// TestLinesBounded: what is older than the last file is removed, and a new file begins with what First returns.
func TestLinesBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	lines := Lines{Path: path, Max: 20, Mode: 0o600, Older: []string{path + ".old"}, First: func() []byte { return []byte("kept\n") }}
	for n := range 100 {
		if err := lines.Append(fmt.Appendf(nil, "line %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(path + "*")
	now, _ := os.ReadFile(path)
	if len(files) != 2 || !strings.HasPrefix(string(now), "kept\nline ") || !strings.HasSuffix(string(now), "line 99\n") {
		t.Errorf("%q; the newest has %q", files, now)
	}
	if err := os.Mkdir(path+".folder", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (Lines{Path: path + ".folder"}).Append([]byte("x")); err == nil {
		t.Error("a folder is no error")
	}
}
