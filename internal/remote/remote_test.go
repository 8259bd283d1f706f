package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/go-archive"

	"cosplay/internal/disguise"
	"cosplay/internal/durable"
	"cosplay/internal/plan"
	"cosplay/internal/preflight"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/shared"
)

// fake is a runtime over there that notes what it is asked, and answers with what a host can have.
type fake struct {
	runtime.Runtime
	owner    resource.Owner
	prepared resource.Session
	given    resource.Handle
	ran      runtime.Program
	removed  map[string]bool
	failure  error
}

var (
	ctx     = context.Background()
	whole   = resource.Session{Address: resource.One("worker"), ID: "worker-0", Target: resource.Target{MemoryMiB: 6144}, Secret: map[string]string{"TOKEN": "x"}, Sealed: map[string]string{"TOKEN": "seal"}}
	theBody = resource.Body{ID: "/home/ada/f", Session: "worker-0", State: resource.Running, Use: &resource.Use{PeakMiB: 7, CacheMiB: 3, NowBytes: 9, PeaksMiB: []int{7}}}
)

func (f *fake) Prepare(_ context.Context, s resource.Session, given resource.Handle) (resource.Body, error) {
	f.prepared, f.given = s, given
	return theBody, f.failure
}
func (f *fake) Unprepare(context.Context, string) (resource.Use, error) {
	return *theBody.Use, f.failure
}
func (f *fake) List(context.Context) ([]resource.Body, error) {
	return []resource.Body{theBody}, f.failure
}
func (f *fake) Usage(string) (disguise.Usage, error) {
	return disguise.Usage{Total: 5, Peaks: []int64{8}}, f.failure
}
func (f *fake) Interior(resource.PriorSession) (runtime.Interior, error) {
	return runtime.Interior{Who: "/w", UsageFile: "/u", Folder: "/etc"}, nil
}
func (f *fake) Survey(context.Context) (runtime.Survey, error) {
	return runtime.Survey{Check: func(_ context.Context, s resource.Session, removed map[string]bool) []preflight.Problem {
		f.prepared, f.removed = s, removed
		return []preflight.Problem{{Attribute: "workspace", Summary: "no", Warning: true, Advice: prose.Advice{What: "w", Fix: "f"}}}
	}}, nil
}
func (f *fake) Exec(_ context.Context, _ string, p runtime.Program, _ runtime.Streams) (int, error) {
	f.ran = p
	return 5, f.failure
}

// pair is a client whose machine is this one.
func pair(t *testing.T) (*fake, Server, Runtime) {
	f := &fake{}
	root := t.TempDir()
	project := filepath.Join(root, "key")
	s := Server{Root: root, Programs: filepath.Join(project, "programs"), Place: Place{Folders: filepath.Join(project, "sessions"), Sessions: []string{filepath.Join(project, "sessions")}, Workspace: filepath.Join(project, "workspace"), User: resource.User{Name: "ada"}},
		Open: func(name string, owner resource.Owner) (runtime.Runtime, error) {
			if f.owner = owner; name != "process" {
				return nil, errors.New("not here")
			}
			return f, nil
		}}
	return f, s, Runtime{Machine: Machine{Ask: func(_ context.Context, q []byte, _ time.Duration) ([]byte, error) { return s.Answer(q) }}, Name: "process", Owner: resource.Owner{Lineage: "l", Key: "k"}}
}

// TestQuestions: what a runtime is asked arrives over there whole, and its answer here, also what is left out of their files.
func TestQuestions(t *testing.T) {
	f, _, r := pair(t)
	if made, err := r.Prepare(ctx, whole, resource.Handle{GPUInstance: 3, ComputeInstance: 2}); err != nil || !reflect.DeepEqual(made, theBody) {
		t.Errorf("prepared %+v, %v", made, err)
	}
	if !reflect.DeepEqual(f.prepared, whole) || f.given.GPUInstance != 3 || f.given.ComputeInstance != 2 || f.owner.Lineage != "l" || f.owner.Key != "k" {
		t.Errorf("over there: %+v, %+v, %+v", f.prepared, f.given, f.owner)
	}
	if all, err := r.List(ctx); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], theBody) {
		t.Errorf("listed %+v, %v", all, err)
	}
	if used, err := r.Unprepare(ctx, "worker-0"); err != nil || !reflect.DeepEqual(used, *theBody.Use) {
		t.Errorf("used %+v, %v", used, err)
	}
	if usage, err := r.Usage("worker-0"); err != nil || usage.Total != 5 || len(usage.Peaks) != 1 {
		t.Errorf("usage %+v, %v", usage, err)
	}
	survey, _ := r.Survey(ctx)
	if problems := survey.Check(ctx, whole, map[string]bool{"old": true}); len(problems) != 1 || !f.removed["old"] || problems[0].Fix != "f" || !problems[0].Warning || f.prepared.Secret["TOKEN"] != "x" {
		t.Errorf("problems %+v of %+v", problems, f.prepared)
	}
	if in, err := r.Interior(resource.PriorSession{Session: whole}); err != nil || in.Who != "/w" || in.UsageFile == "" || in.Folder != "" || in.User == nil || in.User.Name != "ada" {
		t.Errorf("interior %+v, %v: a folder of another machine must not be opened here", in, err)
	}
	f.failure = fs.ErrNotExist
	if _, err := r.Usage("worker-0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no usage file: %v", err)
	}
	f.failure = errors.New("a full disk")
	if _, err := r.Prepare(ctx, whole, resource.Handle{}); err == nil || !strings.Contains(err.Error(), "a full disk") {
		t.Errorf("a failure over there: %v", err)
	}
}

// TestPrograms: a program is kept in a file of the user, runs once, and its outcome is asked for; with the last session
// nothing is left of them.
func TestPrograms(t *testing.T) {
	f, s, r := pair(t)
	if err := os.MkdirAll(s.Place.Folders, 0o755); err != nil {
		t.Fatal(err)
	}
	p := runtime.Program{Argv: []string{"a", "b c"}, Env: map[string]string{"TOKEN": "x"}, Dir: "d"}
	a, err := r.ask(ctx, question{Op: opProgram, IDs: []string{"worker-0"}, Program: &p})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.file(a.Program)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of a program: %v %v", info, err)
	}
	f.failure = runtime.VacantError{Advice: prose.Advice{What: "stopped", Fix: "start it"}}
	if code, err := s.Start(ctx, a.Program, runtime.Streams{}); code != 5 || err != nil || !reflect.DeepEqual(f.ran, p) {
		t.Errorf("it ran %+v: %d, %v", f.ran, code, err)
	}
	if _, err := s.Start(ctx, a.Program, runtime.Streams{}); err == nil {
		t.Error("it runs twice")
	}
	beside, err := r.ask(ctx, question{Op: opProgram, IDs: []string{"worker-0"}, Program: &p})
	if err != nil {
		t.Fatal(err)
	}
	o, err := r.ask(ctx, question{Op: opOutcome, IDs: []string{a.Program}})
	if err != nil || o.Outcome == nil || o.Outcome.Code != 5 || !o.Outcome.Vacant || o.Outcome.Error.Fix != "start it" {
		t.Errorf("its outcome: %+v, %v", o.Outcome, err)
	}
	if again, err := r.ask(ctx, question{Op: opOutcome, IDs: []string{a.Program}}); err != nil || again.Outcome != nil {
		t.Errorf("its outcome, once more: %+v, %v", again.Outcome, err)
	}
	if _, err := os.Stat(s.file(beside.Program)); err != nil {
		t.Errorf("the outcome of one program took another along: %v", err)
	}
	old, _ := r.ask(ctx, question{Op: opProgram, IDs: []string{"worker-0"}, Program: &p})
	long := time.Now().Add(-2 * keptFor)
	const running = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	if err := os.WriteFile(s.file(running)+runs, []byte(durable.Self()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{s.file(old.Program), s.file(running) + runs} {
		if err := os.Chtimes(file, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.ask(ctx, question{Op: opProgram, IDs: []string{"worker-0"}, Program: &p}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.file(old.Program)); err == nil {
		t.Error("a program that was never run stays for ever")
	}
	if !s.runs(running) {
		t.Error("a program that has run for days gets no signals")
	}
	f.failure = os.RemoveAll(s.Place.Folders)
	if _, err := r.Unprepare(ctx, "worker-0"); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(s.Root); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// copier is a fake with files.
type copier struct {
	*fake
	path, folder string
	follow, into bool
	owners       bool
	got          string
}

func (c *copier) Source(_ context.Context, _, path string, follow bool) (archive.CopyInfo, error) {
	c.path, c.follow, c.into = path, follow, false
	return archive.CopyInfo{Path: "/ws/" + path, Exists: true, IsDir: true, RebaseName: "n"}, c.failure
}

func (c *copier) Destination(_ context.Context, _, path string) (archive.CopyInfo, error) {
	c.path, c.into = path, true
	return archive.CopyInfo{Path: "/ws/" + path}, c.failure
}

func (c *copier) Pack(_ context.Context, _ string, what archive.CopyInfo, to io.Writer) error {
	_, _ = io.WriteString(to, "archive of "+what.Path)
	return c.failure
}

func (c *copier) Unpack(_ context.Context, _, folder string, from io.Reader, owners bool) error {
	text, _ := io.ReadAll(from)
	c.folder, c.owners, c.got = folder, owners, string(text)
	return c.failure
}

// TestCopies: what is at a path is asked for, an archive is a program with streams, and both fail where sessions have no files.
func TestCopies(t *testing.T) {
	f, s, r := pair(t)
	if _, err := r.Source(ctx, "worker-0", "out", true); err == nil || !strings.Contains(err.Error(), "cannot do that") {
		t.Errorf("a runtime without files: %v", err)
	}
	c := &copier{fake: f}
	s.Open = func(string, resource.Owner) (runtime.Runtime, error) { return c, nil }
	r.Ask = func(_ context.Context, q []byte, _ time.Duration) ([]byte, error) { return s.Answer(q) }
	what, err := r.Source(ctx, "worker-0", "out", true)
	if want := (archive.CopyInfo{Path: "/ws/out", Exists: true, IsDir: true, RebaseName: "n"}); err != nil || what != want || !c.follow || c.into {
		t.Errorf("source %+v, %v", what, err)
	}
	if at, err := r.Destination(ctx, "worker-0", "in"); err != nil || at.Path != "/ws/in" || at.Exists || !c.into {
		t.Errorf("destination %+v, %v", at, err)
	}
	run := func(q question, in string) (string, error) {
		q.Op, q.IDs = opProgram, []string{"worker-0"}
		a, err := r.ask(ctx, q)
		if err != nil {
			return "", err
		}
		var out bytes.Buffer
		if _, err := s.Start(ctx, a.Program, runtime.Streams{In: strings.NewReader(in), Out: &out}); err != nil {
			return "", err
		}
		ended, err := s.outcome(a.Program)
		if err == nil && ended.Error.What != "" {
			err = ended.Error
		}
		return out.String(), err
	}
	if out, err := run(question{Pack: &what}, ""); err != nil || out != "archive of /ws/out" {
		t.Errorf("packed %q, %v", out, err)
	}
	if _, err := run(question{Unpack: &unpacking{"/ws", true}}, "text"); err != nil || c.folder != "/ws" || !c.owners || c.got != "text" {
		t.Errorf("unpacked %+v, %v", c, err)
	}
	f.failure = errors.New("write /ws/x: no space left on device")
	if _, err := run(question{Unpack: &unpacking{"/ws", false}}, "text"); err == nil || !strings.Contains(err.Error(), "/ws/x: no space") || c.owners {
		t.Errorf("a full disk over there: %v", err)
	}
	if _, err := r.Source(ctx, "worker-0", "out", false); err == nil || c.follow {
		t.Errorf("a failure over there: %v", err)
	}
	for _, q := range []question{{Op: opFind, IDs: []string{"x"}}, {Op: opFind, Find: &finding{}}, {Op: opProgram, Pack: &what}, {Op: opProgram, Unpack: &unpacking{}}} {
		if _, err := r.ask(ctx, q); err == nil || !strings.Contains(err.Error(), "does not say about what") {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// TestForeignQuestions: a question that is none, or that names another file, does nothing.
func TestForeignQuestions(t *testing.T) {
	_, s, r := pair(t)
	for _, text := range []string{"", "null", "{}", `{"op":"prepare"}`, `{"op":"unprepare"}`, `{"op":"program","ids":["x"]}`, `{"op":"signal","ids":["../../etc/passwd"],"signal":9}`,
		`{"op":"outcome","ids":["/etc/passwd"]}`, `{"op":"altered"}`, `{"op":"list","runtime":"docker"}`, `{"op":"readdress","ids":["x"]}`, `{"op":"no such"}`} {
		if answer, err := s.Answer([]byte(text)); err == nil {
			t.Errorf("%s is answered: %s", text, answer)
		}
	}
	outside := filepath.Join(filepath.Dir(s.Programs), "x")
	if err := errors.Join(os.MkdirAll(s.Programs, 0o700), os.WriteFile(outside, []byte(`{"op":"program","ids":["worker-0"],"runtime":"process","program":{}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(ctx, "../x", runtime.Streams{}); err == nil {
		t.Error("a path is the name of a program")
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file outside was taken: %v", err)
	}
	for _, text := range []string{"", "[]", `"x"`, `{"bodies":3}`} { // of a host that lies
		r.Ask = func(context.Context, []byte, time.Duration) ([]byte, error) { return []byte(text), nil }
		if _, err := r.List(ctx); err == nil {
			t.Errorf("the answer %q is taken", text)
		}
	}
	r.Ask = func(context.Context, []byte, time.Duration) ([]byte, error) { return []byte("{}"), nil }
	if _, err := r.Prepare(ctx, whole, resource.Handle{}); err == nil {
		t.Error("a session without a body is prepared")
	}
	if _, err := r.Place(ctx); err == nil {
		t.Error("a machine that says nothing is one")
	}
	if code, err := (Runtime{Machine: Machine{Ask: r.Ask, Run: func(string, bool) []string { return []string{"true"} }}}).Exec(ctx, "a", runtime.Program{}, runtime.Streams{}); err == nil || code != 1 {
		t.Errorf("a program whose outcome is not known ended with %d, %v", code, err)
	}
}

// TestTidy: what sessions shared is removed where there is no session, with the folders of the project; nothing else is.
func TestTidy(t *testing.T) {
	root := t.TempDir()
	project := filepath.Join(root, "key", "gpu1")
	sessions := filepath.Join(project, "sessions", "default", "gpu1")
	s := Server{Root: root, Programs: filepath.Join(project, "programs"), Place: Place{Folders: sessions, Sessions: []string{sessions}, Workspace: filepath.Join(project, "workspace")}}
	m := Machine{Ask: func(_ context.Context, q []byte, _ time.Duration) ([]byte, error) { return s.Answer(q) }}
	left := filepath.Join(sessions, shared.Dir, "libnvidia-ml.so.1-1")
	for _, session := range []string{"worker-0", ""} {
		folder := filepath.Join(sessions, session)
		if err := errors.Join(os.MkdirAll(filepath.Dir(left), 0o700), os.MkdirAll(folder, 0o700), os.WriteFile(left, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := m.Tidy(context.Background()); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(left)
		if there := err == nil; there != (session != "") {
			t.Errorf("with the session %q, the shared files: %v", session, err)
		}
		if session != "" {
			_ = os.Remove(folder)
		}
	}
	if entries, _ := os.ReadDir(root); len(entries) > 0 {
		t.Errorf("the project has still %v", entries)
	}
}

// TestInputThatGoesOn: a program ends although its input does not, which is no file.
func TestInputThatGoesOn(t *testing.T) {
	_, _, r := pair(t)
	in, end := io.Pipe()
	defer end.Close()
	r.Run = func(string, bool) []string { return []string{"true"} }
	ended := make(chan error, 1)
	go func() {
		_, err := r.Exec(ctx, "worker-0", runtime.Program{}, runtime.Streams{In: in, Out: io.Discard, Err: io.Discard})
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil { // it has no outcome
			t.Error("a program that did not run has ended well")
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for its input")
	}
}

// engine is a fake whose sessions are containers.
type engine struct{ *fake }

func (e engine) Inspect(context.Context) (resource.Engine, error) {
	return resource.Engine{Name: "Docker 28", Images: map[string]string{"one": "sha256:1"}}, e.failure
}
func (e engine) Interior(resource.PriorSession) (runtime.Interior, error) {
	return runtime.Interior{OwnRoot: true}, nil
}
func (e engine) Reaches() error { return e.failure }
func (e engine) Offered(_ context.Context, name string) (string, error) {
	return name + "@sha256:2", e.failure
}
func (e engine) Stop(context.Context, string) error { return e.failure }
func (e engine) Start(_ context.Context, s resource.Session) (resource.Body, error) {
	e.prepared = s
	return theBody, e.failure
}
func (e engine) Leftovers(_ context.Context, listed []resource.Body, known []string) ([]resource.Body, error) {
	return append(listed, resource.Body{Session: known[0]}), e.failure
}
func (e engine) Stranger(_ context.Context, ref string) (*resource.Body, string, string, string, error) {
	return &resource.Body{ID: ref}, "name", "lineage", "gpu1", e.failure
}
func (e engine) Ensure(_ context.Context, image string, how plan.ImageSource, say func(string)) error {
	say(fmt.Sprint(how, " ", image))
	say("done")
	return e.failure
}
func (e engine) Logs(_ context.Context, session string, o runtime.LogOptions, out, err io.Writer) error {
	fmt.Fprint(out, session, " ", o.Tail)
	fmt.Fprint(err, "warning")
	return e.failure
}

// TestContainers: what an engine over there is asked arrives whole, with its errors; what it prints comes line by line; and a
// runtime without an engine says that it cannot.
func TestContainers(t *testing.T) {
	f, s, r := pair(t)
	s.Open = func(string, resource.Owner) (runtime.Runtime, error) { return engine{f}, nil }
	c := Containers{Runtime: r}
	c.Ask = func(_ context.Context, q []byte, _ time.Duration) ([]byte, error) { return s.Answer(q) }
	if e, err := c.Inspect(ctx); err != nil || e.Images["one"] != "sha256:1" {
		t.Errorf("%+v, %v", e, err)
	}
	if image, err := c.Offered(ctx, "one"); err != nil || image != "one@sha256:2" {
		t.Errorf("offered %q, %v", image, err)
	}
	if b, err := c.Start(ctx, whole); err != nil || !reflect.DeepEqual(b, theBody) || f.prepared.Secret["TOKEN"] != "x" {
		t.Errorf("started %+v, %v", b, err)
	}
	if all, err := c.Leftovers(ctx, []resource.Body{theBody}, []string{"worker-1"}); err != nil || len(all) != 2 || !reflect.DeepEqual(all[0], theBody) || all[1].Session != "worker-1" {
		t.Errorf("leftovers %+v, %v", all, err)
	}
	if b, name, lineage, host, err := c.Stranger(ctx, "ref"); err != nil || b.ID != "ref" || name != "name" || lineage != "lineage" || host != "gpu1" {
		t.Errorf("stranger %+v, %s, %s, %s, %v", b, name, lineage, host, err)
	}
	if in, err := c.Interior(resource.PriorSession{Session: whole}); err != nil || in.User != nil {
		t.Errorf("the user in a container is that of the container, not %+v: %v", in.User, err)
	}
	// What has streams runs as a program, which the client starts by ssh.
	for _, failure := range []error{nil, errors.New("no such image")} {
		f.failure = failure
		var said []string
		var out, complaints bytes.Buffer
		started := func(q question) error {
			q.Op, q.Runtime = opProgram, "process"
			text, err := json.Marshal(q)
			if err == nil {
				text, err = s.Answer(text)
			}
			var a answer
			if err = errors.Join(err, json.Unmarshal(text, &a)); err != nil {
				t.Fatal(err)
			}
			_, err = s.Start(ctx, a.Program, runtime.Streams{Out: io.MultiWriter(&out, &lines{say: func(line string) { said = append(said, line) }}), Err: &complaints})
			kept, outcome := s.outcome(a.Program)
			if err = errors.Join(err, outcome); err != nil {
				t.Fatal(err)
			}
			if kept.Error.What == "" {
				return nil
			}
			return kept.Error
		}
		if err := started(question{Image: "one", How: plan.PullImage}); (err != nil) != (failure != nil) || !slices.Equal(said, []string{fmt.Sprint(plan.PullImage, " one"), "done"}) {
			t.Errorf("said %q, %v", said, err)
		}
		out.Reset()
		if err := started(question{IDs: []string{"worker-0"}, Logs: &runtime.LogOptions{Tail: "5"}}); (err != nil) != (failure != nil) || out.String() != "worker-0 5" || complaints.String() != "warning" {
			t.Errorf("logs %q and %q, %v", out.String(), complaints.String(), err)
		}
		complaints.Reset()
		if err := errors.Join(c.Reaches(), c.Stop(ctx, "worker-0"), c.Connect(ctx)); (err != nil) != (failure != nil) {
			t.Errorf("%v", err)
		}
	}
	plain := Containers{Runtime: r} // of a runtime without an engine
	if _, err := plain.Inspect(ctx); err == nil || plain.Reaches() == nil || plain.Stop(ctx, "worker-0") == nil {
		t.Error("a runtime without an engine answers for one")
	}
}
