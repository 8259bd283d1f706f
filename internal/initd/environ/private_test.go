package environ_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/initd"
	"cosplay/internal/initd/environ"
)

func TestStack(t *testing.T) {
	const (
		cron = "@include common-auth\n# pam_env.so reads it\nsession  required pam_env.so readenv=1\n"
		rest = "session required pam_env.so envfile=/etc/default/locale\n@include common-session\n"
		ours = "# cosplay: begin\n" +
			"session [success=ignore default=1] pam_succeed_if.so quiet uid = 1234\n" +
			"session optional pam_env.so readenv=1 envfile=/run/cosplay/private/environment\n" +
			"# cosplay: end\n"
		auth = "# cosplay: begin\n" +
			"auth [success=ignore default=1] pam_succeed_if.so quiet uid = 1234\n" +
			"auth optional pam_env.so readenv=1 envfile=/run/cosplay/private/environment\n" +
			"# cosplay: end\n"
	)
	for _, c := range []struct{ what, before, want string }{
		{"Debian", cron + rest, cron + ours + rest},
		{"again", cron + ours + rest, cron + ours + rest},
		{"another user before", cron + "# cosplay: begin\nold\n# cosplay: end\n" + rest, cron + ours + rest},
		{"Fedora", "auth required pam_env.so\nauth required pam_deny.so\n", "auth required pam_env.so\n" + auth + "auth required pam_deny.so\n"},
		{"an optional module", "-auth required pam_env.so\n", "-auth required pam_env.so\n" + auth},
		{"no end of the line", "auth required pam_env.so", "auth required pam_env.so\n" + auth},
		{"no environment", "auth required pam_deny.so", "auth required pam_deny.so"},
		{"a begin without an end", "# cosplay: begin\nauth required pam_deny.so\n", "# cosplay: begin\nauth required pam_deny.so\n"},
		{"empty", "", ""},
	} {
		if diff := cmp.Diff(c.want, environ.Stack(c.before, initd.User{UID: 1234})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}

// Each form of the secrets reproduces the values.
func TestPrivate(t *testing.T) {
	secrets := environ.Vars{"TOKEN": "it's \"odd\"", "KEY": "line\nline # x", "a.b": "1", "HOME": "/secret"}
	files, err := environ.Private(secrets)
	if err != nil {
		t.Fatal(err)
	}
	var all environ.Vars
	if err := json.Unmarshal(files[initd.SecretsFile], &all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(secrets, all); diff != "" {
		t.Errorf("cosplay-init reads (-want +got):\n%s", diff)
	}
	out, err := exec.Command("/bin/sh", "-c", string(files["profile.sh"])+`printf '%s|%s' "$TOKEN" "$KEY"`).Output()
	if want := secrets["TOKEN"] + "|" + secrets["KEY"]; err != nil || string(out) != want {
		t.Errorf("a login shell has %q, %v; want %q", out, err, want)
	}
	if want := "# cosplay: begin\nTOKEN=\"it's \"odd\"\"\n# cosplay: end\n"; string(files["environment"]) != want {
		t.Errorf("pam_env reads %q, want %q", files["environment"], want)
	}
}
