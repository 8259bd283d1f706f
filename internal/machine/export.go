package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"cosplay/internal/durable"
	"cosplay/internal/hostfile"
	"cosplay/internal/resource"
)

// ExportError says what is wrong with the file of an exported host.
type ExportError struct {
	Path string
	Why  string // to follow the path
}

func (e *ExportError) Error() string { return e.Path + " " + e.Why }

// Summary is the first line of a diagnostic.
func (e *ExportError) Summary() string { return "cannot simulate the host of " + e.Path }

// Detail is what follows it.
func (e *ExportError) Detail() string { return e.Error() + "." }

// readExport reads the file of an exported host, whose path is relative to a folder, with a digest of its content.
func readExport(dir, path string) (host resource.Host, digest string, err error) {
	full := path
	if !filepath.IsAbs(path) {
		full = filepath.Join(dir, path)
	}
	data, err := durable.ReadRecord(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = &ExportError{path, fmt.Sprintf("does not exist. Fix: run cosplay host export -o %s on the machine that has the GPUs, and copy the file to %s", filepath.Base(path), filepath.Dir(full))}
	case err != nil:
		err = &ExportError{path, "cannot be read: " + err.Error()}
	default:
		if host, err = hostfile.Decode(data); err != nil {
			err = &ExportError{path, err.Error()}
		}
	}
	sum := sha256.Sum256(data)
	return host, hex.EncodeToString(sum[:8]), err
}
