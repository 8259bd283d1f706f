package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// buildOn runs cosplay build against an engine that answers builds with answer.
func buildOn(t *testing.T, answer http.HandlerFunc, json bool, args ...string) (out, errs string, err error) {
	t.Helper()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/build"):
			answer(w, r)
		case strings.HasSuffix(path, "/images/json"):
			fmt.Fprint(w, `[{"Id":"sha256:0a","RepoTags":["cosplay:latest","mine:1"]}]`)
		default:
			fmt.Fprint(w, "{}")
		}
	}))
	t.Cleanup(engine.Close)
	t.Setenv("DOCKER_HOST", "tcp://"+engine.Listener.Addr().String())
	t.Setenv("DOCKER_CONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("DOCKER_BUILDKIT", "0")
	var stdout, stderr bytes.Buffer
	inv := &invocation{Streams: Streams{Out: &stdout, Err: &stderr}, json: json}
	cmd := buildCommand(inv)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func builds(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, `{"stream":"Step 1/1 : FROM debian:12"}{"stream":"\n"}`)
}

func TestBuildPrintsTheImage(t *testing.T) {
	out, errs, err := buildOn(t, builds, false, "--base", "debian:12", "--tag", "mine:1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("Built mine:1 (sha256:0a). For a session to run in it, write in cosplay.hcl:\n\n  image = \"mine:1\"\n", out); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("mine:1: building upon debian:12\nStep 1/1: FROM debian:12\nmine:1: built\n", errs); diff != "" {
		t.Error(diff)
	}
}

func TestBuildAsJSON(t *testing.T) {
	out, _, err := buildOn(t, builds, true, "--cuda-tag", "12.6.3-devel-ubuntu24.04")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("{\n  \"format_version\": 1,\n  \"image\": \"cosplay:latest\",\n  \"id\": \"sha256:0a\"\n}\n", out); diff != "" {
		t.Error(diff)
	}
}

func TestBuildAsksTheEngine(t *testing.T) {
	asked := ""
	_, _, err := buildOn(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = fmt.Sprint(q.Get("t"), q.Get("nocache"), q.Get("buildargs"))
		builds(w, r)
	}, false, "--cuda-tag", "12-devel", "--no-cache")
	if want := `cosplay:latest1{"BASE_IMAGE":"nvidia/cuda:12-devel","COSPLAY_VERSION":"` + Version + `"}`; err != nil || asked != want {
		t.Errorf("asked %s, %v; want %s", asked, err, want)
	}
}

func TestBuildRefuses(t *testing.T) {
	fails := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"errorDetail":{"message":"the moon is full"}}`)
	}
	for name, c := range map[string]struct {
		args  string
		words string
	}{
		"two bases":     {"--base debian:12 --cuda-tag 12", "give one of them"},
		"no name":       {"--tag Mine", `--tag: "Mine" is not the name of an image`},
		"a failure":     {"--base debian:12", "building cosplay:latest upon debian:12 failed: the moon is full"},
		"too much said": {"debian:12", "takes no arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := buildOn(t, fails, false, strings.Fields(c.args)...)
			if err == nil || !strings.Contains(err.Error(), c.words) || out != "" {
				t.Errorf("said %q, %v; want %q", out, err, c.words)
			}
		})
	}
}

func TestBuildIsStopped(t *testing.T) {
	out, errs, err := buildOn(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // after that, the server notices a closed connection
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	}, false, "--base", "debian:12")
	if !errors.Is(err, exit(exitInterrupted)) || out != "" || !strings.Contains(errs, "Stopped.") {
		t.Errorf("said %q and %q, %v", out, errs, err)
	}
}
