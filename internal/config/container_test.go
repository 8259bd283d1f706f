package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
)

// An attribute that varies between instances must not affect another instance.
func TestInstancesHaveVolumesOfTheirOwn(t *testing.T) {
	intent, diags := load(t, map[string]string{"a.hcl": "session \"worker\" {\n  count = 3\n  target = 2060\n" +
		"  volume {\n    source = \"same\"\n    target = \"/same\"\n  }\n" +
		"  volume {\n    source = \"./${count.index}\"\n    target = \"/own\"\n    read_only = count.index == 1\n  }\n}\n"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for i, s := range intent.Sessions {
		want := []resource.Volume{{Source: "same", Target: "/same"}, {Source: fmt.Sprintf("/project/%d", i), Target: "/own", ReadOnly: i == 1}}
		if d := cmp.Diff(want, s.Spec.Volumes); d != "" {
			t.Errorf("%s: want -, got +:\n%s", s.Address, d)
		}
	}
}

// sudo is on by default unless a user can log in from another machine.
func TestSudoByDefault(t *testing.T) {
	for ssh, want := range map[string]bool{
		``: true, `bind = "127.9.9.9"`: true, `bind = "::1"`: true, `bind = "::ffff:127.0.0.1"`: true,
		`bind = "0.0.0.0"`: false, `bind = "::"`: false, `bind = "192.168.1.7"`: false,
		"bind = \"0.0.0.0\"\n enabled = false": true,
	} {
		intent, diags := load(t, map[string]string{"a.hcl": "session \"a\" {\n target = 2060\n ssh {\n " + ssh + "\n }\n}\n"})
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		if got := intent.Sessions[0].Spec.Sudo; got != want {
			t.Errorf("ssh { %s }: sudo is %v, want %v", ssh, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for typed, want := range map[string]int{
		"6MiB": 6, "512MiB": 512, "32GiB": 32_768, "1.5GiB": 1_536, "2 TiB": 2_097_152, "1024TiB": 1 << 30, "0.0625 GiB": 64,
	} {
		intent, diags := load(t, map[string]string{"a.hcl": "session \"a\" {\n target = 2060\n limits {\n memory = \"" + typed + "\"\n }\n}\n"})
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		if got := intent.Sessions[0].Spec.Limits.MemoryMiB; got != want {
			t.Errorf("%s is %d MiB, want %d", typed, got, want)
		}
	}
}

func TestImageNames(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for name, want := range map[string]bool{
		"debian": true, "cosplay:latest": true, "ada/train_it:1.2-b": true, "localhost:5000/a/b/c": true,
		"registry.example.com/a.b": true, "[::1]:5000/a": true, "a@" + digest: true, "a:1@" + digest: true, digest: true,
		"a:": false, "a:b:c": false, "a/": false, "/a": false, "a//b": false, "a__.b": false, "-a": false, "a@sha256:0a": false, "a b": false,
	} {
		_, diags := load(t, map[string]string{"a.hcl": "session \"a\" {\n target = 2060\n image = \"" + name + "\"\n}\n"})
		if got := !diags.HasErrors(); got != want {
			t.Errorf("%q is taken: %v, want %v", name, got, want)
		}
	}
}
