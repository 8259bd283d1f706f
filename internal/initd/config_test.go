package initd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/initd"
)

func load(t *testing.T, content string) (initd.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "init.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return initd.Load(file)
}

func TestLoad(t *testing.T) {
	full := initd.Config{
		User:           initd.User{Name: "jane", UID: 1234, GID: 100, Group: "users", Home: "/data/jane", Shell: "/bin/zsh", Sudo: true},
		AuthorizedKeys: []string{"ssh-ed25519 AAAA"},
		SSH:            initd.SSH{Enabled: true, Port: 2222, HostKey: "/key"},
		Env:            map[string]string{"A": "b\nc"},
		Command:        []string{"python", "train.py"},
		Workspace:      "/exp",
	}
	written, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	short := initd.Config{
		User: initd.User{Name: "jane", UID: 1234, GID: 1234, Group: "jane", Home: "/home/jane"},
		SSH:  initd.SSH{Port: 22, HostKey: initd.HostKeyPath}, Workspace: initd.WorkDir,
	}
	root := short
	root.User = initd.User{Name: "root", Group: "root", Home: "/root"}
	for content, want := range map[string]initd.Config{
		string(written): full,
		`{"user":{"name":"jane","uid":1234,"gid":1234}}`: short,
		`{"user":{"name":"root"}}`:                       root,
	} {
		got, err := load(t, content)
		if err != nil {
			t.Errorf("%s: %v", content, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", content, diff)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for content, want := range map[string]string{
		`nonsense`:                         "replace the session",
		`{}`:                               "user name",
		`{"user":{"name":"a:b"}}`:          "user name",
		`{"user":{"name":"-x"}}`:           "user name",
		`{"user":{"name":"root","uid":5}}`: "root is uid 0",
		`{"user":{"name":"a","gid":5,"group":"root"}}`: "root is gid 0",
		`{"user":{"name":"a","group":"b,c"}}`:          "group name",
		`{"user":{"name":"a","home":"x"}}`:             "home",
		`{"user":{"name":"a"},"workspace":"x"}`:        "workspace",
		`{"user":{"name":"a"},"command":[""]}`:         "empty word",
		`{"user":{"name":"a"},"ssh":{"port":70000}}`:   "ssh port",
		`{"user":{"name":"a"},"env":{"A=B":"tell"}}`:   "environment variable",
		`{"user":{"name":"a","uid":-1}}`:               "replace the session",
	} {
		_, err := load(t, content)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "tell") {
			t.Errorf("%s: %v; want %q in it", content, err, want)
		}
	}
	if _, err := initd.Load("/nowhere/init.json"); err == nil || !strings.Contains(err.Error(), "cosplay apply") {
		t.Errorf("a missing file: %v", err)
	}
}
