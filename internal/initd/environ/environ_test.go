package environ_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/initd"
	"cosplay/internal/initd/account"
	"cosplay/internal/initd/environ"
)

func TestBuild(t *testing.T) {
	jane := account.Account{Name: "jane", Home: "/home/jane", Shell: "/bin/bash"}
	for _, c := range []struct {
		what                               string
		image, client, session, connection environ.Vars
		who                                account.Account
		want                               []string
	}{
		{what: "nothing", who: jane, want: []string{"HOME=/home/jane", "LOGNAME=jane", "PATH=" + environ.DefaultPath, "SHELL=/bin/bash", "USER=jane"}},
		{
			what:  "each over the one before",
			image: environ.Vars{"A": "image", "B": "image", "C": "image", "HOME": "/root", "PATH": "/opt/bin", "SHELL": "/bin/zsh"}, client: environ.Vars{"B": "client", "C": "client", "USER": "client"},
			session: environ.Vars{"C": "session", "TERM": "session"}, connection: environ.Vars{"TERM": "vt220"}, who: jane,
			want: []string{"A=image", "B=client", "C=session", "HOME=/home/jane", "LOGNAME=jane", "PATH=/opt/bin", "SHELL=/bin/bash", "TERM=vt220", "USER=jane"},
		},
		{
			what:  "no shell, and a session that says otherwise",
			image: environ.Vars{"SHELL": "/bin/zsh"}, session: environ.Vars{"HOME": "/data"}, who: account.Account{Name: "root", Home: "/root"},
			want: []string{"HOME=/data", "LOGNAME=root", "PATH=" + environ.DefaultPath, "USER=root"},
		},
	} {
		got := environ.Build(c.image, c.client, c.who, c.session, c.connection).List()
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}

func TestParse(t *testing.T) {
	got := environ.Parse([]string{"A=1", "B=x=y\n z", "C=", "=odd", "none"})
	if diff := cmp.Diff(environ.Vars{"A": "1", "B": "x=y\n z", "C": ""}, got); diff != "" {
		t.Error(diff)
	}
}

func TestShared(t *testing.T) {
	image := environ.Vars{"A": "image", "HOME": "/root", "HOSTNAME": "x", "my.var": "1", "npm-x": "2"}
	shared, unnamed := environ.Shared(image, environ.Vars{"A": "session"})
	if diff := cmp.Diff(environ.Vars{"A": "session", "PATH": environ.DefaultPath}, shared); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(unnamed, []string{"my.var", "npm-x"}) {
		t.Errorf("left out: %q", unnamed)
	}
}

// The rule by which pam_env reads a line: the value is between the first and the last quote.
func TestPAM(t *testing.T) {
	vars := environ.Vars{
		"PLAIN": "x", "SPACE": " two  words ", "QUOTES": `it's "odd"`, "DOLLAR": "$HOME `x` \\", "EMPTY": "",
		"HASH": "a#b", "LINES": "a\nb", "RETURN": "a\r",
	}
	const want = `# cosplay: begin
DOLLAR="$HOME ` + "`x` \\" + `"
EMPTY=""
PLAIN="x"
QUOTES="it's "odd""
SPACE=" two  words "
# cosplay: end
`
	for _, c := range []struct{ what, before, want string }{
		{"no file", "", want},
		{"the image's lines", "PATH=\"/bin\"\nLANG=C", "PATH=\"/bin\"\nLANG=C\n" + want},
		{"a second start", "A=1\n# cosplay: begin\nOLD=\"1\"\n# cosplay: end\nB=2\n", "A=1\nB=2\n" + want},
		{"a second start as it was", want, want},
		{"interrupted", "A=1\n# cosplay: begin\nOLD=\"1\"", "A=1\n" + want},
	} {
		got, left := environ.PAM([]byte(c.before), vars)
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
		if !slices.Equal(left, []string{"HASH", "LINES", "RETURN"}) {
			t.Errorf("%s: left out %q", c.what, left)
		}
	}
}

// A real sh reads back what was written, whatever the value is.
func TestProfile(t *testing.T) {
	values := []string{"x", "", " two  words ", `it's "odd"`, "$HOME `id` \\", "a # b", "line\nline\n\n!", "'", "''", "ünï"}
	for _, value := range values {
		script := string(environ.Profile(environ.Vars{"ODD": value, "PATH": "/opt/bin:/bin", "SET": "not seen"})) +
			`printf '%s|%s|%s' "$ODD" "$SET" "$PATH"`
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Env = []string{"SET=before", "PATH=/usr/bin"}
		out, err := cmd.Output()
		if want := value + "|before|/opt/bin:/bin"; err != nil || string(out) != want {
			t.Errorf("%q comes back as %q, %v", value, out, err)
		}
	}
}

func TestSudoers(t *testing.T) {
	jane := initd.User{Name: "jane", UID: 1234}
	allowed := jane
	allowed.Sudo = true
	const head = "# Written by cosplay at the start of the session.\n"
	const file = "Defaults env_file = \"/etc/environment\"\n"
	for _, c := range []struct {
		what string
		vars environ.Vars
		user initd.User
		want string
	}{
		{"may", environ.Vars{"B": "1", "A": "2", "PATH": "/opt/bin:/bin"}, allowed,
			head + "Defaults env_keep += \"A\"\nDefaults env_keep += \"B\"\n" + file + "Defaults secure_path = \"/opt/bin:/bin\"\n#1234 ALL=(ALL:ALL) NOPASSWD: ALL\n"},
		{"may not", environ.Vars{"A": "2", "PATH": "/bin"}, jane, head + "Defaults env_keep += \"A\"\n" + file + "Defaults secure_path = \"/bin\"\n"},
		{"root needs no leave", environ.Vars{"PATH": "/bin"}, initd.User{Name: "root", Sudo: true}, head + file + "Defaults secure_path = \"/bin\"\n"},
		{"a PATH that would break it", environ.Vars{"PATH": "/my \"bin\""}, jane, head + file},
	} {
		if diff := cmp.Diff(c.want, string(environ.Sudoers(c.vars, c.user))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}

func TestInstall(t *testing.T) {
	jane := initd.User{Name: "jane", UID: 1234, Sudo: true}
	secrets := environ.Vars{"TOKEN": "do-not#tell", "a.b": "do-not-tell"}
	t.Run("bare image", func(t *testing.T) {
		root := t.TempDir()
		notes := strings.Join(environ.Install(root, nil, environ.Vars{"LINES": "a\nb", "c.d": ""}, secrets, jane), "\n")
		for _, want := range []string{"add the package sudo", "c.d a.b", "cannot hold the values of LINES TOKEN"} {
			if !strings.Contains(notes, want) {
				t.Errorf("no %q in %q", want, notes)
			}
		}
		if strings.Contains(notes, "do-not") {
			t.Errorf("it prints a value: %q", notes)
		}
		files, err := filepath.Glob(root + "/etc/*")
		if err != nil || !slices.Equal(files, []string{root + "/etc/environment"}) {
			t.Errorf("it made %q, %v", files, err)
		}
	})
	t.Run("full image", func(t *testing.T) {
		root := t.TempDir()
		for _, dir := range []string{"/etc/profile.d", "/etc/sudoers.d"} {
			if err := os.MkdirAll(root+dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(root+"/etc/sudoers", nil, 0o440); err != nil {
			t.Fatal(err)
		}
		for path, content := range map[string]string{"/etc/pam.d/cron": "session required pam_env.so\n", "/lib/security/pam_succeed_if.so": ""} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(root+path), 0o755), os.WriteFile(root+path, []byte(content), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		image := environ.Vars{"A": "1", "TOKEN": "do-not-tell"} // as in a container that an older cosplay made
		if notes := environ.Install(root, image, nil, environ.Vars{"TOKEN": "do-not-tell"}, jane); len(notes) > 0 {
			t.Errorf("there is something to say: %q", notes)
		}
		written := map[string]string{}
		for _, file := range []string{"environment", "profile.d/zz-cosplay.sh", "sudoers.d/cosplay", "pam.d/cron"} {
			data, err := os.ReadFile(root + "/etc/" + file)
			if err != nil || strings.Contains(string(data), "do-not-tell") {
				t.Errorf("%s holds a sensitive value: %q, %v", file, data, err)
			}
			written[file] = string(data)
		}
		for file, want := range map[string]string{
			"profile.d/zz-cosplay.sh": "then . /run/cosplay/private/profile.sh;", "sudoers.d/cosplay": `env_keep += "TOKEN"`, "pam.d/cron": "envfile=/run/cosplay/private/environment",
		} {
			if !strings.Contains(written[file], want) {
				t.Errorf("no %q in %s: %q", want, file, written[file])
			}
		}
		for file, mode := range map[string]os.FileMode{"environment": 0o644, "profile.d/zz-cosplay.sh": 0o644, "sudoers.d/cosplay": 0o440} {
			info, err := os.Stat(root + "/etc/" + file)
			if err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v; want mode %v", file, info, err, mode)
			}
		}
	})
}
