package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// relay is in front of the engine, and kills a command when the answer to one of its requests arrives.
type relay struct {
	http.Handler

	lock    sync.Mutex
	kills   int         // the answer at which the command is killed; 0 for none
	command *os.Process // the one to kill
	seen    []string    // the requests that change something, in their order
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{}
	r.Handler = &httputil.ReverseProxy{
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) {}, // its client is dead
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", "engine"
			p.Out.Host = p.In.Host
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", "/var/run/docker.sock")
		}},
		ModifyResponse: r.answered,
	}
	return r
}

// listen starts a server, and makes its socket the engine's for the commands of a project.
func (r *relay) listen(p project) project {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "engine")
	socket, err := net.Listen("unix", path)
	if err != nil {
		p.t.Fatal(err)
	}
	server := &http.Server{Handler: r}
	p.t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(socket) }()
	p.env = append(slices.Clone(p.env), "DOCKER_HOST=unix://"+path)
	return p
}

var errKilled = errors.New("the command was killed")

func (r *relay) answered(a *http.Response) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	if a.Request.Method == http.MethodGet || a.Request.Method == http.MethodHead || r.command == nil {
		return nil
	}
	r.seen = append(r.seen, a.Request.Method+" "+a.Request.URL.Path)
	if len(r.seen) != r.kills {
		return nil
	}
	_ = r.command.Kill()
	return errKilled
}

// run runs a command of a project behind the relay, until it ends or is killed at one of the answers.
func (r *relay) run(p project, kills int, args ...string) (killed bool) {
	p.t.Helper()
	c := p.command(args...)
	r.lock.Lock()
	err := c.Start()
	r.seen, r.kills, r.command = nil, kills, c.Process
	r.lock.Unlock()
	if err != nil {
		p.t.Fatal(err)
	}
	err = c.Wait()
	r.lock.Lock()
	r.command = nil
	r.lock.Unlock()
	var exit *exec.ExitError
	killed = errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if err != nil && !killed {
		p.t.Fatalf("cosplay %v, to be killed at answer %d: %v", args, kills, err)
	}
	p.quiet()
	return killed
}

// TestEveryAnswer: a cosplay that is killed right after the engine has answered a request, of a session that no slice shows, leaves nothing
// that one destroy does not remove, and what destroy says is true.
func TestEveryAnswer(t *testing.T) {
	t.Parallel()
	needEngine(t)
	p := newProject(t, fmt.Sprintf(inDocker, "clocks", "answer", 1, "a100"))
	defer removeContainers(t, p.dir)
	p.run("plan")
	a := answers{project: p, before: p.hardware(), relay: newRelay(t)}
	a.behind = a.relay.listen(p)
	up := func() { p.run("apply", "--auto-approve") }
	a.each(func() {}, "apply", "--auto-approve")
	a.each(up, "destroy", "--auto-approve")
	a.each(up, "apply", "--auto-approve", "--replace", "answer-0")
	a.each(up, "stop", "--all")
	a.each(func() {}, "run", "a100", "--image", "cosplay-test/scratch", "--", "/busybox", "true")
}

// answers are those to the requests of a project's commands.
type answers struct {
	project
	relay  *relay
	behind project // the same project, behind the relay
	before []byte  // the host as it was found
}

// left destroys what a killed command has left, and reports what remains.
func (a answers) left() []string {
	wrong := a.destroysAll(a.before)
	runs, _ := filepath.Glob(filepath.Join(a.dir, ".cosplay/runs/*"))
	return slices.Concat(wrong, runs, a.containers())
}

// each kills a command at the answers to its requests, with the project as ready leaves it.
func (a answers) each(ready func(), args ...string) {
	ready()
	a.relay.run(a.behind, 0, args...)
	listed := slices.Clone(a.relay.seen)
	a.run("destroy", "--auto-approve")
	few := chosen(len(listed), 2)
	for _, n := range few {
		ready()
		if !a.relay.run(a.behind, n, args...) {
			a.t.Errorf("%v has no answer %d: %v", args, n, a.relay.seen)
		}
		if wrong := a.left(); len(wrong) > 0 {
			a.t.Errorf("%v killed at answer %d, %s:\n%s", args, n, listed[n-1], strings.Join(wrong, "\n"))
			a.left()
		}
	}
	a.t.Logf("%v: killed at %d of %d answers: %v", args, len(few), len(listed), listed)
}
