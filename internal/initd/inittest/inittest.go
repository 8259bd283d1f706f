// Package inittest helps the tests of cosplay-init, which need root and real programs.
package inittest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"cosplay/internal/durable"
)

// Dir is a temporary folder that any user may enter, as t.TempDir is not.
func Dir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cosplay-init-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Key creates an ed25519 key and writes it to dir/name in the form of OpenSSH. line is its
// public half, as in authorized_keys.
func Key(t *testing.T, dir, name string) (private any, signer ssh.Signer, line string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	if signer, err = ssh.NewSignerFromKey(key); err != nil {
		t.Fatal(err)
	}
	return key, signer, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

// Client is the real ssh's configuration for a server.
type Client struct {
	Dir     string // holds the keys and known_hosts
	User    string
	Key     string // name of the key in Dir
	Port    int
	Options []string // before all others, so that they take precedence
}

// NewClient writes known_hosts for a server.
func NewClient(t *testing.T, dir, user, key string, port int, hostKey ssh.PublicKey) Client {
	t.Helper()
	line := fmt.Sprintf("[127.0.0.1]:%d %s", port, ssh.MarshalAuthorizedKey(hostKey))
	if err := durable.WriteFile(filepath.Join(dir, "known_hosts"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return Client{Dir: dir, User: user, Key: key, Port: port}
}

// Flags are the options that ssh, scp and sftp share.
func (c Client) Flags() []string {
	return append(append([]string{}, c.Options...), "-F", "none",
		"-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile="+filepath.Join(c.Dir, "known_hosts"),
		"-o", "IdentitiesOnly=yes", "-o", "IdentityFile="+filepath.Join(c.Dir, c.Key),
		"-o", "LogLevel=ERROR", "-o", "ConnectTimeout=120", "-o", fmt.Sprintf("Port=%d", c.Port))
}

// Host is the server as ssh, scp and sftp name it.
func (c Client) Host() string { return c.User + "@127.0.0.1" }

// SSH is a real ssh that runs a command; flags go before the host's name.
func (c Client) SSH(flags []string, command ...string) *exec.Cmd {
	args := append(c.Flags(), flags...)
	return exec.Command("ssh", append(append(args, c.Host()), command...)...)
}

// patience ends a test that hangs; on a busy machine each step can take long.
const patience = 2 * time.Minute

// Soon waits until a condition holds.
func Soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within %s: %s", patience, what)
}

// Output collects the output of a program for concurrent readers.
type Output struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}
