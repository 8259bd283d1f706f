package resource

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSecretsAreNeverWritten(t *testing.T) {
	s := Session{Address: One("worker"), Program: Program{Env: map[string]string{"SEED": "1"}}, Secret: map[string]string{"TOKEN": "hunter2"}}
	for _, key := range []string{"", "key"} {
		written, err := json.Marshal(s.Seal(key))
		if err != nil || strings.Contains(string(written), "hunter2") || !strings.Contains(string(written), "TOKEN") {
			t.Errorf("with key %q: %s, %v", key, written, err)
		}
	}
}

func TestSeal(t *testing.T) {
	s := Session{Secret: map[string]string{"A": "same", "B": "same"}}
	sealed := s.Seal("key").Sealed
	other := Session{Secret: map[string]string{"A": "other", "B": "same"}}.Seal("key").Sealed
	switch {
	case sealed["A"] == sealed["B"]:
		t.Error("the hashes show that two variables have the same value")
	case sealed["A"] == other["A"] || sealed["B"] != other["B"]:
		t.Errorf("%v does not distinguish a change from none: %v", sealed, other)
	case sealed["A"] == s.Seal("another key").Sealed["A"]:
		t.Error("the key makes no difference")
	case s.Seal("").Sealed["A"] != "":
		t.Error("without a key there is a hash, which any process could make")
	case s.Sealed != nil:
		t.Error("the session itself was changed")
	}
}

// What is compared later has no secrets any more, only what is kept of them.
func TestSealedSessionHashesAsItself(t *testing.T) {
	s := Session{Secret: map[string]string{"A": "1"}}.Seal("key")
	kept := s
	kept.Secret = nil
	changed := Session{Secret: map[string]string{"A": "2"}}.Seal("key")
	if s.Hash("key") != kept.Hash("key") || s.Hash("key") == changed.Hash("key") {
		t.Errorf("hashes %s, %s and %s", s.Hash("key"), kept.Hash("key"), changed.Hash("key"))
	}
	if got := s.Environ()["A"]; got != "1" {
		t.Errorf("programs are given A = %q", got)
	}
}

func TestIsSecret(t *testing.T) {
	s := Session{Secret: map[string]string{"TOKEN": "abc"}}.Seal("key")
	for value, want := range map[string]bool{"abc": true, "abd": false, "": false} {
		if got := s.IsSecret("key", "TOKEN", value); got != want {
			t.Errorf("%q is the secret: %v", value, got)
		}
	}
	if s.IsSecret("key", "OTHER", "abc") || s.IsSecret("other", "TOKEN", "abc") {
		t.Error("it is one by another name, or by another key")
	}
}
