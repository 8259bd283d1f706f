package ledger

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"cosplay/internal/need"
	"cosplay/internal/resource"
)

// TestFullDisk: on a disk without any room, no project acquires a GPU, and those
// that have one give it back.
func TestFullDisk(t *testing.T) {
	need.Root(t, "mount")
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", disk).CombinedOutput(); err != nil {
		need.Lacking(t, "no small disk: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", disk).Run() })
	h, book := newHardware(), Book{Dir: disk}
	look := func() (*Found, error) { return h.found(), nil }
	entry := func(gpu string) Entry { return Entry{Book: book, GPU: gpu, Holder: user("a", 1234), BootID: h.boot} }
	for i := range 4 {
		if err := entry(fmt.Sprint("GPU-", i)).Take(Take{}, look); err != nil {
			t.Fatal(err)
		}
	}
	fill, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = fill.Write(make([]byte, 4096))
	}
	if fill.Close(); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	for range 3 {
		if err := entry("GPU-9").Take(Take{}, look); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("acquired: %v", err)
		}
		if err := errors.Join(entry("GPU-1").Making(blank, Wanted{Slice: resource.Slice{GPU: "GPU-1", Profile: "1g.18gb", Size: 1}})...); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a slice is noted: %v", err)
		}
	}
	for i := range 4 {
		e, none := entry(fmt.Sprint("GPU-", i)), 0
		for n, err := range []error{e.Leave(), e.Setting(resource.Settings{}.With(resource.SMClock, none), look), e.Settled(resource.Settings{}.With(resource.SMClock, none)), e.Release(Parting{}, look)} {
			if err != nil {
				t.Errorf("GPU %d, step %d: %v", i, n, err)
			}
		}
	}
	if all, err := book.Read(); err != nil || len(all) > 0 {
		t.Errorf("held: %+v, %v", all, err)
	}
}
