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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cosplay/internal/durable"
)

// sealFile is in a session's folder, out of its programs' reach: what the files
// of the disguise were when they were written, and the driver's behind them, a
// line each: digest, size in bytes, time of the last change in ns, path.
const sealFile = "seal"

// counted stands for the digest of a file whose content is its users' affair.
const counted = "-"

// mark is what is known of a file.
type mark struct {
	digest     string // SHA-256 in hex; counted
	size, time int64
}

// Seal notes what files are now: those of a session's folder, by their paths in
// it, and the driver's, by absolute ones. What of the folder's is in free may
// change its content. It is written after all of them and not synced: without a
// seal nothing is known to be broken.
func Seal(dir string, files, free, driver []string) error {
	var lines bytes.Buffer
	for _, file := range slices.Concat(files, free, driver) {
		m, err := markOf(within(dir, file))
		if err != nil {
			return fmt.Errorf("noting what the session's files are: %w", err)
		}
		if slices.Contains(free, file) {
			m.digest = counted
		}
		fmt.Fprintf(&lines, "%s %d %d %s\n", m.digest, m.size, m.time, file)
	}
	if err := durable.ReplaceFile(filepath.Join(dir, sealFile), lines.Bytes(), 0o600); err != nil {
		return fmt.Errorf("noting what the session's files are: %w", err)
	}
	return nil
}

// PythonPart lists the files of Python's part in a folder, by their paths in it.
func PythonPart(dir string) ([]string, error) {
	var all []string
	for _, kind := range []string{"*.py", "*.json"} { // and not what Python keeps of them
		files, err := filepath.Glob(filepath.Join(dir, PythonDir, kind))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			all = append(all, filepath.Join(PythonDir, filepath.Base(file)))
		}
	}
	return all, nil
}

func within(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// Damage is a file that is not as it was sealed.
type Damage struct {
	File string // in the session's folder, or the driver's by its absolute path
	How  string // "is gone", "was changed"
}

func (d Damage) String() string { return d.File + " " + d.How }

// Glance tells what of a session's own files is damaged, in words; "" is nothing.
// It costs no more than a look at each: the content is read only of what has
// another size or time.
func Glance(dir string) (string, error) {
	all, err := examine(dir, false)
	return inWords(all), err
}

func inWords(all []Damage) string {
	var words []string
	for _, d := range all {
		words = append(words, d.String())
	}
	return strings.Join(words, ", ")
}

// Examine tells what is damaged of a session's files and of the driver's behind
// them, by their content. fs.ErrNotExist says that there is no seal.
func Examine(dir string) ([]Damage, error) { return examine(dir, true) }

func examine(dir string, thorough bool) ([]Damage, error) {
	seal, err := os.ReadFile(filepath.Join(dir, sealFile))
	if !thorough && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what the session's files were: %w", err)
	}
	var all []Damage
	for line := range strings.Lines(string(seal)) {
		sealed, file, ok := parseMark(strings.TrimSuffix(line, "\n"))
		if !ok || (filepath.IsAbs(file) && !thorough) {
			continue
		}
		if how := sealed.compare(within(dir, file), thorough); how != "" {
			all = append(all, Damage{file, how})
		}
	}
	return all, nil
}

func parseMark(line string) (m mark, file string, ok bool) {
	fields := strings.SplitN(line, " ", 4)
	if len(fields) != 4 {
		return m, "", false
	}
	size, err1 := strconv.ParseInt(fields[1], 10, 64)
	time, err2 := strconv.ParseInt(fields[2], 10, 64)
	return mark{fields[0], size, time}, fields[3], err1 == nil && err2 == nil
}

// compare says how a file differs from what it was; "" is not at all.
func (m mark) compare(path string, thorough bool) string {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is gone"
	case err != nil:
		return "cannot be read"
	case info.Size() != m.size:
		return "was changed"
	case m.digest == counted, !thorough && info.ModTime().UnixNano() == m.time:
		return ""
	}
	digest, err := digestOf(path, info)
	switch {
	case err != nil:
		return "cannot be read"
	case digest != m.digest:
		return "was changed"
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
