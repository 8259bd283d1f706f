package image

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/google/go-cmp/cmp"
)

// fakeEngine is a Docker engine over HTTP: what a real one cannot be made to say. It keeps the requests.
type fakeEngine struct {
	*client.Client
	mu       sync.Mutex
	requests []*http.Request
}

func newFakeEngine(t *testing.T, answer http.HandlerFunc) *fakeEngine {
	t.Helper()
	f := &fakeEngine{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, r.Clone(context.Background()))
		f.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	var err error
	f.Client, err = client.NewClientWithOpts(client.WithHost("tcp://"+server.Listener.Addr().String()), client.WithVersion("1.41"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// lines collects what is said.
type lines []string

func (l *lines) say(s string) { *l = append(*l, s) }

// has looks for a line that begins so.
func (l lines) has(start string) bool {
	return slices.ContainsFunc(l, func(s string) bool { return strings.HasPrefix(s, start) })
}

// check wants words in an error.
func check(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, but wanted %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error lacks %q:\n%v", w, err)
		}
	}
}

func TestNormal(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for ref, want := range map[string]string{
		"debian":                             "debian:latest",
		"docker.io/library/debian:12":        "debian:12",
		"index.docker.io/library/debian":     "debian:latest",
		"pytorch/pytorch":                    "pytorch/pytorch:latest",
		"registry.example.com:5000/team/x:1": "registry.example.com:5000/team/x:1",
		"localhost/x":                        "localhost/x:latest",
		"debian@" + digest:                   "debian@" + digest,
		"debian:12@" + digest:                "debian@" + digest,
	} {
		if got, err := Normal(ref); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", ref, got, err, want)
		}
	}
	for _, ref := range []string{"", "Debian", "a b", "<none>:<none>", "debian:"} {
		_, err := Normal(ref)
		check(t, err, "is not the name of an image", "debian:12")
	}
}

func TestTags(t *testing.T) {
	id := func(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }
	one, two, three := id("1"), id("2"), id("3")
	digest := "sha256:" + strings.Repeat("0a", 32)
	engine := newFakeEngine(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]image.Summary{
			{ID: one, RepoTags: []string{"debian:12", "docker.io/library/debian:bookworm"}, RepoDigests: []string{"debian@" + digest}},
			{ID: two, RepoTags: []string{"<none>:<none>"}, RepoDigests: []string{"<none>@<none>"}},
			{ID: three, RepoTags: []string{"localhost:5000/x:1", strings.Repeat("2", 12) + ":latest"}},
		})
	})
	tags, err := Tags(t.Context(), engine)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"debian:12": one, "debian:bookworm": one, "debian@" + digest: one, "localhost:5000/x:1": three,
		one: one, two: two, three: three, strings.Repeat("1", 12): one, strings.Repeat("3", 12): three,
		// A name is preferred to the ID of another image.
		"222222222222:latest": three, "222222222222": three,
	}
	if diff := cmp.Diff(want, tags); diff != "" {
		t.Error(diff)
	}
	for typed, want := range map[string]string{"debian:12@" + digest: one, "debian:other@" + digest: one, "docker.io/library/debian@" + digest: one, two: two} {
		if name, err := Normal(typed); err != nil || tags[name] != want {
			t.Errorf("%s is looked up as %s, %v: %s", typed, name, err, tags[name])
		}
	}
	if n := len(engine.requests); n != 1 {
		t.Errorf("%d calls instead of 1", n)
	}
}

func TestTagsOfNoEngine(t *testing.T) {
	engine := newFakeEngine(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	_, err := Tags(t.Context(), engine)
	check(t, err, "listing the engine's images")
}
