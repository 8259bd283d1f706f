package disguise

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"cosplay/driver"
	"cosplay/internal/durable"
	"cosplay/internal/resource"
	"cosplay/internal/shared"
)

// Stamper makes stamps of session folders. A stamp stays equal while nothing has changed that Inspector.Look examines in
// the folder, and costs a third of its time. A different stamp proves nothing: a copy of a sound folder has one.
// Use a Stamper for one snapshot only. It is not safe for concurrent use, and the caller closes it.
//
// The names in a folder lead to the same files as before while the folder has the same inode and ctime, which no program
// can set. So what sessions share is inspected once for all of them. The usage file is written by the session's
// programs: of it only size and mode count. A change does not show in the tick of the file system's clock (4 ms) in which
// the stamp was made.
type Stamper struct {
	base    durable.Folder  // of the session folders
	ground  []byte          // what all stamps depend on
	facades []string        // paths in a session's folder
	shared  []byte          // the facades of the last session that was looked at, which most sessions have
	own     []string        // paths in a session's folder that it shares with no other
	counts  bool            // sessions have usage files
	intact  map[string]bool // trees, by name
	buffer  []byte
}

// NewStamper makes stamps of the folders in base. nvml and cuda are as for Install, and own are files in a session's
// folder beside its figures.
func NewStamper(base, nvml, cuda string, own ...string) (*Stamper, error) {
	digest, err := facadesDigest()
	if err != nil {
		return nil, err
	}
	s := &Stamper{ground: []byte(digest), counts: cuda != "", intact: map[string]bool{}}
	for _, part := range append([]string{".", LibraryDir, FiguresFile}, own...) {
		s.own = append(s.own, "/"+part)
	}
	for _, behind := range []struct{ library, path string }{{driver.NVML, nvml}, {driver.CUDA, cuda}} {
		if behind.path == "" {
			continue
		}
		var now unix.Stat_t
		if err := unix.Stat(behind.path, &now); err != nil {
			return nil, fmt.Errorf("inspecting the %s: %w", facades[behind.library].words, err)
		}
		s.ground = content(append(s.ground, behind.path...), &now)
		s.facades = append(s.facades, "/"+LibraryDir+"/"+behind.library)
	}
	s.base, err = durable.OpenFolder(base)
	return s, err
}

// Close closes the folder of the session folders.
func (s *Stamper) Close() { s.base.Close() }

// content appends what identifies the content of a file that has many names: each new name changes its ctime.
func content(to []byte, of *unix.Stat_t) []byte {
	for _, n := range []uint64{of.Ino, uint64(of.Size), uint64(of.Mtim.Nano())} {
		to = binary.AppendUvarint(to, n)
	}
	return to
}

// Stamp makes the stamp of a session's folder, directly after it was written.
func (s *Stamper) Stamp(session string) (string, error) {
	if err := s.share(session); err != nil {
		return "", err
	}
	var usage unix.Stat_t
	if s.counts {
		if err := s.base.Stat(session+"/"+UsageFile, &usage); err != nil {
			return "", err
		}
	}
	stamp, err := s.sum(session, &usage)
	if err != nil {
		return "", err
	}
	for _, tree := range []string{RealDir, PythonDir} {
		to, err := os.Readlink(filepath.Join(s.base.Dir, session, tree))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		stamp += " " + filepath.Base(to)
	}
	return stamp, nil
}

// Same reports whether a session's folder still has this stamp, and returns the use that its programs have counted.
func (s *Stamper) Same(session, stamp string) (same bool, use *resource.Use) {
	sum, trees, _ := strings.Cut(stamp, " ")
	for tree := range strings.FieldsSeq(trees) {
		if !s.isIntact(tree) {
			return false, nil
		}
	}
	if !s.counts {
		return s.sums(session, sum, &unix.Stat_t{}), nil
	}
	fd, err := s.base.Open(session+"/"+UsageFile, 0)
	if err != nil {
		return false, nil
	}
	defer func() { _ = unix.Close(fd) }()
	var usage unix.Stat_t
	if unix.Fstat(fd, &usage) != nil || !s.sums(session, sum, &usage) {
		return false, nil
	}
	return countsIn(fd, usage.Size)
}

// sums reports whether a session has a sum with the facades of the last session, or otherwise with its own ones.
func (s *Stamper) sums(session, want string, usage *unix.Stat_t) bool {
	if now, err := s.sum(session, usage); err == nil && now == want {
		return true
	}
	if s.share(session) != nil {
		return false
	}
	now, err := s.sum(session, usage)
	return err == nil && now == want
}

// share reads the facades of a session.
func (s *Stamper) share(session string) error {
	var now unix.Stat_t
	s.shared = s.shared[:0]
	for _, facade := range s.facades {
		if err := s.base.Stat(session+facade, &now); err != nil {
			return err
		}
		s.shared = content(s.shared, &now)
	}
	return nil
}

// sum identifies what a session has besides trees.
func (s *Stamper) sum(session string, usage *unix.Stat_t) (string, error) {
	var now unix.Stat_t
	all := append(append(s.buffer[:0], s.ground...), s.shared...)
	for _, part := range s.own {
		if err := s.base.Stat(session+part, &now); err != nil {
			return "", err
		}
		all = binary.AppendUvarint(binary.AppendUvarint(content(all, &now), uint64(now.Ctim.Nano())), uint64(now.Mode))
	}
	all = binary.AppendUvarint(binary.AppendUvarint(all, uint64(usage.Size)), uint64(usage.Mode))
	s.buffer = all
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:8]), nil
}

// isIntact reports whether a tree in the shared folder is as it was listed.
func (s *Stamper) isIntact(tree string) bool {
	intact, known := s.intact[tree]
	if !known {
		var i Inspector
		intact = len(i.inTree(filepath.Join(s.base.Dir, shared.Dir), mark{file: tree})) == 0
		s.intact[tree] = intact
	}
	return intact
}
