package sshd_test

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"cosplay/internal/initd/inittest"
	"cosplay/internal/initd/sshd"
)

func (w *world) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(w.Port)) }

// Of 20 logins with the right key by the real ssh, 19 succeed while 1,300 clients
// with the same address hold connections half open.
func TestFlood(t *testing.T) {
	w := serve(t, 0)
	for name, flood := range inittest.Floods(t, "jane", w.server.Keys[0]) {
		t.Run(name, func(t *testing.T) {
			opened, stop := flood.Start(t, w.address(), flood.Clients())
			defer stop()
			passed, began := 0, time.Now()
			for range 20 {
				if w.logsIn(t, inittest.LoginTime) {
					passed++
				}
			}
			t.Logf("%d of 20 logins, %v each; %d connections opened", passed, time.Since(began)/20, opened.Load())
			if passed < 19 {
				t.Errorf("%d of 20 logins succeed", passed)
			}
		})
	}
}

func (w *world) logsIn(t *testing.T, limit time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var complaints bytes.Buffer
	args := w.SSH(nil, "echo in").Args
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil || string(out) != "in\n" {
		t.Logf("%v: %s", err, complaints.String())
	}
	return string(out) == "in\n"
}

// A client that does not log in within the grace is closed; one that has stays.
func TestGrace(t *testing.T) {
	w := serve(t, 0)
	impatient := &sshd.Server{Launcher: w.server.Launcher, Keys: w.server.Keys, HostKey: w.server.HostKey, Grace: 2 * time.Second}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go impatient.Serve(l)
	t.Cleanup(func() { impatient.Close(time.Second) })
	w.Port = l.Addr().(*net.TCPAddr).Port
	open, requests := w.dial(t)
	go ssh.DiscardRequests(requests)
	for name, flood := range inittest.Floods(t, "jane", w.server.Keys[0]) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", w.address())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ended := make(chan struct{})
			go func() { flood.Client(conn); close(ended) }()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("it stays open")
			}
		})
	}
	t.Cleanup(func() {
		if _, _, err := open.SendRequest("are you there", true, nil); err != nil {
			t.Errorf("a client that has logged in is closed: %v", err)
		}
	})
}
