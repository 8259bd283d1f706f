package sshd_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cosplay/internal/initd/account"
	"cosplay/internal/initd/environ"
	"cosplay/internal/initd/inittest"
	"cosplay/internal/initd/launch"
	"cosplay/internal/initd/scp"
	"cosplay/internal/initd/sshd"
	"cosplay/internal/need"
)

// The server starts its own program again to serve files: here, the test.
func TestMain(m *testing.M) {
	task := ""
	if len(os.Args) > 1 {
		task = os.Args[1]
	}
	var err error
	switch task {
	case "sftp":
		err = sshd.ServeFiles()
	case "scp":
		os.Exit(scp.Serve(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	case sshd.SocketTask:
		err = sshd.ServeSocket(os.Args[2], os.Args[3])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const odd = "two  words, it's \"quoted\"\nand a # second line "

type world struct {
	inittest.Client
	workspace string
	server    *sshd.Server
	private   any
}

const uid = 4242

// serve starts a server for jane, for a test that takes these programs.
func serve(t *testing.T, beat time.Duration, programs ...string) *world {
	t.Helper()
	return serveShell(t, "/bin/bash", beat, programs...)
}

func serveShell(t *testing.T, shell string, beat time.Duration, programs ...string) *world {
	t.Helper()
	need.Root(t, append(programs, "ssh", "bash")...)
	dir := inittest.Dir(t)
	home, workspace := filepath.Join(dir, "home"), filepath.Join(dir, "work")
	for _, d := range []string{home, workspace} {
		if err := errors.Join(os.Mkdir(d, 0o755), os.Chown(d, uid, uid)); err != nil {
			t.Fatal(err)
		}
	}
	private, _, line := inittest.Key(t, dir, "id")
	_, hostKey, _ := inittest.Key(t, dir, "host_key")
	inittest.Key(t, dir, "stranger")
	keys, notes := sshd.ParseKeys([]string{line})
	if len(notes) > 0 {
		t.Fatal(notes)
	}
	server := &sshd.Server{
		Keys: keys, HostKey: hostKey, Beat: beat,
		Launcher: &launch.Launcher{
			Account:   account.Account{Name: "jane", UID: uid, GID: uid, Groups: []uint32{uid, 44}, Home: home, Shell: shell},
			Image:     environ.Vars{"PATH": "/opt/conda/bin:/usr/bin:/bin", "ODD": odd, "SEED": "image"},
			Session:   environ.Vars{"SEED": "session", "LANG": "C.UTF-8"},
			Workspace: workspace, Program: filepath.Join(dir, "program"),
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	t.Cleanup(func() { server.Close(time.Second) })
	port := l.Addr().(*net.TCPAddr).Port
	return &world{inittest.NewClient(t, dir, "jane", "id", port, hostKey.PublicKey()), workspace, server, private}
}

// run gives standard output, error and exit code of a command over ssh.
func (w *world) run(t *testing.T, flags []string, command ...string) (string, string, int) {
	t.Helper()
	return outcome(t, w.SSH(flags, command...))
}

func outcome(t *testing.T, cmd *exec.Cmd) (string, string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
