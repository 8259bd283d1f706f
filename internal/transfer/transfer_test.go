package transfer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/go-archive"

	"cosplay/internal/resource"
)

// session is a side whose archive has what a hostile one writes.
type session struct {
	Files
	found  archive.CopyInfo
	hdrs   []tar.Header
	fails  error // after the archive
	pack   func(to io.Writer) error
	taken  []tar.Header
	folder string
	refuse error
}

func (s *session) Source(context.Context, string, bool) (archive.CopyInfo, error) {
	s.found.Exists = true
	return s.found, nil
}

func (s *session) Destination(_ context.Context, path string) (archive.CopyInfo, error) {
	return archive.CopyInfo{Path: path, Exists: true, IsDir: true}, nil
}

func (s *session) Pack(_ context.Context, _ archive.CopyInfo, to io.Writer) error {
	if s.pack != nil {
		return s.pack(to)
	}
	w := tar.NewWriter(to)
	for _, h := range s.hdrs {
		content := []byte(nil)
		if h.Typeflag == tar.TypeReg {
			content = []byte("written")
		}
		h.Size = int64(len(content))
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), s.fails)
}

func (s *session) Unpack(_ context.Context, folder string, from io.Reader, _ bool) error {
	s.folder = folder
	if s.refuse != nil {
		return s.refuse
	}
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.taken = append(s.taken, *h)
	}
}

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
func folder(name string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}
}
func link(name, to string) tar.Header {
	return tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}
}
func hard(name, to string) tar.Header {
	return tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeLink}
}

// tree is what is below a folder: each name with its content, or with where a link leads.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case d.Type() == fs.ModeSymlink:
			to, _ := os.Readlink(path)
			name += "->" + to
		case !d.IsDir():
			text, _ := os.ReadFile(path)
			name += "=" + string(text)
		}
		all = append(all, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func ctx() context.Context { return context.Background() }

// TestRenamed: what a session sends under the expected name arrives, under the name of the destination.
func TestRenamed(t *testing.T) {
	dir := t.TempDir()
	s := &session{found: archive.CopyInfo{Path: "elsewhere", IsDir: true}, hdrs: []tar.Header{folder("out/"), file("out/a"), hard("out/b", "out/a"), link("out/l", "/etc/x")}}
	from := End{Side: s, Path: "/ws/out", Name: "worker:out"}
	to := End{Side: Files{}, Path: filepath.Join(dir, "new"), Name: "new"}
	if err := Copy(ctx(), from, to, Options{Count: io.Discard}); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, dir); got != "new new/a=written new/b=written new/l->/etc/x" {
		t.Error(got)
	}
	s.hdrs = []tar.Header{folder("./"), file("./a")}
	from.Path = "/ws/out/."
	if err := Copy(ctx(), from, to, Options{Count: io.Discard}); err != nil {
		t.Fatal(err)
	}
	from.Path = "/ws/.."
	if err := Copy(ctx(), from, to, Options{Count: io.Discard}); err == nil || !strings.Contains(err.Error(), "does not say the name") {
		t.Errorf("a source without a name can write anything: %v", err)
	}
	long := strings.Repeat("long", 40)
	s.hdrs, s.pack, from.Path = []tar.Header{folder("out/"), file("out/a")}, padded(s), "/ws/out"
	to.Path = filepath.Join(dir, long)
	if err := Copy(ctx(), from, to, Options{Count: io.Discard}); err != nil {
		t.Errorf("an archive that is longer than its end, under a long name: %v", err)
	}
	if got := tree(t, filepath.Join(dir, long)); got != "a=written" {
		t.Error(got)
	}
}

// padded packs as programs do that write whole records.
func padded(s *session) func(io.Writer) error {
	return func(to io.Writer) error {
		plain := *s
		plain.pack = nil
		_, err := to.Write(nil)
		if err = errors.Join(err, plain.Pack(ctx(), archive.CopyInfo{}, to)); err == nil {
			_, err = to.Write(make([]byte, 64<<10))
		}
		return err
	}
}

// TestErrors: the error that came first is reported, also where the archive was whole.
func TestErrors(t *testing.T) {
	lost := errors.New("the connection has ended")
	s := &session{found: archive.CopyInfo{Path: "out"}, hdrs: []tar.Header{file("out")}, fails: lost}
	from, to := End{Side: s, Path: "/ws/out", Name: "worker:out"}, End{Side: Files{}, Path: t.TempDir(), Name: "here"}
	if err := Copy(ctx(), from, to, Options{Count: io.Discard}); !errors.Is(err, lost) || !strings.Contains(err.Error(), "worker:out: ") {
		t.Errorf("lost after the end: %v", err)
	}
	s.pack = func(to io.Writer) error {
		w := tar.NewWriter(to)
		return errors.Join(w.WriteHeader(&tar.Header{Name: "out", Size: 7, Mode: 0o644}), lost)
	}
	if err := Copy(ctx(), from, to, Options{Count: io.Discard}); !errors.Is(err, lost) {
		t.Errorf("lost in a file: %v", err)
	}
	full := errors.New("no space left on device")
	s.pack = func(to io.Writer) error {
		_, err := io.Copy(to, endless{})
		return errors.Join(errors.New("no process reads"), err)
	}
	if err := Copy(ctx(), from, End{Side: &session{refuse: full}, Path: "/data", Name: "worker-2:/data"}, Options{Count: io.Discard}); !errors.Is(err, full) || strings.Contains(err.Error(), "no process") {
		t.Errorf("a full disk: %v", err)
	}
	ended, end := context.WithCancel(ctx())
	end()
	if err := Copy(ended, End{Side: Files{}, Path: t.TempDir(), Name: "here"}, to, Options{Count: io.Discard}); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted copy: %v", err)
	}
}

// TestSocket: a socket has no content, and is left out without an error.
func TestSocket(t *testing.T) {
	dir, into := t.TempDir(), t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = errors.Join(os.WriteFile(filepath.Join(dir, "t"), []byte("x"), 0o600),
		Copy(ctx(), End{Side: Files{}, Path: dir + "/."}, End{Side: Files{}, Path: into}, Options{Count: io.Discard}))
	if got := tree(t, into); err != nil || got != "t=x" {
		t.Error(got, err)
	}
}

// TestNoInput: a copy of an archive that does not come can be stopped.
func TestNoInput(t *testing.T) {
	stopped, stop := context.WithCancel(ctx())
	time.AfterFunc(50*time.Millisecond, stop)
	never, w := io.Pipe()
	defer w.Close()
	if err := Read(stopped, never, End{Side: Files{}, Path: t.TempDir(), Name: "here"}, Options{Count: io.Discard}); err == nil {
		t.Error("no error")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestOwners: files in a container belong to its user, without bits that let a program act as its owner, but with --archive.
func TestOwners(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := errors.Join(os.WriteFile(path, nil, 0o755), os.Chmod(path, 0o755|fs.ModeSetuid|fs.ModeSetgid), os.Mkdir(filepath.Join(dir, "d"), 0o755), os.Chmod(filepath.Join(dir, "d"), 0o755|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	for _, owners := range []bool{false, true} {
		s := &session{}
		err := Copy(ctx(), End{Side: Files{}, Path: dir + "/."}, End{Side: s, Path: "/data", Of: resource.User{UID: 7000000, GID: 8}}, Options{Owners: owners, Count: io.Discard})
		if err != nil || len(s.taken) != 3 || s.folder != "/data" {
			t.Fatalf("%v %q %+v", err, s.folder, s.taken)
		}
		for _, h := range s.taken {
			mode, uid := h.Mode, 7000000
			if owners {
				uid = os.Getuid()
			}
			if h.Uid != uid || (h.Gid == 8) == owners {
				t.Errorf("owners %v: %s is of %d:%d", owners, h.Name, h.Uid, h.Gid)
			}
			if want := int64(0o6755); h.Name == "./a" && owners != (mode == want) {
				t.Errorf("owners %v: mode %o", owners, mode)
			}
			if h.Name == "./d/" && mode != 0o2755 {
				t.Errorf("owners %v: mode %o of a folder", owners, mode)
			}
		}
	}
}

// TestOwnersHere: only root keeps the owners of files that come here; for another user it is an error with a fix.
func TestOwnersHere(t *testing.T) {
	dir := t.TempDir()
	s := &session{found: archive.CopyInfo{Path: "out"}, hdrs: []tar.Header{{Name: "out", Typeflag: tar.TypeReg, Uid: 1234, Gid: 1235}}}
	err := Copy(ctx(), End{Side: s, Path: "/ws/out"}, End{Side: Files{}, Path: dir}, Options{Owners: true, Count: io.Discard})
	if os.Geteuid() != 0 {
		if err == nil || !strings.Contains(err.Error(), "leave --archive out") {
			t.Error(err)
		}
		return
	}
	info, failed := os.Stat(filepath.Join(dir, "out"))
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if of := info.Sys().(*syscall.Stat_t); of.Uid != 1234 || of.Gid != 1235 {
		t.Errorf("of %d:%d", of.Uid, of.Gid)
	}
}

// TestRead: an archive may be compressed and have sparse files, and goes into a folder.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	holes, err := os.Create(filepath.Join(dir, "holes"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = holes.WriteAt([]byte("x"), 1<<20)
	if err = errors.Join(err, holes.Truncate(2<<20), holes.Close()); err != nil {
		t.Fatal(err)
	}
	want, _ := os.ReadFile(holes.Name())
	for _, format := range []string{"--format=gnu", "--sparse-version=0.0", "--sparse-version=0.1", "--sparse-version=1.0"} {
		archived, err := exec.Command("tar", "-C", dir, "-czS", format, "holes").Output()
		if err != nil {
			t.Fatal(err)
		}
		into := t.TempDir()
		if err := Read(ctx(), bytes.NewReader(archived), End{Side: Files{}, Path: into, Name: "here"}, Options{Count: io.Discard}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if got, err := os.ReadFile(filepath.Join(into, "holes")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", format, len(got), err)
		}
	}
	into := t.TempDir()
	if err := Read(ctx(), strings.NewReader("no archive, and long enough to be seen as none"), End{Side: Files{}, Path: into, Name: "here"}, Options{Count: io.Discard}); err == nil {
		t.Error("text is an archive")
	}
}

// TestUnprivileged: without root, a file that cannot be read is an error, which names it; folders in which their owner cannot write
// arrive with what is in them.
func TestUnprivileged(t *testing.T) {
	const asked = "COSPLAY_TEST_UNPRIVILEGED"
	if dir := os.Getenv(asked); dir != "" {
		err := Copy(ctx(), End{Side: Files{}, Path: filepath.Join(dir, "from"), Name: "from"}, End{Side: Files{}, Path: filepath.Join(dir, "to"), Name: "to"}, Options{Count: io.Discard})
		if err == nil || !strings.HasPrefix(err.Error(), "from: open "+dir+"/from/z: permission denied; files are missing") {
			t.Errorf("%v", err)
		}
		return
	}
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "from", "closed", "deep"), 0o755), os.WriteFile(filepath.Join(dir, "from", "a"), []byte("x"), 0o644),
		os.WriteFile(filepath.Join(dir, "from", "z"), []byte("x"), 0),
		os.WriteFile(filepath.Join(dir, "from", "closed", "deep", "d"), []byte("x"), 0o644),
		os.Chmod(filepath.Join(dir, "from", "closed", "deep"), 0o500), os.Chmod(filepath.Join(dir, "from", "closed"), 0o555)); err != nil {
		t.Fatal(err)
	}
	program := os.Args[0]
	again := &exec.Cmd{Env: append(os.Environ(), asked+"="+dir)}
	if os.Geteuid() == 0 {
		again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		program = giveAway(t, dir)
	}
	again.Path, again.Args = program, []string{program, "-test.run", "^TestUnprivileged$"}
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", dir).Run() })
	if out, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := tree(t, filepath.Join(dir, "to")); got != "a=x closed closed/deep closed/deep/d=x z=" {
		t.Error(got)
	}
	for name, mode := range map[string]fs.FileMode{"closed": 0o555, "closed/deep": 0o500} {
		if info, err := os.Stat(filepath.Join(dir, "to", name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// giveAway gives what a test has made to another user, and returns the path of a test program that this user can run.
func giveAway(t *testing.T, dir string) (program string) {
	t.Helper()
	program = filepath.Join(dir, "program")
	text, err := os.ReadFile(os.Args[0])
	err = errors.Join(err, os.WriteFile(program, text, 0o755), filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, 65534, 65534))
	}))
	for at := dir; err == nil && at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		err = os.Chmod(at, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return program
}
