package disguise

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"cosplay/internal/disguise/verify"
	"cosplay/internal/durable"
)

// manifestFile is in a session's folder, where its programs cannot reach it. Its first line is the origin. Then it has a
// line for each file of the disguise and of the driver behind it, as it was when written: digest, size in bytes, time
// of the last change in ns, path.
const manifestFile = "seal"

// counted replaces the digest of the usage file, because all programs of the session write to it.
const (
	counted     = "-"
	countedMode = 0o666
)

type mark struct {
	digest     string // SHA-256 in hex, or counted
	size, time int64
	file       string // relative to the session's folder, or absolute for a file of the driver
}

// WriteManifest records the present state of files: those of a session's folder, by relative path, and the driver's, by the
// absolute path under which programs find them, NVML first. The usage files are in free, because their content may
// change. The manifest is written last and not synced: without a manifest, no damage is known. version is that of cosplay.
func WriteManifest(dir, version string, files, free, driver []string) error {
	var lines bytes.Buffer
	made, err := originNow(version, driver)
	if err != nil {
		return err
	}
	fmt.Fprintln(&lines, made)
	for _, file := range slices.Concat(files, free, driver) {
		m, err := markOf(dir, file)
		if err != nil {
			return fmt.Errorf("noting what the session's files are: %w", err)
		}
		if slices.Contains(free, file) {
			m.digest = counted
		}
		fmt.Fprintf(&lines, "%s %d %d %s\n", m.digest, m.size, m.time, lineOf(file))
	}
	if err := durable.ReplaceFile(filepath.Join(dir, manifestFile), lines.Bytes(), 0o600); err != nil {
		return fmt.Errorf("noting what the session's files are: %w", err)
	}
	return nil
}

// lineOf writes a file's name on one line, quoted if it contains a line break, which a project's folder may.
func lineOf(file string) string {
	if strings.ContainsAny(file, "\n\r") {
		return strconv.Quote(file)
	}
	return file
}

// fileOf is the reverse of lineOf. No unquoted name begins with a quote: relative ones are cosplay's, and those of
// the driver are absolute.
func fileOf(line string) string {
	if file, err := strconv.Unquote(line); err == nil && strings.HasPrefix(line, `"`) {
		return file
	}
	return line
}

// PythonPart lists the files of the Python part in a folder, by relative path.
func PythonPart(dir string) ([]string, error) {
	var all []string
	for _, pattern := range []string{"*.py", "*.json", "cosplay_cuda/*.py"} { // without Python's cache
		files, err := fs.Glob(os.DirFS(dir), path.Join(PythonDir, pattern))
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// within returns the path of a listed file. For a file of the driver it follows links, which lead to another file
// after an update.
func within(dir, file string) string {
	if !filepath.IsAbs(file) {
		return filepath.Join(dir, file)
	}
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		return resolved
	}
	return file
}

// Damage is a file that differs from its manifest.
type Damage struct {
	File string // relative to the session's folder, or absolute for a file of the driver
	How  string // one of the constants below
}

// The ways in which a file may differ.
const (
	isMissing    = "is missing"
	wasChanged   = "was changed"
	isUnreadable = "cannot be read"
	isClosed     = "cannot be written to by all"
	isDamaged    = "is damaged"
	isLarge      = "is larger than programs of the disguise make it"
)

func (d Damage) String() string { return d.File + " " + d.How }

// readManifest returns the origin and the marks of a folder's manifest.
func readManifest(f durable.Folder) (origin, iter.Seq[mark], error) {
	content, err := f.Read(manifestFile, make([]byte, 0, 4<<10))
	if err != nil {
		return origin{}, nil, fmt.Errorf("reading what the session's files were: %w", err)
	}
	text := string(content)
	first, _, _ := strings.Cut(text, "\n")
	made, _ := parseOrigin(first) // an old one has none
	return made, func(yield func(mark) bool) {
		for line := range strings.Lines(text) {
			if m, ok := parseMark(strings.TrimSuffix(line, "\n")); ok && !yield(m) {
				return
			}
		}
	}, nil
}

func parseMark(line string) (mark, bool) {
	digest, line, _ := strings.Cut(line, " ")
	size, line, _ := strings.Cut(line, " ")
	time, file, ok := strings.Cut(line, " ")
	m := mark{digest: digest, file: fileOf(file)}
	var err1, err2 error
	m.size, err1 = strconv.ParseInt(size, 10, 64)
	m.time, err2 = strconv.ParseInt(time, 10, 64)
	return m, ok && err1 == nil && err2 == nil
}

// compare returns how a file, of a session's folder or of the driver, differs from its mark; "" if it does not.
func (m mark) compare(dir string, thorough bool) string {
	path := within(dir, m.file)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return isMissing
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

// looks compares the type, size and time of a file in a folder with the manifest. For most files this makes reading the
// content unnecessary.
func (m mark) looks(in durable.Folder) bool {
	var now unix.Stat_t
	err := in.Stat(m.file, &now)
	if m.digest == counted {
		return err == nil && now.Size == m.size && now.Mode&countedMode == countedMode
	}
	return err == nil && now.Size == m.size && now.Mtim.Nano() == m.time
}

func markOf(dir, file string) (mark, error) {
	path := within(dir, file)
	info, err := os.Lstat(path)
	if err != nil {
		return mark{}, err
	}
	digest, err := digestOf(path, info)
	return mark{digest, info.Size(), info.ModTime().UnixNano(), file}, err
}

// digests caches digests of large files that many sessions share.
var digests sync.Map

// inode is a file as it was at a time.
type inode struct {
	device, number uint64
	size, time     int64
}

// size in bytes from which a digest is cached
const large = 16 << 10

// digestOf returns the digest of a file's content or, for a link, of its target path.
func digestOf(path string, info fs.FileInfo) (string, error) {
	key := inode{time: info.ModTime().UnixNano()}
	if of, ok := info.Sys().(*syscall.Stat_t); ok && info.Size() >= large {
		key.device, key.number, key.size = uint64(of.Dev), of.Ino, of.Size
		if known, ok := digests.Load(key); ok {
			return known.(string), nil
		}
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
	if key.size >= large {
		digests.Store(key, digest)
	}
	return digest, nil
}

// Altered lists, in words and by the check that covers them, the files of a session's disguise and of the driver
// behind it that differ from the manifest.
func Altered(dir string) (map[string]string, error) {
	damages, err := Examine(dir)
	if errors.Is(err, fs.ErrNotExist) {
		const words = "unknown: an older cosplay created the session, or the manifest of its folder was removed"
		return map[string]string{verify.FacadesCheck: words, verify.FiguresCheck: words, verify.DriverCheck: words}, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, d := range damages {
		check := checkOf(d.File)
		all[check] = strings.TrimPrefix(all[check]+"; "+d.String(), "; ")
	}
	if words := all[verify.DriverCheck]; words != "" {
		all[verify.DriverCheck] = "the driver is another one since: " + words
	}
	return all, nil
}

func checkOf(file string) string {
	switch {
	case filepath.IsAbs(file):
		return verify.DriverCheck
	case filepath.Base(file) == UsageFile:
		return verify.UsageCheck
	case strings.HasPrefix(file, LibraryDir+"/"), strings.HasPrefix(file, RealDir+"/"), strings.Contains(file, "/"+LibraryDir+"/"):
		return verify.FacadesCheck
	}
	return verify.FiguresCheck
}
