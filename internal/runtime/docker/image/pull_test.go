package image

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/registry"
	"github.com/google/go-cmp/cmp"
)

// dockerConfig is the user's docker configuration for a test.
func dockerConfig(t *testing.T, content string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	if content == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pulls is an engine that answers a pull so.
func pulls(t *testing.T, code int, answer string) *fakeEngine {
	return newFakeEngine(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, answer)
	})
}

func TestPullTellsHowFarItIs(t *testing.T) {
	dockerConfig(t, "")
	engine := pulls(t, http.StatusOK, `
{"status":"Pulling from library/debian","id":"12"}
{"status":"Already exists","progressDetail":{},"id":"a"}
{"status":"Pulling fs layer","progressDetail":{},"id":"b"}
{"status":"Pulling fs layer","progressDetail":{},"id":"c"}
{"status":"Waiting","progressDetail":{},"id":"c"}
{"status":"Downloading","progressDetail":{"current":100000000,"total":1000000000},"id":"b"}
{"status":"Downloading","progressDetail":{"current":150000000,"total":1000000000},"id":"b"}
{"status":"Downloading","progressDetail":{"current":300000000,"total":1000000000},"id":"b"}
{"status":"Downloading","progressDetail":{"current":100,"total":1000000000},"id":"c"}
{"status":"Downloading","progressDetail":{"current":301000000,"total":1000000000},"id":"b"}
{"status":"Download complete","progressDetail":{},"id":"b"}
{"status":"Extracting","progressDetail":{"current":500000000,"total":1000000000},"id":"b"}
{"status":"Pull complete","progressDetail":{},"id":"b"}
{"status":"Download complete","progressDetail":{},"id":"c"}
{"status":"Extracting","progressDetail":{"current":600000000,"units":"s"},"id":"c"}
{"status":"Pull complete","progressDetail":{},"id":"c"}
{"status":"Digest: sha256:00"}
{"status":"Status: Downloaded newer image for debian:12"}
`)
	var said lines
	if err := Pull(t.Context(), engine, "debian:12", said.say); err != nil {
		t.Fatal(err)
	}
	want := lines{
		"debian:12: pulling",
		"debian:12: 1 of 3 layers, 100MB fetched", // the size of c is not known yet
		"debian:12: 1 of 3 layers, 300MB fetched",
		"debian:12: 1 of 3 layers, 7 %",
		"debian:12: 1 of 3 layers, 25 %",
		"debian:12: 1 of 3 layers, 37 %",
		"debian:12: 2 of 3 layers, 50 %",
		"debian:12: 2 of 3 layers, 75 %",
		"debian:12: 3 of 3 layers, 100 %",
		"debian:12: pulled",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

// TestPullOfUnknownSizes: not every registry reports them.
func TestPullOfUnknownSizes(t *testing.T) {
	dockerConfig(t, "")
	engine := pulls(t, http.StatusOK, `
{"status":"Pulling fs layer","progressDetail":{},"id":"a"}
{"status":"Pulling fs layer","progressDetail":{},"id":"b"}
{"status":"Download complete","progressDetail":{},"id":"a"}
{"status":"Extracting","progressDetail":{"current":100227},"id":"a"}
{"status":"Pull complete","progressDetail":{},"id":"a"}
{"status":"Pull complete","progressDetail":{},"id":"b"}
`)
	var said lines
	if err := Pull(t.Context(), engine, "x", said.say); err != nil {
		t.Fatal(err)
	}
	want := lines{"x:latest: pulling", "x:latest: 1 of 2 layers", "x:latest: 2 of 2 layers", "x:latest: pulled"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

// TestCredentialHelperFails: the whole error of a helper, or that it is not installed, is in the error of the pull.
func TestCredentialHelperFails(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	script := "#!/bin/sh\necho 'the vault is sealed' >&2\necho 'unseal it: vault operator unseal' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "docker-credential-sealed"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	engine := pulls(t, 500, `{"message":"no basic auth credentials"}`)
	for helper, words := range map[string][]string{
		"sealed":  {"the vault is sealed", "unseal it: vault operator unseal"},
		"missing": {"docker-credential-missing", "not found"},
	} {
		dockerConfig(t, fmt.Sprintf(`{"credsStore":%q}`, helper))
		check(t, Pull(t.Context(), engine, "r.example.com/x:1", func(string) {}), append(words, "r.example.com refuses anyone without a login")...)
		_, err := Offered(t.Context(), engine, "r.example.com/x:1")
		check(t, err, words...)
	}
}

// TestOffered: the registry is asked for the digest of a name, with the user's credentials.
func TestOffered(t *testing.T) {
	dockerConfig(t, `{"auths":{"r.example.com":{"username":"bob","password":"word"}}}`)
	var path, login string
	engine := newFakeEngine(t, func(w http.ResponseWriter, r *http.Request) {
		path, login = r.URL.Path, r.Header.Get(registry.AuthHeader)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"Descriptor":{"digest":"sha256:%064d"}}`, 1)
	})
	image, err := Offered(t.Context(), engine, "r.example.com/x:1")
	if err != nil || image != fmt.Sprintf("r.example.com/x@sha256:%064d", 1) {
		t.Errorf("%q, %v", image, err)
	}
	if auth, err := registry.DecodeAuthConfig(login); err != nil || auth.Username != "bob" || !strings.HasSuffix(path, "/distribution/r.example.com/x:1/json") {
		t.Errorf("asked %s as %+v, %v", path, auth, err)
	}
}

func TestPullSaysWhatIsWrong(t *testing.T) {
	dockerConfig(t, "")
	inStream := func(message string) (int, string) {
		return http.StatusOK, fmt.Sprintf(`{"status":"Pulling from x","id":"1"}{"errorDetail":{"message":%q},"error":%[1]q}`, message)
	}
	answers := func(code int, message string) (int, string) { return code, fmt.Sprintf(`{"message":%q}`, message) }
	for name, c := range map[string]struct {
		ref     string
		code    int
		message string // in the stream where the code is 200
		words   []string
	}{
		"no such tag": {"debian:nope", 404, "manifest for debian:nope not found: manifest unknown: manifest unknown",
			[]string{"pulling debian:nope: docker.io has no such image", "check the name", "docker login (the engine"}},
		"no such repository, or private": {"me/x", 404, "pull access denied for me/x, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
			[]string{"pulling me/x:latest: docker.io has no such image, or not for anyone without a login", "docker login (the engine"}},
		"private": {"r.example.com/x:1", 500, "Get \"https://r.example.com/v2/\": no basic auth credentials",
			[]string{"r.example.com refuses anyone without a login", "docker login r.example.com"}},
		"no network": {"debian:12", 500, "Get \"https://registry.example/v2/\": dial tcp: lookup registry.example on 10.0.0.1:53: no such host",
			[]string{"the engine cannot reach docker.io", "proxy", "docker load"}},
		"silence": {"debian:12", 500, "Get \"https://registry.example/v2/\": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)",
			[]string{"the engine cannot reach docker.io"}},
		"too often": {"debian:12", 500, "toomanyrequests: You have reached your pull rate limit.",
			[]string{"docker.io lets anyone without a login pull no more for now", "wait", "docker login"}},
		"too often, later": {"debian:12", 200, "toomanyrequests: too many requests", []string{"no more for now"}},
		"denied, later":    {"r.example.com/x:1", 200, "denied: you may not", []string{"r.example.com refuses"}},
		"disk full":        {"debian:12", 200, "write /var/lib/docker/tmp/x: no space left on device", []string{"disk is full", "docker system df"}},
		"no TLS":           {"r.example.com/x:1", 500, "http: server gave HTTP response to HTTPS client", []string{"insecure-registries"}},
		"something else":   {"debian:12", 200, "the moon is full", []string{"pulling debian:12: the moon is full"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := answers
			if c.code == http.StatusOK {
				answer = func(_ int, m string) (int, string) { return inStream(m) }
			}
			code, body := answer(c.code, c.message)
			err := Pull(t.Context(), pulls(t, code, body), c.ref, func(string) {})
			check(t, err, append(c.words, c.message)...)
		})
	}
}

func TestPullThatBreaksOff(t *testing.T) {
	dockerConfig(t, "")
	err := Pull(t.Context(), pulls(t, http.StatusOK, `{"status":"Pull`), "debian", func(string) {})
	check(t, err, "pulling debian:latest: the engine's answer broke off")
}

func TestPullStops(t *testing.T) {
	dockerConfig(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	engine := newFakeEngine(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, `{"status":"Pulling fs layer","id":"a"}`)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	err := Pull(ctx, engine, "debian", func(string) {})
	if !errors.Is(err, context.Canceled) || err.Error() != "pulling debian:latest: context canceled" {
		t.Errorf("%v", err)
	}
}

func TestPullLogsIn(t *testing.T) {
	helpers := t.TempDir()
	helper := "#!/bin/sh\nread host\n[ \"$host\" = r.example.com ] && echo '{\"Username\":\"ann\",\"Secret\":\"pass\"}' || { echo credentials not found in native keychain; exit 1; }\n"
	if err := os.WriteFile(filepath.Join(helpers, "docker-credential-test"), []byte(helper), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", helpers+":"+os.Getenv("PATH"))
	basic := base64.StdEncoding.EncodeToString([]byte("bob:word"))
	for name, c := range map[string]struct {
		config, ref string
		want        registry.AuthConfig
	}{
		"no configuration":          {"", "debian", registry.AuthConfig{}},
		"nothing for it":            {`{"auths":{"other.example.com":{"auth":"` + basic + `"}}}`, "debian", registry.AuthConfig{}},
		"Docker Hub":                {`{"auths":{"https://index.docker.io/v1/":{"auth":"` + basic + `"}}}`, "me/x", registry.AuthConfig{Username: "bob", Password: "word", ServerAddress: "https://index.docker.io/v1/"}},
		"another registry":          {`{"auths":{"r.example.com:5000":{"auth":"` + basic + `"}}}`, "r.example.com:5000/x", registry.AuthConfig{Username: "bob", Password: "word", ServerAddress: "r.example.com:5000"}},
		"identity token":            {`{"auths":{"r.example.com":{"identitytoken":"tok"}}}`, "r.example.com/x", registry.AuthConfig{IdentityToken: "tok", ServerAddress: "r.example.com"}},
		"a helper":                  {`{"credHelpers":{"r.example.com":"test"}}`, "r.example.com/x", registry.AuthConfig{Username: "ann", Password: "pass", ServerAddress: "r.example.com"}},
		"a store":                   {`{"credsStore":"test"}`, "r.example.com/x", registry.AuthConfig{Username: "ann", Password: "pass", ServerAddress: "r.example.com"}},
		"a store without it":        {`{"credsStore":"test"}`, "debian", registry.AuthConfig{}},
		"a broken file is reported": {`{"auths`, "debian", registry.AuthConfig{}},
	} {
		t.Run(name, func(t *testing.T) {
			dockerConfig(t, c.config)
			engine := pulls(t, http.StatusOK, `{"status":"Status: Image is up to date"}`)
			var said lines
			if err := Pull(t.Context(), engine, c.ref, said.say); err != nil {
				t.Fatal(err)
			}
			got, err := registry.DecodeAuthConfig(engine.requests[0].Header.Get(registry.AuthHeader))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, *got); diff != "" {
				t.Error(diff)
			}
			if reported := strings.Contains(said[0], "without a login"); reported != (name == "a broken file is reported") {
				t.Errorf("said %q", said)
			}
		})
	}
}
