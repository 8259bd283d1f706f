package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"cosplay/internal/need"
)

func TestLockIsExclusiveAndSaysWhoHasIt(t *testing.T) {
	book := filepath.Join(t.TempDir(), "book")
	path := book + ".lock"
	first, err := Acquire(context.Background(), path, "apply", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = Acquire(ctx, path, "destroy", nil)
	var held *HeldError
	if !errors.As(err, &held) || held.By == nil || held.By.PID != os.Getpid() || !strings.Contains(err.Error(), book+" is locked by") || !strings.Contains(err.Error(), "cosplay apply") {
		t.Fatalf("got %v", err)
	}
	reported := 0
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	if _, err := Acquire(ctx, path, "destroy", func(by *Holder) {
		reported++
		time.AfterFunc(5*pollInterval, cancel) // long enough that a second report would be noticed
		if by == nil || by.Command != "apply" {
			t.Errorf("waiting for %v", by)
		}
	}); err == nil || reported != 1 {
		t.Fatalf("reported %d times, %v", reported, err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := Acquire(context.Background(), path, "destroy", nil)
	if err != nil {
		t.Fatal(err)
	}
	second.Release()
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Acquire(context.Background(), path, "apply", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		second, err := Acquire(context.Background(), path, "apply", nil)
		if err == nil {
			second.Release()
		}
		got <- err
	}()
	time.Sleep(2 * pollInterval)
	first.Release()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestInspect checks that the kernel decides whether a lock is held, and that the note of a dead holder is reported as stale.
func TestInspect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if seen, err := Inspect(path); err != nil || seen.Held || seen.By != nil {
		t.Errorf("without a file: %+v, %v", seen, err)
	}
	lock, err := Acquire(context.Background(), path, "apply", nil)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := Inspect(path)
	if err != nil || !seen.Held || seen.By == nil || seen.By.Command != "apply" {
		t.Errorf("held: %+v, %v", seen, err)
	}
	lock.file.Close() // without Release, as when the process dies
	seen, err = Inspect(path)
	if err != nil || seen.Held || seen.By == nil || seen.By.PID != os.Getpid() {
		t.Errorf("left by a dead one: %+v, %v", seen, err)
	}
	next, err := Acquire(context.Background(), path, "destroy", nil)
	if err != nil {
		t.Fatal(err)
	}
	next.Release()
	if seen, err := Inspect(path); err != nil || seen.Held || seen.By != nil {
		t.Errorf("let go: %+v, %v", seen, err)
	}
}

// moving reports whether this process has announced a change in a folder.
func moving(t *testing.T, dir string) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := Quiet(ctx, dir)
	var at *MovingError
	if err != nil && (!errors.As(err, &at) || !slices.Equal(at.PIDs, []string{fmt.Sprint(os.Getpid())})) {
		t.Fatal(err)
	}
	return err != nil
}

// TestAnnounce checks that a change is visible while it is in progress, whatever locks other processes hold on
// leftovers of an earlier change.
func TestAnnounce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "moving")
	if moving(t, dir) {
		t.Error("moving without a folder")
	}
	done, err := Announce(dir)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(announced(t, dir)) // a process that keeps a lock on it
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if !moving(t, dir) {
		t.Error("a change that no process sees")
	}
	done()
	if moving(t, dir) {
		t.Error("a change that is over")
	}
	if err := unix.Flock(int(reader.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if done, err = Announce(dir); err != nil || !moving(t, dir) {
		t.Fatalf("with a stranger's lock on the last one: %v", err)
	}
	waited := make(chan error)
	go func() { waited <- Quiet(context.Background(), dir) }()
	select {
	case <-waited:
		t.Error("it did not wait")
	case <-time.After(3 * pollInterval):
	}
	done()
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// announced returns the path of the only announcement in a folder.
func announced(t *testing.T, dir string) string {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	return filepath.Join(dir, names[0].Name())
}

// TestAnnounceSweeps checks that leftovers of killed processes do not count as changes and that the next announcement
// removes them. The folder of a simulated host is in a project's folder, whose name can contain any character.
func TestAnnounceSweeps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "exp[1]", "moving")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	left, unnamed := filepath.Join(dir, "4711"), filepath.Join(dir, ".123")
	for _, path := range []string{left, unnamed} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(unnamed, time.Time{}, time.Now().Add(-2*nameless)); err != nil {
		t.Fatal(err)
	}
	if moving(t, dir) {
		t.Error("a dead one's change")
	}
	done, err := Announce(dir)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

// TestAnnounceToOtherUsers checks that a process of another user, which cannot open an announcement, sees a change
// while it is in progress, and is not blocked by leftovers of a killed process, even if another process has got that
// process's number.
func TestAnnounceToOtherUsers(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	openToAll(dir)
	dir = filepath.Join(dir, "moving")
	sees := func(want bool, when string) {
		t.Helper()
		var out []byte
		var err error
		asOtherUser(t, func(c *exec.Cmd) {
			c.Env = append(os.Environ(), lookInto+"="+dir)
			out, err = c.CombinedOutput()
		})
		if strings.Contains(string(out), "MOVING") != want || !strings.Contains(string(out), "LOCKS 0") || err != nil {
			t.Errorf("%s: want %v, got %v\n%s", when, want, err, out)
		}
	}
	done, err := Announce(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(announced(t, dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	sees(true, "while it goes on")
	done()
	sees(false, "when it is over")
	for _, left := range []string{"1-1", fmt.Sprint(os.Getpid(), "-1"), "0-1", "rubbish"} {
		if err := os.WriteFile(filepath.Join(dir, left), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sees(false, "left by killed processes")
	if done, err = Announce(dir); err != nil {
		t.Fatal(err)
	}
	defer done()
	announced(t, dir) // what was left is swept
}

// TestAnnounceOfAnEarlierVersion checks the announcements of an earlier version. All users can open them, so a lock
// on one proves nothing once its process has ended.
func TestAnnounceOfAnEarlierVersion(t *testing.T) {
	dir := t.TempDir()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dir, fmt.Sprint(ended.Process.Pid))
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(old)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := unix.Flock(int(reader.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if moving(t, dir) {
		t.Error("a lock that an onlooker holds keeps an ended change alive")
	}
	done, err := Announce(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	announced(t, dir)
}

// TestLockOnAFullDisk checks that a lock can be taken and released even if there is no room for the holder's note.
func TestLockOnAFullDisk(t *testing.T) {
	need.Root(t, "mount")
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk).CombinedOutput(); err != nil {
		need.Lacking(t, "no small disk: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", disk).Run() })
	path := filepath.Join(disk, "lock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 1<<17), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*pollInterval)
		lock, err := Acquire(ctx, path, "destroy", nil)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}
}

type entry struct{ N int }

func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if all, err := ReadJournal[entry](path); err != nil || all != nil {
		t.Fatalf("no journal: %v, %v", all, err)
	}
	j, err := CreateJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := j.Write(entry{n}); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	if _, err := CreateJournal(path); err == nil {
		t.Error("a second journal was started over the first")
	}

	// A journal that is cut at any byte gives its complete lines and drops the incomplete last one.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := ReadJournal[entry](path)
		if err != nil || len(all) != strings.Count(string(whole[:n]), "\n") {
			t.Fatalf("cut at %d: %v, %v", n, all, err)
		}
	}

	for content, want := range map[string]string{
		"{\"N\":1}\nrubbish\n{\"N\":2}\n": "line 2",
		"{\"N\":1}\n\x00\x00\x00\n":       "", // possible content after a power failure
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := ReadJournal[entry](path)
		if want == "" && (err != nil || len(all) != 1) {
			t.Errorf("%q: %v, %v", content, all, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestWriteFileReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", "second, longer", ""} {
		if err := WriteFile(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		now, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(now) != content || info.Mode().Perm() != 0o640 {
			t.Errorf("%q, mode %v, %v", now, info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	for range 2 {
		if err := Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// TestSweep checks that Sweep removes temporary files of killed writers and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	var left []string
	for _, of := range []string{path, path + ".backup"} {
		pending, err := renameio.NewPendingFile(of, renameio.WithTempDir(dir)) // without the rename that completes it
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, pending.Name())
		pending.Close()
	}
	fresh, err := os.CreateTemp(dir, ".state.json.*") // as ReplaceFile does
	if err != nil {
		t.Fatal(err)
	}
	fresh.Close()
	left = append(left, fresh.Name())
	stay := []string{"state.json", "state.json.backup", "state.json.journal", ".state.json", ".state.jsonx1", ".other.json123", "state.json123", ".state.json1.txt"}
	for _, name := range stay {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(path)
	for _, gone := range left {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is left", gone)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != len(stay) {
		t.Errorf("there are %v, not %v", all, stay)
	}
	Sweep(filepath.Join(dir, "nowhere", "state.json"))
}

// TestReadFileOfAnotherUser checks that a pipe, a device, a folder and a huge file give an error without blocking.
func TestReadFileOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	pipe, huge, state := filepath.Join(dir, "pipe"), filepath.Join(dir, "huge"), filepath.Join(dir, "state")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(unix.Mkfifo(pipe, 0o644))
	check(os.WriteFile(huge, nil, 0o644))
	check(os.Truncate(huge, mostRead+1))
	check(os.WriteFile(state, []byte("{}"), 0o644))
	link := filepath.Join(dir, "link")
	check(os.Symlink(state, link))
	for _, path := range []string{pipe, huge, dir, "/dev/zero"} {
		if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "not a regular file") && !strings.Contains(err.Error(), "exceeds 256 MiB") {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := Inspect(path); err == nil {
			t.Errorf("%s is taken as a lock", path)
		}
	}
	if data, err := ReadFile(link); err != nil || string(data) != "{}" {
		t.Errorf("%q, %v", data, err)
	}
}
