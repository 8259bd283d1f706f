package sshd_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	sshagent "golang.org/x/crypto/ssh/agent"

	"cosplay/internal/initd/inittest"
)

func TestFiles(t *testing.T) {
	w := serve(t, 0, "scp", "sftp")
	local := filepath.Join(w.Dir, "local")
	if err := os.WriteFile(local, []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	copied := append(w.Flags(), local, w.Host()+":by-scp")
	if _, errs, code := outcome(t, exec.Command("scp", copied...)); code != 0 {
		t.Fatalf("scp: %s", errs)
	}
	batch := exec.Command("sftp", append(w.Flags(), "-b", "-", w.Host())...)
	batch.Stdin = strings.NewReader(fmt.Sprintf("put %s by-sftp\nget by-scp %s.back\nmkdir d\n", local, local))
	if _, errs, code := outcome(t, batch); code != 0 {
		t.Fatalf("sftp: %s", errs)
	}
	for _, file := range []string{filepath.Join(w.workspace, "by-scp"), filepath.Join(w.workspace, "by-sftp"), local + ".back"} {
		if data, err := os.ReadFile(file); string(data) != "content" {
			t.Errorf("%s: %q, %v", file, data, err)
		}
	}
	info, err := os.Stat(filepath.Join(w.workspace, "by-sftp"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uid {
		t.Errorf("the file is not the user's: %v, %v", info, err)
	}
	secret := exec.Command("sftp", append(w.Flags(), "-b", "-", w.Host())...)
	secret.Stdin = strings.NewReader("get /etc/shadow " + local + ".shadow\n")
	if _, errs, code := outcome(t, secret); code == 0 || !strings.Contains(errs, "ermission denied") {
		t.Errorf("sftp reads root's files: %s", errs)
	}
}

// answerer replies only when its client has ended its half of the connection.
func answerer(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				question, _ := io.ReadAll(c)
				fmt.Fprintf(c, "you said %s", question)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func ask(port int) string {
	c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	fmt.Fprint(c, "hello")
	c.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(c)
	return string(answer)
}

func TestForwarding(t *testing.T) {
	w := serve(t, 0)
	target := answerer(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	local := free.Addr().(*net.TCPAddr).Port
	free.Close()
	w.Options = []string{"-o", "LogLevel=INFO"}
	cmd := w.SSH([]string{"-N", "-o", "ExitOnForwardFailure=yes",
		"-L", fmt.Sprintf("127.0.0.1:%d:127.0.0.1:%d", local, target), "-R", fmt.Sprintf("0:127.0.0.1:%d", target)})
	said := &inittest.Output{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	remote := 0
	inittest.Soon(t, "a remote port", func() bool {
		_, after, ok := strings.Cut(said.String(), "Allocated port ")
		n, _ := fmt.Sscan(after, &remote)
		return ok && n == 1
	})
	for what, port := range map[string]int{"-L": local, "-R": remote} {
		inittest.Soon(t, what, func() bool { return ask(port) == "you said hello" })
	}
	cmd.Process.Kill()
	inittest.Soon(t, "the remote port closed", func() bool { return strings.Contains(ask(remote), "refused") })
}

func TestAgent(t *testing.T) {
	w := serve(t, 0, "ssh-add")
	keyring := sshagent.NewKeyring()
	if err := keyring.Add(sshagent.AddedKey{PrivateKey: w.private, Comment: "from-afar"}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(w.Dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go sshagent.ServeAgent(keyring, c)
		}
	}()
	cmd := w.SSH([]string{"-A"}, "ssh-add -l; echo $SSH_AUTH_SOCK")
	cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+l.Addr().String())
	out, errs, _ := outcome(t, cmd)
	key, socket, _ := strings.Cut(strings.TrimSpace(out), "\n")
	if !strings.Contains(key, "from-afar") {
		t.Fatalf("no key of the client: %q, %q", out, errs)
	}
	inittest.Soon(t, "the socket removed", func() bool { _, err := os.Stat(socket); return os.IsNotExist(err) })
}
