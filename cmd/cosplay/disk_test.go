package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/need"
)

// smallDisk is a project on a disk of 4 MiB.
func smallDisk(t *testing.T) project {
	t.Helper()
	need.Root(t, "mount")
	disk := t.TempDir()
	if out, err := bounded(t, "mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk).CombinedOutput(); err != nil {
		need.Lacking(t, "no small disk can be mounted: %v %s", err, out)
	}
	t.Cleanup(func() { _ = bounded(t, "umount", disk).Run() })
	if err := os.WriteFile(filepath.Join(disk, "fleet.hcl"), []byte(fleet), 0o644); err != nil {
		t.Fatal(err)
	}
	p := project{t: t, dir: disk}
	p.run("plan")
	return p
}

// saysFull reports whether a command says what it lacks.
func saysFull(out string) bool {
	said := oneLine(out)
	return strings.Contains(said, "no space left") || strings.Contains(said, "full") || strings.Contains(said, "room")
}

// TestFullDiskAtEveryWrite: the disk becomes full right before each of the writes in
// turn. The command reports it, nothing is lost, and with room again the next apply
// converges, or the next destroy leaves the host as it was.
func TestFullDiskAtEveryWrite(t *testing.T) {
	t.Parallel()
	p := smallDisk(t)
	before := p.hardware()
	for _, verb := range []string{"apply", "destroy"} {
		args := []string{verb, "--auto-approve", "--parallelism", "1"}
		ready := func() {
			p.run("destroy", "--auto-approve")
			if verb == "destroy" {
				p.run("apply", "--auto-approve")
			}
		}
		ready()
		listed := p.moments(args...)
		tried, reported := 0, 0
		for _, n := range chosen(len(listed), 9) {
			var wrong []string
			for _, finish := range []bool{true, false} {
				ready()
				out, err := p.with(fullAt, n, args...)
				if tried++; err != nil {
					reported++
					if !saysFull(out) {
						wrong = append(wrong, "it does not say that the disk is full:\n"+out)
					}
				}
				if err := os.Remove(filepath.Join(p.dir, "filler")); err != nil {
					t.Fatal(err)
				}
				if finish {
					wrong = append(wrong, p.converges(7)...)
				}
				wrong = append(wrong, p.destroysAll(before)...)
			}
			if len(wrong) > 0 {
				t.Errorf("%s, full at moment %d, %s:\n%s", verb, n, inShort(listed[n-1]), strings.Join(wrong, "\n"))
			}
		}
		t.Logf("%s: full at %d of %d moments, reported %d times of %d", verb, tried/2, len(listed), reported, tried)
		if reported < tried/5 { // what destroy removes makes room
			t.Errorf("%s: the disk was full %d times of %d: the test proves too little", verb, reported, tried)
		}
		p.run("destroy", "--auto-approve")
	}
}

// TestFullDisk: with little room on a small disk, apply and destroy succeed or report
// that it is full; with room again they converge, and nothing is lost. Little room is
// enough for destroy.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	p := smallDisk(t)
	before := p.hardware()
	reported := 0
	for _, room := range []int{0, 4, 8, 16, 32, 64, 128, 256, 512} {
		for _, verb := range []string{"apply", "destroy"} {
			full := p.fill(room)
			out, err := p.command(verb, "--auto-approve").CombinedOutput()
			if err != nil {
				reported++
				if verb == "destroy" && room >= 256 {
					t.Errorf("destroy refuses to work with %d KiB:\n%s", room, out)
				}
				if !saysFull(string(out)) {
					t.Errorf("%s with %d KiB: it does not say that the disk is full:\n%s", verb, room, out)
				}
			}
			if err := os.Remove(full); err != nil {
				t.Fatal(err)
			}
			p.run(verb, "--auto-approve")
		}
		if !bytes.Equal(p.hardware(), before) {
			t.Fatalf("with %d KiB: the host is not as it was", room)
		}
	}
	if reported < 5 {
		t.Errorf("the disk was full %d times: the test proves too little", reported)
	}
	t.Logf("the disk was full %d times", reported)
}

// fill leaves so many KiB of the disk free.
func (p project) fill(room int) string {
	p.t.Helper()
	path := filepath.Join(p.dir, "filler")
	script := fmt.Sprintf(`free=$(df -k --output=avail %q | tail -1); [ "$free" -le %[2]d ] || dd if=/dev/zero of=%[3]q bs=1k count=$((free - %[2]d)) status=none; touch %[3]q || : >%[3]q`, p.dir, room, path)
	if out, err := bounded(p.t, "sh", "-c", script).CombinedOutput(); err != nil {
		p.t.Fatalf("%v %s", err, out)
	}
	return path
}
