package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cosplay/internal/public"
)

func drift(session string) public.Drift {
	return public.Drift{Class: "container-stopped", Host: "lab", Session: &session, Thing: "container", From: "running", To: "stopped"}
}

var project = Project{Name: "fleet", Dir: "/home/ann/fleet", Machine: "box", Subject: func(d public.Drift) string { return *d.Session }}

// mailbox is a receiver that keeps what it accepts.
type mailbox struct {
	name  string
	fails bool
	mu    sync.Mutex
	got   []public.Notification
}

func (m *mailbox) Name() string { return m.name }

func (m *mailbox) Send(_ context.Context, message []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails {
		return errors.New("down")
	}
	var n public.Notification
	err := json.Unmarshal(message, &n)
	m.got = append(m.got, n)
	return err
}

// alerts are the alerts that were sent, as "session status".
func (m *mailbox) alerts() (all []string) {
	for _, n := range m.got {
		for _, a := range n.Alerts {
			all = append(all, a.Labels["session"]+" "+a.Status)
		}
	}
	return all
}

func update(t *testing.T, s Store, found ...public.Drift) {
	t.Helper()
	if _, err := s.Update(found); err != nil {
		t.Fatal(err)
	}
}

// TestOnce: any number of processes send each beginning and each end once; what a receiver did not accept is sent again.
func TestOnce(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), "findings", "x.json")}
	update(t, s)
	if files, _ := filepath.Glob(filepath.Dir(s.Path)); len(files) > 0 {
		t.Error("nothing was found, and there are files")
	}
	box := &mailbox{name: "a"}
	deliver := func() {
		t.Helper()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := s.Deliver(t.Context(), box, project.Message); err != nil && !box.fails {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	update(t, s, drift("one"), drift("two"))
	box.fails = true
	deliver()
	box.fails = false
	deliver()
	deliver()
	update(t, s, drift("two"))
	deliver()
	update(t, s, drift("two"), drift("one"))
	deliver()
	if got, want := fmt.Sprint(box.alerts()), "[one firing two firing one resolved one firing]"; got != want {
		t.Errorf("sent: %s, want %s", got, want)
	}
	if first := box.got[0]; first.Status != "firing" || box.got[1].Status != "resolved" || !strings.Contains(first.Text, "one: container: running -> stopped") ||
		first.Alerts[0].Fingerprint != box.got[1].Alerts[0].Fingerprint || first.Alerts[0].Fingerprint == first.Alerts[1].Fingerprint {
		t.Errorf("messages: %+v", box.got)
	}
	before, _ := os.Stat(s.Path)
	update(t, s, drift("one"), drift("two"))
	deliver()
	if after, _ := os.Stat(s.Path); !after.ModTime().Equal(before.ModTime()) {
		t.Error("the file was written though nothing changed")
	}
}

// TestDamaged: findings in a damaged file begin again; a file of a newer version is refused.
func TestDamaged(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), "x.json")}
	if err := os.WriteFile(s.Path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Update([]public.Drift{drift("one")}); err != nil || len(c.Begun) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := os.WriteFile(s.Path, []byte(`{"format_version": 99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update([]public.Drift{drift("one")}); err == nil || !strings.Contains(err.Error(), "newer cosplay") {
		t.Errorf("a newer format: %v", err)
	}
}

// TestWebhook: errors of the server are tried again, refusals are not, and no error shows the secret parts of the URL.
func TestWebhook(t *testing.T) {
	for name, test := range map[string]struct {
		codes []int
		tries int
		want  string
	}{
		"accepted":          {[]int{204}, 1, ""},
		"at the third try":  {[]int{500, 503, 200}, 3, ""},
		"too many requests": {[]int{429, 200}, 2, ""},
		"down":              {[]int{500, 500, 500, 500}, 3, "the server answers 500"},
		"refused":           {[]int{403, 200}, 1, "the server answers 403"},
		"elsewhere":         {[]int{302, 200}, 1, "the server answers 302"},
	} {
		tries := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if string(body) != "{}" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.URL.Path != "/geheim" {
				t.Errorf("%s: %s %s %v %q", name, r.Method, r.URL, r.Header, body)
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(test.codes[tries])
			tries++
		}))
		hook, err := NewWebhook(server.URL + "/geheim?token=geheim")
		if err != nil {
			t.Fatal(err)
		}
		hook.pauses = []time.Duration{time.Millisecond, time.Millisecond}
		err = hook.Send(t.Context(), []byte("{}"))
		if tries != test.tries || (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("%s: %d tries, %v", name, tries, err)
		}
		server.Close()
		if err := hook.Send(t.Context(), []byte("{}")); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: without a server: %v", name, err)
		}
	}
	for _, wrong := range []string{"", "example.org/hook", "ftp://example.org", "http://", "http://exa mple.org"} {
		if _, err := NewWebhook(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

// TestHangs: a server and a command that hang end at their deadline, with what the command started.
func TestHangs(t *testing.T) {
	release := make(chan struct{})
	var tries atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		tries.Add(1)
		<-release
	}))
	hook, err := NewWebhook(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	hook.timeout, hook.pauses = 20*time.Millisecond, []time.Duration{time.Millisecond}
	if err := hook.Send(t.Context(), []byte("{}")); err == nil || tries.Load() != 2 || !strings.Contains(err.Error(), "the server does not answer within 20ms") {
		t.Errorf("a server that hangs: %d tries, %v", tries.Load(), err)
	}
	close(release)
	server.Close()

	mark := filepath.Join(t.TempDir(), "pid")
	command := Command{Line: "sleep 1000 & echo $! >" + mark + "; wait", Out: io.Discard, Deadline: 500 * time.Millisecond}
	if err := command.Send(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "was killed after 500ms") {
		t.Errorf("a command that hangs: %v", err)
	}
	pid, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/status")
		if err != nil || strings.Contains(string(status), "State:\tZ") {
			return
		}
		if time.Now().After(end) {
			t.Fatal("what the command started still runs")
		}
	}
}
