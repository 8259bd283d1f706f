package sshd_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/cpu"

	"cosplay/internal/need"
)

// A client that knows AES-GCM gets it if the processor computes it; any other choice of a client is served as well.
func TestCiphers(t *testing.T) {
	w := serve(t, 0)
	usual := "chacha20-poly1305@openssh.com"
	if cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ || cpu.ARM64.HasAES && cpu.ARM64.HasPMULL {
		usual = "aes128-gcm@openssh.com"
	}
	for _, c := range []struct{ ask, want string }{
		{"chacha20-poly1305@openssh.com,aes128-ctr,aes128-gcm@openssh.com", usual},
		{"aes256-gcm@openssh.com", "aes256-gcm@openssh.com"},
		{"chacha20-poly1305@openssh.com", "chacha20-poly1305@openssh.com"},
		{"aes192-ctr", "aes192-ctr"},
	} {
		out, errs, code := w.run(t, []string{"-v", "-o", "LogLevel=DEBUG", "-c", c.ask}, "echo in")
		if out != "in\n" || code != 0 || strings.Count(errs, " cipher: "+c.want+" ") != 2 {
			t.Errorf("-c %s: out %q, code %d; want cipher %s:\n%s", c.ask, out, code, c.want, errs)
		}
	}
}

// Another client than OpenSSH gets the whole offer, also if it pretends to be OpenSSH and waits for the server's packet.
func TestOffer(t *testing.T) {
	w := serve(t, 0)
	for _, version := range []string{"SSH-2.0-Go", "SSH-2.0-OpenSSH_9.2"} {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", w.Port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s\r\n", version)
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		if line, err := in.ReadString('\n'); !strings.HasPrefix(line, "SSH-2.0-") {
			t.Fatalf("%s: the server greets with %q, %v", version, line, err)
		}
		offer := make([]byte, 400)
		if _, err := io.ReadFull(in, offer); err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		for _, name := range []string{ssh.CipherChaCha20Poly1305, ssh.CipherAES256CTR} {
			if !bytes.Contains(offer, []byte(name)) {
				t.Errorf("%s: the server does not offer %s: %q", version, name, offer)
			}
		}
	}
}

func TestLargeFiles(t *testing.T) {
	w := serve(t, 0)
	need.Root(t, "scp", "sftp")
	data := make([]byte, 9<<20+4711)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	here, back, there := filepath.Join(w.Dir, "here"), filepath.Join(w.Dir, "back"), filepath.Join(w.workspace, "there")
	if err := os.WriteFile(here, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cipher := range []string{"aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-ctr"} {
		flags := append(w.Flags(), "-q", "-c", cipher)
		for _, way := range [][]string{{here, w.Host() + ":" + there}, {w.Host() + ":" + there, back}} {
			if out, err := exec.Command("scp", append(flags, way...)...).CombinedOutput(); err != nil {
				t.Fatalf("scp -c %s %s: %v\n%s", cipher, way, err, out)
			}
		}
		if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, data) {
			t.Errorf("scp -c %s: %d bytes of %d came back, %v", cipher, len(got), len(data), err)
		}
		if err := os.Remove(there); err != nil {
			t.Error(err)
		}
	}
}
