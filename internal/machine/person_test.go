package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cosplay/internal/config"
)

// TestOwnKeys checks that a public key counts only if the user can log in with it from this machine.
func TestOwnKeys(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB1ZqSmcMVI2yFnT6b2U9fZJgE9ZKzRvS5c0g7w9mT2Q one"
	dir := filepath.Join(t.TempDir(), "ann [old]")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"id_ed25519.pub": key + "\n", "id_ed25519": "private", "elsewhere.pub": key + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if keys := ownKeys(dir); !slices.Equal(keys, []string{key}) {
		t.Errorf("%q", keys)
	}
}

// The keys are those of HOME, as ssh-keygen and tests with another home expect.
func TestHomeGoesBeforePasswd(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB1ZqSmcMVI2yFnT6b2U9fZJgE9ZKzRvS5c0g7w9mT2Q one"
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", "")
	t.Setenv("SUDO_USER", "")
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"id_ed25519.pub": key + "\n", "id_ed25519": "private"} {
		if err := os.WriteFile(filepath.Join(home, ".ssh", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := (&Machine{}).Person(&config.Intent{}); err != nil || !slices.Equal(p.Keys, []string{key}) {
		t.Errorf("%q, %v", p.Keys, err)
	}
	private := filepath.Join(home, ".ssh", "id_ed25519")
	if all := Identities([]string{key}); !slices.Equal(all, []string{private}) {
		t.Errorf("ssh looks in the home of the account, and gets %q", all)
	}
	if all := Identities([]string{"ssh-ed25519 AAAA other"}); all != nil {
		t.Errorf("of another user's keys: %q", all)
	}
}
