package cli

import (
	"strings"
	"testing"
)

// TestSSHFlags: ssh gets its own flags as they were typed, and none of cosplay's.
func TestSSHFlags(t *testing.T) {
	root := Command()
	cmd, rest, err := root.Find([]string{"ssh", "worker", "-R", "8001:127.0.0.1:80", "-L", "1:a:2", "-L", "3:b:4", "-A", "--tty=false", "--chdir", "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(sshFlags(cmd.LocalNonPersistentFlags()), " "), "-A -L 1:a:2 -L 3:b:4 -R 8001:127.0.0.1:80"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
