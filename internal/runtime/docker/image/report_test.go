package image

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/docker/docker/pkg/jsonmessage"
	"github.com/google/go-cmp/cmp"
)

// words are what the builders write of the same failure.
var (
	classicWords = "Step 1/3 : FROM debian:12\n ---> 8d047c7f7bc3\nStep 2/3 : ENV A=1\n ---> Using cache\nStep 3/3 : RUN apt-get update  \t&& apt-get install tini\n ---> Running in db6628499e6d\n" +
		"Reading package lists...\n\x1b[91mE: Unable to locate package tini\n\x1b[0mRemoving intermediate container db6628499e6d\n"
	classicEnd = &jsonmessage.JSONError{Code: 100, Message: "The command '/bin/sh -c apt-get update' returned a non-zero code: 100"}

	buildKitWordsOfIt = "#1 [internal] load remote build context\n#1 DONE 0.0s\n\n#4 [1/2] FROM docker.io/library/debian:12\n#4 sha256:70b17671\n#4 DONE 0.0s\n\n" +
		"#5 [stage-0 2/2] RUN apt-get update && apt-get install tini\n#5 0.167 Reading package lists...\n\n#5 [stage-0 2/2] RUN apt-get update && apt-get install tini\n#5 0.201 E: Unable to locate package tini\n" +
		"#5 ERROR: executor failed running [/bin/sh -c apt-get update]: exit code: 100\n------\n > [2/2] RUN apt-get update:\n------\nexecutor failed running [/bin/sh -c apt-get update]: exit code: 100\n"
)

func TestReportSaysTheSteps(t *testing.T) {
	const run = "RUN apt-get update && apt-get install tini"
	for name, c := range map[string]struct {
		buildKit bool
		written  string
		want     lines
	}{
		"classic":  {false, classicWords, lines{"Step 1/3: FROM debian:12", "Step 2/3: ENV A=1", "Step 3/3: " + run}},
		"Podman":   {false, "STEP 1/2: FROM debian\nSTEP 2/2: RUN true\n", lines{"Step 1/2: FROM debian", "Step 2/2: RUN true"}},
		"BuildKit": {true, buildKitWordsOfIt, lines{"Step 1/2: FROM docker.io/library/debian:12", "Step 2/2: " + run}},
	} {
		for _, size := range []int{1, 7, len(c.written)} {
			t.Run(fmt.Sprintf("%s in pieces of %d", name, size), func(t *testing.T) {
				var said lines
				r := &report{say: said.say, buildKit: c.buildKit}
				for rest := c.written; rest != ""; rest = rest[min(size, len(rest)):] {
					fmt.Fprint(r, rest[:min(size, len(rest))])
				}
				r.end()
				if diff := cmp.Diff(c.want, said); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestReportOfALongStep(t *testing.T) {
	var said lines
	r := &report{say: said.say}
	fmt.Fprintln(r, "Step 1/1 : RUN "+strings.Repeat("x", 100))
	for i := range 120 {
		fmt.Fprintf(r, "Get:%d http://deb.example.com\n", i+1)
	}
	want := lines{"Step 1/1: RUN " + strings.Repeat("x", 65) + "...", "  Get:50 http://deb.example.com", "  Get:100 http://deb.example.com"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
	if len(r.tail) != tailLines || r.tail[tailLines-1] != "Get:120 http://deb.example.com" {
		t.Errorf("kept %q", r.tail)
	}
}

func TestReportOfAFailure(t *testing.T) {
	o := BuildOptions{Base: "debian:12", Tag: "cosplay:latest"}
	for name, c := range map[string]struct {
		buildKit bool
		written  string
		err      error
		words    []string
	}{
		"classic":         {false, classicWords, classicEnd, []string{"failed in step 3/3: RUN apt-get update && apt-get install tini: exit code 100\n  Reading package lists...\n  E: Unable to locate package tini\nSee the lines above"}},
		"BuildKit":        {true, buildKitWordsOfIt, errors.New("exit code: 100"), []string{"failed in step 2/2: RUN apt-get update && apt-get install tini: exit code 100\n  Reading package lists...\n  E: Unable to locate package tini\nSee the lines above"}},
		"before any step": {false, "", errors.New("the moon is full"), []string{"building cosplay:latest upon debian:12 failed: the moon is full\nSee"}},
		"no mirror": {false, "Step 1/1 : RUN x\nErr:1 http://mirror.example Temporary failure resolving 'mirror.example'\n", classicEnd,
			[]string{"exit code 100", "cannot reach the mirror", "proxies in ~/.docker/config.json"}},
		"no shell, in podman's log": {false, "", errors.New(`msg="runc create failed: exec: \"/bin/sh\": stat /bin/sh: no such file or directory" : exit status 1`),
			[]string{"debian:12 cannot be built upon: it has no apt-get"}},
		"no shell": {false, "", errors.New(`runc create failed: exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown`),
			[]string{"debian:12 cannot be built upon: it has no apt-get", "cosplay build --base IMAGE", `image = "debian:12"`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &report{say: func(string) {}, buildKit: c.buildKit}
			fmt.Fprint(r, c.written)
			r.end()
			check(t, r.failure(t.Context(), o, c.err), c.words...)
		})
	}
}
