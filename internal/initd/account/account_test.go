package account_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"cosplay/internal/initd"
	"cosplay/internal/initd/account"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func part(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// A golden file has the image's files, the session's user, and the result.
func TestEnrol(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) < 10 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var in struct {
				initd.User
				Found string `json:"found"` // the shell that the image has
			}
			if err := json.Unmarshal(part(archive, "user"), &in); err != nil {
				t.Fatal(err)
			}
			files := account.Files{Passwd: part(archive, "passwd"), Group: part(archive, "group"), Shadow: part(archive, "shadow")}
			got, who, notes := account.Enrol(files, in.User, in.Found)
			want := []txtar.File{
				{Name: "want/passwd", Data: got.Passwd}, {Name: "want/group", Data: got.Group}, {Name: "want/shadow", Data: got.Shadow},
				{Name: "want/account", Data: fmt.Appendf(nil, "%+v\n", who)}, {Name: "want/notes", Data: lines(notes)},
			}
			if *update {
				write(t, file, archive, want)
			}
			for _, w := range want {
				if diff := cmp.Diff(string(part(archive, w.Name)), string(w.Data)); diff != "" && !*update {
					t.Errorf("%s (-golden +got):\n%s", w.Name, diff)
				}
			}
			again, _, notes := account.Enrol(got, in.User, in.Found)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("a second time changes more:\n%s", diff)
			}
			if len(notes) > 1 { // that an id has a second name stays true
				t.Errorf("a second time there is still to say: %q", notes)
			}
		})
	}
}

func lines(notes []string) []byte {
	if len(notes) == 0 {
		return nil
	}
	return []byte(strings.Join(notes, "\n") + "\n")
}

func write(t *testing.T, file string, archive *txtar.Archive, want []txtar.File) {
	t.Helper()
	out := txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		if !strings.HasPrefix(f.Name, "want/") {
			out.Files = append(out.Files, f)
		}
	}
	for _, w := range want {
		if w.Data != nil {
			out.Files = append(out.Files, w)
		}
	}
	if err := os.WriteFile(file, txtar.Format(&out), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestShell(t *testing.T) {
	root := t.TempDir()
	if got := account.Shell(root, ""); got != "" {
		t.Errorf("an empty image has the shell %q", got)
	}
	for _, step := range []struct{ add, preferred, want string }{
		{"/bin/sh", "", "/bin/sh"},
		{"/usr/bin/bash", "", "/usr/bin/bash"},
		{"/bin/bash", "", "/bin/bash"},
		{"/usr/bin/fish", "/usr/bin/fish", "/usr/bin/fish"},
		{"/etc/notes", "/usr/bin/zsh", "/bin/bash"},
	} {
		path := filepath.Join(root, step.add)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if got := account.Shell(root, step.preferred); got != step.want {
			t.Errorf("with %s, preferring %q: %q, want %q", step.add, step.preferred, got, step.want)
		}
	}
}

// Setup changes nothing in an existing home, and keeps the modes of files.
func TestSetup(t *testing.T) {
	root := t.TempDir()
	me := initd.User{Name: "jane", UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Group: "jane", Home: "/home/jane"}
	put := func(path, content string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("etc/passwd", "daemon:x:1:1::/:/bin/false\n", 0o640)
	put("etc/group", "daemon:x:1:\n", 0o644)
	put("etc/skel/.bashrc", "alias l=ls\n", 0o644)
	if _, notes, err := account.Setup(root, me); err != nil || len(notes) > 0 {
		t.Fatalf("%q, %v", notes, err)
	}
	info, err := os.Stat(filepath.Join(root, "etc/passwd"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode of passwd is %v, %v", info.Mode(), err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "home/jane/.bashrc")); string(data) != "alias l=ls\n" {
		t.Errorf("the new home has no .bashrc: %q, %v", data, err)
	}
	before, err := os.Stat(filepath.Join(root, "etc/passwd"))
	if err != nil {
		t.Fatal(err)
	}
	put("etc/skel/later", "", 0o644)
	if _, notes, err := account.Setup(root, me); err != nil || len(notes) > 0 {
		t.Fatalf("%q, %v", notes, err)
	}
	after, err := os.Stat(filepath.Join(root, "etc/passwd"))
	if err != nil || before.Sys().(*syscall.Stat_t).Ino != after.Sys().(*syscall.Stat_t).Ino {
		t.Error("passwd is written again though nothing changes")
	}
	if _, err := os.Stat(filepath.Join(root, "home/jane/later")); err == nil {
		t.Error("a home that is there is filled again")
	}
}

// TestSetupReveals: files of accounts that only root can read, as podman writes them, are made readable, also in a
// container that has the user already.
func TestSetupReveals(t *testing.T) {
	root := t.TempDir()
	me := initd.User{Name: "jane", UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Group: "jane", Home: "/home/jane"}
	modes := map[string]os.FileMode{"passwd": 0o644, "group": 0o644, "shadow": 0o600}
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for file := range modes {
			path := filepath.Join(root, "etc", file)
			f, err := os.OpenFile(path, os.O_CREATE, 0o600)
			if err := errors.Join(err, f.Close(), os.Chmod(path, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if _, notes, err := account.Setup(root, me); err != nil || len(notes) > 0 {
			t.Fatalf("%q, %v", notes, err)
		}
		for file, want := range modes {
			if info, err := os.Stat(filepath.Join(root, "etc", file)); err != nil || info.Mode().Perm() != want {
				t.Errorf("the mode of %s is %v, %v", file, info.Mode(), err)
			}
		}
	}
}

func TestSetupTells(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "etc/passwd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := account.Setup(root, initd.User{Name: "jane"}); err == nil || !strings.Contains(err.Error(), "etc/passwd") {
		t.Errorf("the error is %v, want the file's name in it", err)
	}
}

// TestIn: the account of exec --user, as docker exec --user finds it.
func TestIn(t *testing.T) {
	files := account.Files{
		Passwd: []byte("root:x:0:0:root:/root:/bin/bash\njane:x:1234:1235::/home/jane:/bin/zsh\nodd:x:x:1::/:\n"),
		Group:  []byte("root:x:0:\npeople:x:1235:\nvideo:x:44:jane,odd\n"),
	}
	for _, c := range []struct {
		ref   string
		want  account.Account
		shell string
	}{
		{"jane", account.Account{Name: "jane", UID: 1234, GID: 1235, Groups: []uint32{1235, 44}, Home: "/home/jane"}, "/bin/zsh"},
		{"1234", account.Account{Name: "jane", UID: 1234, GID: 1235, Groups: []uint32{1235, 44}, Home: "/home/jane"}, "/bin/zsh"},
		{"jane:video", account.Account{Name: "jane", UID: 1234, GID: 44, Groups: []uint32{44}, Home: "/home/jane"}, "/bin/zsh"},
		{"7:8", account.Account{Name: "7", UID: 7, GID: 8, Groups: []uint32{8}, Home: "/"}, ""},
		{"7", account.Account{Name: "7", UID: 7, Groups: []uint32{0}, Home: "/"}, ""},
	} {
		got, shell, err := account.In(files, c.ref)
		if err != nil || shell != c.shell || !cmp.Equal(got, c.want) {
			t.Errorf("%s: %+v %q %v, want %+v", c.ref, got, shell, err, c.want)
		}
	}
	for ref, want := range map[string]string{"joe": "no user joe", "odd": "no user odd", "jane:staff": "no group staff", "": "no user", "-1": "no user -1", "4294967296": "no user"} {
		if _, _, err := account.In(files, ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", ref, err, want)
		}
	}
}
