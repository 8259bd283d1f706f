package disguise

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cosplay/internal/durable"
)

// sealFile is in a session's folder, out of its programs' reach: its origin in the
// first line, then what the files of the disguise were when they were written, and
// the driver's behind them, a line each: digest, size in bytes, time of the last
// change in ns, path.
const sealFile = "seal"

// counted stands for the digest of the file of what is used, which all programs of
// the session write to.
const (
	counted     = "-"
	countedMode = 0o666
)

// mark is what is known of a file.
type mark struct {
	digest     string // SHA-256 in hex; counted
	size, time int64
}

// sealedMark is what a seal says of a file.
type sealedMark struct {
	mark
	file string // in the session's folder, or the driver's by its absolute path
}

// Seal notes what files are now: those of a session's folder, by their paths in
// it, and the driver's, by the absolute ones under which it is found, NVML first.
// Those of what is used are in free: their content may change. It is written after all
// of them and not synced: without a seal nothing is known to be broken. version is
// that of cosplay.
func Seal(dir, version string, files, free, driver []string) error {
	var lines bytes.Buffer
	made, err := originNow(version, driver)
	if err != nil {
		return err
	}
	fmt.Fprintln(&lines, made)
	for _, file := range slices.Concat(files, free, driver) {
		m, err := markOf(within(dir, file))
		if err != nil {
			return fmt.Errorf("noting what the session's files are: %w", err)
		}
		if slices.Contains(free, file) {
			m.digest = counted
		}
		fmt.Fprintf(&lines, "%s %d %d %s\n", m.digest, m.size, m.time, lineOf(file))
	}
	if err := durable.ReplaceFile(filepath.Join(dir, sealFile), lines.Bytes(), 0o600); err != nil {
		return fmt.Errorf("noting what the session's files are: %w", err)
	}
	return nil
}

// lineOf is a file's name on one line: in quotes where it has an end of line itself,
// as the folder of a project may.
func lineOf(file string) string {
	if strings.ContainsAny(file, "\n\r") {
		return strconv.Quote(file)
	}
	return file
}

// fileOf is the name that lineOf was given. None begins with a quote: those of the
// driver are absolute.
func fileOf(line string) string {
	if file, err := strconv.Unquote(line); err == nil && strings.HasPrefix(line, `"`) {
		return file
	}
	return line
}

// PythonPart lists the files of Python's part in a folder, by their paths in it.
func PythonPart(dir string) ([]string, error) {
	var all []string
	for _, kind := range []string{"*.py", "*.json"} { // and not what Python keeps of them
		files, err := fs.Glob(os.DirFS(dir), path.Join(PythonDir, kind))
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// within is where a file is that is sealed; one of the driver's is what its name
// leads to, which is another file after an update.
func within(dir, file string) string {
	if !filepath.IsAbs(file) {
		return filepath.Join(dir, file)
	}
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		return resolved
	}
	return file
}

// Damage is a file that is not as it was sealed.
type Damage struct {
	File string // in the session's folder, or the driver's by its absolute path
	How  string // one of those below
}

// How a file may differ.
const (
	isGone       = "is gone"
	wasChanged   = "was changed"
	isUnreadable = "cannot be read"
	isClosed     = "cannot be written to by all"
	isDamaged    = "is damaged"
)

func (d Damage) String() string { return d.File + " " + d.How }

// Examine tells what is damaged of a session's files and of the driver's behind
// them, by their content. fs.ErrNotExist says that there is no seal.
func Examine(dir string) ([]Damage, error) {
	folder, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	_, marks, err := readSeal(folder)
	if err != nil {
		return nil, err
	}
	var all []Damage
	for _, m := range marks {
		how := m.compare(within(dir, m.file), true)
		if how == "" && m.digest == counted && !sound(within(dir, m.file)) {
			how = isDamaged
		}
		if how != "" {
			all = append(all, Damage{m.file, how})
		}
	}
	return all, nil
}

// sound tells whether programs would count in a file: else each goes by itself.
func sound(usage string) bool {
	_, err := ReadUsage(usage)
	return err == nil
}

func readSeal(f Folder) (origin, []sealedMark, error) {
	content, err := f.Read(sealFile, make([]byte, 0, 4<<10))
	if err != nil {
		return origin{}, nil, fmt.Errorf("reading what the session's files were: %w", err)
	}
	var (
		made origin
		seal = string(content)
		all  = make([]sealedMark, 0, strings.Count(seal, "\n"))
	)
	for line := range strings.Lines(seal) {
		line = strings.TrimSuffix(line, "\n")
		if m, ok := parseMark(line); ok {
			all = append(all, m)
		} else if o, ok := parseOrigin(line); ok {
			made = o
		}
	}
	return made, all, nil
}

func parseMark(line string) (sealedMark, bool) {
	digest, line, _ := strings.Cut(line, " ")
	size, line, _ := strings.Cut(line, " ")
	time, file, ok := strings.Cut(line, " ")
	m := sealedMark{mark{digest: digest}, fileOf(file)}
	var err1, err2 error
	m.size, err1 = strconv.ParseInt(size, 10, 64)
	m.time, err2 = strconv.ParseInt(time, 10, 64)
	return m, ok && err1 == nil && err2 == nil
}

// compare says how a file differs from what it was; "" is not at all.
func (m mark) compare(path string, thorough bool) string {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return isGone
	case err != nil:
		return isUnreadable
	case info.Size() != m.size:
		return wasChanged
	case m.digest == counted && info.Mode()&countedMode != countedMode:
		return isClosed
	case m.digest == counted, !thorough && info.ModTime().UnixNano() == m.time:
		return ""
	}
	digest, err := digestOf(path, info)
	switch {
	case err != nil:
		return isUnreadable
	case digest != m.digest:
		return wasChanged
	}
	return ""
}

func markOf(path string) (mark, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return mark{}, err
	}
	digest, err := digestOf(path, info)
	return mark{digest, info.Size(), info.ModTime().UnixNano()}, err
}

// digests are of large files that many sessions share; the key is path and time.
var digests sync.Map

// large is where a digest is worth to be remembered, bytes.
const large = 1 << 20

// digestOf is that of a file's content; of a link, of where it leads.
func digestOf(path string, info fs.FileInfo) (string, error) {
	key := fmt.Sprint(path, info.Size(), info.ModTime().UnixNano())
	if known, ok := digests.Load(key); ok {
		return known.(string), nil
	}
	sum := sha256.New()
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		sum.Write([]byte(to))
		return hex.EncodeToString(sum.Sum(nil)), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	if info.Size() >= large {
		digests.Store(key, digest)
	}
	return digest, nil
}
