package launch_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"cosplay/internal/initd/account"
	"cosplay/internal/initd/environ"
	"cosplay/internal/initd/launch"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for file, mode := range map[string]os.FileMode{"first/note": 0o644, "second/note": 0o755, "second/tool": 0o755, "own": 0o755} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	path := "relative:" + dir + "/none:" + dir + "/first:" + dir + "/second"
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"tool", "/second/tool", nil},
		{"note", "/second/note", nil},
		{"./own", "/own", nil},
		{"second/tool", "/second/tool", nil},
		{dir + "/own", "/own", nil},
		{"own", "", fs.ErrNotExist},
		{"./none", "", fs.ErrNotExist},
		{"first/note", "", fs.ErrPermission},
		{"./second", "", fs.ErrPermission},
	} {
		got, err := launch.Find(c.name, dir, path)
		want := c.want
		if want != "" {
			want = dir + want
		}
		if got != want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, got, err, want, c.err)
		}
	}
}

func TestDir(t *testing.T) {
	here := t.TempDir()
	for _, c := range []struct{ workspace, home, want string }{
		{here, "/", here}, {"/nowhere", here, here}, {"/nowhere", "/nowhere", "/"},
	} {
		l := launch.Launcher{Workspace: c.workspace, Account: account.Account{Home: c.home}}
		if got := l.Dir(); got != c.want {
			t.Errorf("%q, %q: starts in %q, want %q", c.workspace, c.home, got, c.want)
		}
	}
}

func TestLineWithoutShell(t *testing.T) {
	l := launch.Launcher{}
	env := environ.Vars{"PATH": "/bin"}
	cmd, err := l.Line(env, `/bin/sh 'a  b' c\ d`)
	if err != nil || len(cmd.Args) != 3 || cmd.Args[1] != "a  b" || cmd.Args[2] != "c d" {
		t.Errorf("%v, %v", cmd, err)
	}
	for _, line := range []string{"", "/bin/sh 'open"} {
		if _, err := l.Line(env, line); err == nil {
			t.Errorf("%q runs", line)
		}
	}
	if _, err := l.Login(env); !errors.Is(err, launch.ErrNoShell) {
		t.Errorf("a login: %v", err)
	}
}
