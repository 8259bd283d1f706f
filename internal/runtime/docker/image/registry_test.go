package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"
)

// The types of what a registry serves.
const (
	manifestType = "application/vnd.docker.distribution.manifest.v2+json"
	configType   = "application/vnd.docker.container.image.v1+json"
	layerType    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// testRegistry serves one image, NAME/team/tool:1, to bob with the word.
type testRegistry struct {
	name     string            // as in a reference
	blobs    map[string][]byte // by digest
	manifest []byte
	tooOften bool
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

type descriptor struct {
	MediaType string `json:"mediaType"`
	Size      int    `json:"size"`
	Digest    string `json:"digest"`
}

func (r *testRegistry) add(mediaType string, content []byte) descriptor {
	r.blobs[digest(content)] = content
	return descriptor{mediaType, len(content), digest(content)}
}

// newTestRegistry serves an image of as many layers, which no engine has yet.
func newTestRegistry(t *testing.T, layers int) *testRegistry {
	t.Helper()
	r := &testRegistry{blobs: map[string][]byte{}}
	var served []descriptor
	var unpacked []string
	for i := range layers {
		content := make([]byte, 100_000)
		_, _ = rand.Read(content)
		var plain, packed bytes.Buffer
		w := tar.NewWriter(&plain)
		_ = w.WriteHeader(&tar.Header{Name: fmt.Sprintf("file%d", i), Mode: 0o644, Size: int64(len(content))})
		_, _ = w.Write(content)
		_ = w.Close()
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(plain.Bytes())
		_ = z.Close()
		served = append(served, r.add(layerType, packed.Bytes()))
		unpacked = append(unpacked, digest(plain.Bytes()))
	}
	config, err := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": unpacked}})
	if err != nil {
		t.Fatal(err)
	}
	r.manifest, err = json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": manifestType, "config": r.add(configType, config), "layers": served})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.name = server.Listener.Addr().String()
	return r
}

func (r *testRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	refuse := func(code int, id, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, id, message)
	}
	user, word, _ := q.BasicAuth()
	path := strings.TrimPrefix(q.URL.Path, "/v2/team/tool/")
	switch {
	case user != "bob" || word != "word":
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		refuse(http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
	case q.URL.Path == "/v2/":
	case r.tooOften:
		refuse(http.StatusTooManyRequests, "TOOMANYREQUESTS", "You have reached your pull rate limit.")
	case path == "manifests/1" || path == "manifests/"+digest(r.manifest):
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", digest(r.manifest))
		_, _ = w.Write(r.manifest)
	case r.blobs[strings.TrimPrefix(path, "blobs/")] != nil:
		blob := r.blobs[strings.TrimPrefix(path, "blobs/")]
		w.Header().Set("Content-Length", strconv.Itoa(len(blob)))
		_, _ = w.Write(blob)
	default:
		refuse(http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
	}
}

// loggedIn is a docker configuration with a login at a registry.
func loggedIn(t *testing.T, registry, user, word string) {
	t.Helper()
	dockerConfig(t, fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, registry, base64.StdEncoding.EncodeToString([]byte(user+":"+word))))
}

func TestPullFromARegistry(t *testing.T) {
	engine := liveEngine(t)
	notPodman(t, engine, "it uses registries without TLS only where its configuration names them")
	r := newTestRegistry(t, 3)
	loggedIn(t, r.name, "bob", "word")
	ref := r.name + "/team/tool:1"
	t.Cleanup(func() {
		_, _ = engine.ImageRemove(context.WithoutCancel(t.Context()), ref, image.RemoveOptions{})
	})
	var said lines
	if err := Pull(t.Context(), engine, ref, said.say); err != nil {
		t.Fatal(err)
	}
	for _, start := range []string{ref + ": pulling", ref + ": 3 of 3 layers, 100 %", ref + ": pulled"} {
		if !said.has(start) {
			t.Errorf("%q is not said in %q", start, said)
		}
	}
	tags, err := Tags(t.Context(), engine)
	if err != nil {
		t.Fatal(err)
	}
	if offered, err := Offered(t.Context(), engine, ref); err != nil || tags[offered] != tags[ref] {
		t.Errorf("the registry offers %s, %v", offered, err)
	}
	if tags[ref] == "" || tags[ref] != tags[r.name+"/team/tool@"+digest(r.manifest)] {
		t.Errorf("%s is not in %v by tag and by digest", ref, tags)
	}
}

// TestPullIsRefused in an engine's own words for it.
func TestPullIsRefused(t *testing.T) {
	engine := liveEngine(t)
	notPodman(t, engine, "it uses registries without TLS only where its configuration names them")
	r := newTestRegistry(t, 1)
	tool := r.name + "/team/tool:1"
	pull := func(ref string) error { return Pull(t.Context(), engine, ref, func(string) {}) }

	dockerConfig(t, "")
	check(t, pull(tool), r.name+" refuses anyone without a login", "docker login "+r.name)
	loggedIn(t, r.name, "eve", "guess")
	check(t, pull(tool), r.name+" refuses eve", "docker login "+r.name)
	loggedIn(t, r.name, "bob", "word")
	check(t, pull(r.name+"/team/tool:2"), r.name+" has no such image, or not for bob", "check the name")
	check(t, pull(r.name+"/no/body"), r.name+" has no such image, or not for bob")
	r.tooOften = true
	check(t, pull(tool), r.name+" lets bob pull no more for now", "wait")

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	check(t, pull(closed.Addr().String()+"/x"), "the engine cannot reach "+closed.Addr().String())
}
