package sshd_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"cosplay/internal/initd/inittest"
)

// withoutSCP is a world whose image has no scp, so that cosplay's serves.
func withoutSCP(t *testing.T) *world {
	w := serve(t, 0, "scp")
	bin := filepath.Join(w.Dir, "bin")
	own, err := os.ReadFile("/proc/self/exe")
	if err := errors.Join(err, os.Mkdir(bin, 0o755), os.WriteFile(filepath.Join(w.Dir, "program"), own, 0o755),
		os.Symlink("/usr/bin/cat", filepath.Join(bin, "cat"))); err != nil {
		t.Fatal(err)
	}
	w.server.Launcher.Image["PATH"] = bin
	return w
}

// scp runs the real scp with its own protocol.
func (w *world) scp(t *testing.T, args ...string) (errs string, code int) {
	t.Helper()
	_, errs, code = outcome(t, exec.Command("scp", append(append(w.Flags(), "-O"), args...)...))
	return errs, code
}

// TestOwnSCP: the scp of OpenSSH copies files and folders to and from a session whose image has no scp, as its user.
func TestOwnSCP(t *testing.T) {
	w := withoutSCP(t)
	then := time.Unix(1_000_000_000, 0)
	tree := filepath.Join(w.Dir, "tree")
	for name, mode := range map[string]os.FileMode{"a b": 0o640, "deep/down/run": 0o755, "deep/empty": 0o600, "large": 0o444} {
		path := filepath.Join(tree, name)
		content := strings.Repeat(name, map[string]int{"deep/empty": 0, "large": 300_000}[name]+len(name)%2)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode), os.Chtimes(path, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chtimes(filepath.Join(tree, "deep"), then, then), os.Mkdir(filepath.Join(w.workspace, "into"), 0o777), os.Chmod(filepath.Join(w.workspace, "into"), 0o777)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-rp", tree, w.Host() + ":into"},
		{"-r", tree, w.Host() + ":plain"},
		{"-rp", w.Host() + ":into/tree", filepath.Join(w.Dir, "back")},
		{tree + "/a b", w.Host() + ":'new name'"},
		{tree + "/large", tree + "/a b", w.Host() + ":into"},
		{w.Host() + ":into/l*e", filepath.Join(w.Dir, "one")},
	} {
		if errs, code := w.scp(t, args...); code != 0 || errs != "" {
			t.Errorf("scp %q: code %d, %s", args, code, errs)
		}
	}
	same := func(a, b string, preserved bool) {
		t.Helper()
		if out, err := exec.Command("diff", "-r", a, b).CombinedOutput(); err != nil {
			t.Errorf("%s and %s differ: %v %s", a, b, err, out)
		}
		for _, name := range []string{"", "deep", "deep/down/run", "large", "a b"} {
			x, err := os.Stat(filepath.Join(a, name))
			y, err2 := os.Stat(filepath.Join(b, name))
			if err != nil || err2 != nil || preserved && (x.Mode() != y.Mode() || x.ModTime().Unix() != y.ModTime().Unix()) {
				t.Errorf("%s: %v, %v, %v %v", name, x, y, err, err2)
			}
		}
	}
	same(tree, filepath.Join(w.workspace, "into/tree"), true)
	same(tree, filepath.Join(w.workspace, "plain"), false)
	same(tree, filepath.Join(w.Dir, "back"), true)
	info, err := os.Stat(filepath.Join(w.workspace, "new name"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uid || info.Mode() != 0o640 {
		t.Errorf("%v %v", info, err)
	}
	if out, err := exec.Command("cmp", filepath.Join(tree, "large"), filepath.Join(w.Dir, "one")).CombinedOutput(); err != nil {
		t.Errorf("%v %s", err, out)
	}
}

// TestOwnSCPRefuses: a file that the user may not read or write is an error of that file alone.
func TestOwnSCPRefuses(t *testing.T) {
	w := withoutSCP(t)
	local := filepath.Join(w.Dir, "local")
	if err := errors.Join(os.WriteFile(local, []byte("content"), 0o644), os.WriteFile(filepath.Join(w.workspace, "mine"), []byte("mine"), 0o644),
		syscall.Mkfifo(filepath.Join(w.workspace, "pipe"), 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{local, w.Host() + ":/etc/cosplay-test"}, "/etc/cosplay-test: permission denied"},
		{[]string{local, w.Host() + ":missing/local"}, "missing/local: no such file"},
		{[]string{local, local, w.Host() + ":mine"}, "mine: not a directory"},
		{[]string{w.Host() + ":/etc/shadow", w.Host() + ":mine", w.Dir}, "/etc/shadow: permission denied"},
		{[]string{w.Host() + ":pipe", w.Dir}, "pipe: not a regular file"},
		{[]string{w.Host() + ":.", w.Dir}, ".: not a regular file"},
	} {
		if errs, code := w.scp(t, c.args...); code != 1 || !strings.Contains(errs, c.says) {
			t.Errorf("scp %q: code %d, %s", c.args, code, errs)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(w.Dir, "mine")); string(data) != "mine" {
		t.Errorf("the file after one that cannot be read: %q", data)
	}
	out, _, code := w.run(t, nil, "scp a b; echo $?")
	if out != "127\n" || code != 0 {
		t.Errorf("scp by a user in the session: %q", out)
	}
	for sent, says := range map[string]string{"C0644 3 ../up\nabc": "protocol error", "D0755 0 d\n": "protocol error", "C0644 -1 x\n": "protocol error", "C0644 9 x\nabc": "in the middle"} {
		cmd := w.SSH(nil, "scp -t .")
		cmd.Stdin = strings.NewReader(sent)
		if out, errs, code := outcome(t, cmd); code != 1 || !strings.Contains(out+errs, says) {
			t.Errorf("%q: code %d, %q %q", sent, code, out, errs)
		}
	}
}

// TestUnixSockets: ssh -L and -R forward Unix sockets with the rights of the session's user, and the other side of a
// socket sees that user.
func TestUnixSockets(t *testing.T) {
	w := serve(t, 0)
	at := func(folder, name string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		_ = os.Chmod(path, mode)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				raw, _ := c.(*net.UnixConn).SyscallConn()
				_ = raw.Control(func(fd uintptr) {
					who, _ := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
					fmt.Fprintf(c, "%s for %d", name, who.Uid)
				})
				c.Close()
			}
		}()
		return path
	}
	open, closed, here := at(w.workspace, "open", 0o666), at(w.workspace, "closed", 0o600), at(w.Dir, "here", 0o600)
	ours, refused, remote := filepath.Join(w.Dir, "l1"), filepath.Join(w.Dir, "l2"), filepath.Join(w.workspace, "remote")
	stale, err := net.Listen("unix", remote)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	cmd := w.SSH([]string{"-N", "-o", "ExitOnForwardFailure=yes", "-L", ours + ":" + open, "-L", refused + ":" + closed, "-R", remote + ":" + here})
	said := &inittest.Output{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	hear := func(path string) string {
		c, err := net.Dial("unix", path)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		out, _ := io.ReadAll(c)
		return string(out)
	}
	inittest.Soon(t, "-L", func() bool { return hear(ours) == fmt.Sprintf("open for %d", uid) })
	inittest.Soon(t, "-R", func() bool { return hear(remote) == "here for 0" }) // the client's own user
	if got := hear(refused); got != "" {
		t.Errorf("a socket of root says %q", got)
	}
	info, err := os.Stat(remote)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uid || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	cmd.Process.Kill()
	inittest.Soon(t, "the remote socket removed", func() bool { _, err := os.Stat(remote); return err != nil })
	_, errs, code := w.run(t, []string{"-o", "ExitOnForwardFailure=yes", "-R", "/etc/cosplay-test.sock:" + here}, "sleep 30")
	if code == 0 {
		t.Errorf("a socket where the user may not create it: %s", errs)
	}

	// A program that puts a file into the place of the socket keeps it, and a second request for a path leaves the first.
	if _, errs, code := w.run(t, []string{"-R", remote + ":" + here}, "rm remote && echo mine >remote"); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	time.Sleep(200 * time.Millisecond) // it is removed after the client has ended
	if data, err := os.ReadFile(remote); string(data) != "mine\n" {
		t.Errorf("the file in its place: %q, %v", data, err)
	}
	conn, requests := w.dial(t)
	twice := ssh.Marshal(struct{ Path string }{remote + "2"})
	for i := range 2 {
		if ok, _, err := conn.SendRequest("streamlocal-forward@openssh.com", true, twice); ok != (i == 0) || err != nil {
			t.Errorf("request %d for a path: %t, %v", i+1, ok, err)
		}
	}
	if c, err := net.Dial("unix", remote+"2"); err != nil {
		t.Errorf("the first socket after a second request: %v", err)
	} else {
		c.Close()
	}
	client := ssh.NewClient(conn, nil, requests)
	for i := range 10 { // a session that its client opens without waiting for an answer, as OpenSSH does, finds the socket
		path := fmt.Sprint(remote, "-", i)
		if _, _, err := conn.SendRequest("streamlocal-forward@openssh.com", false, ssh.Marshal(struct{ Path string }{path})); err != nil {
			t.Fatal(err)
		}
		session, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if out, err := session.CombinedOutput("test -S " + path); err != nil {
			t.Errorf("%s: %v %s", path, err, out)
		}
	}
}
