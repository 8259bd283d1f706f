package agent

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// TestKnown: of what another machine says of its projects, only this project has a state here, and only the account that
// this user has there is this user.
func TestKnown(t *testing.T) {
	uid := func(n int) *int { return &n }
	far := Far{Machine: "laptop", State: "/home/me/p/s.json", Here: resource.Holder{User: "me", UID: uid(1000)}, There: 1003}
	pages := far.known([]resource.Page{{Holders: []resource.Holder{
		{Machine: "laptop", State: "/home/me/p/s.json", User: "ada", UID: uid(1003)},
		{Machine: "laptop", State: "/home/me/.bashrc", User: "ada", UID: uid(1003)}, // a path of this machine that the other one names
		{Machine: "", State: "/home/me/p/s.json", User: "bob", UID: uid(1004)},
		{Machine: "gpu1", State: "/home/ada/own/s.json", User: "ada", UID: uid(1003)},
	}}})
	for i, want := range []struct {
		machine, user string
		uid           int
	}{{"laptop", "me", 1000}, {elsewhere, "me", 1000}, {elsewhere, "bob", 1004}, {elsewhere, "me", 1000}} {
		if h := pages[0].Holders[i]; h.Machine != want.machine || h.User != want.user || *h.UID != want.uid {
			t.Errorf("holder %d is of machine %q, user %q, uid %d; want %+v", i, h.Machine, h.User, *h.UID, want)
		}
	}
}

// TestFailed: what ssh, a shell or cosplay says before there is an answer.
func TestFailed(t *testing.T) {
	far := Far{Shown: "ssh ada@gpu1"}
	for said, want := range map[string]struct {
		what, fix string
		ours      bool
	}{
		"ssh: connect to host gpu1 port 22: Connection refused":                 {"Connection refused", "ssh ada@gpu1 true", false},
		"sh: 1: cosplay: not found":                                             {"there is no cosplay", "install -m 0755", false},
		"bash: line 1: cosplay: command not found":                              {"there is no cosplay", "install -m 0755", false},
		"zsh:1: command not found: cosplay":                                     {"there is no cosplay", "install -m 0755", false},
		"foo: command not found":                                                {"foo: command", "true", false},
		"Error: unknown flag: --for":                                            {"an earlier one", "install -m 0755", false},
		"foo: not found\nError: host gpu1: a full disk. Fix:\n  make\n  room":   {"host gpu1: a full disk.", "make room", true},
		"Error: it takes\n  root. Fix: add:\n    ada ALL=x\n  doctor checks it": {"it takes root.", "add:\n    ada ALL=x\n  doctor checks it", true},
		"\x1b[2Jssh: no": {`\x1b[2Jssh: no`, "true", false},
	} {
		failed, is := errors.AsType[*FarError](far.failed(said))
		if !is {
			t.Fatalf("%q is no FarError", said)
		}
		if a := prose.AdviceOf(failed); !strings.Contains(a.What, want.what) || !strings.Contains(a.Fix, want.fix) || failed.Ours != want.ours {
			t.Errorf("%q: %q, fix %q, cosplay's %v", said, a.What, a.Fix, failed.Ours)
		}
	}
}

// TestGreeting: what a shell prints before the first answer is skipped, up to a bound; so is an answer that never ends.
func TestGreeting(t *testing.T) {
	first := func(text string) (response, error) {
		c := &child{line: &line{answers: bufio.NewReader(strings.NewReader(text))}}
		said, err := readLine(c.line.answers)
		if err != nil {
			return response{}, err
		}
		return c.afterGreeting(said)
	}
	if answer, err := first("Welcome\n{}\n{\"version\":7}\n"); err != nil || answer.Version != 7 {
		t.Errorf("after a greeting: %+v, %v", answer, err)
	}
	if answer, err := first(strings.Repeat("x\n", maxGreeting) + "{\"version\":7}\n"); err == nil {
		t.Errorf("after a greeting without an end: %+v", answer)
	}
	if _, err := first(strings.Repeat("x", maxAnswer+answerBuffer)); err == nil || !strings.Contains(err.Error(), "without an end") {
		t.Errorf("a line without an end: %v", err)
	}
}
