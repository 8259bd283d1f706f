// Package runtime is what the places where sessions run have in common.
package runtime

import (
	"fmt"
	"io"
	"path/filepath"
)

// Streams are what a command in a session reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// CheckSession refuses an ID that names no single folder: what a session has is
// removed by its ID.
func CheckSession(id string) error {
	if id == "." || id != filepath.Base(id) || !filepath.IsLocal(id) {
		return fmt.Errorf("%q is not the id of a session", id)
	}
	return nil
}

// Exit codes of a command that did not run, as shells have them.
const (
	CannotRun = 126
	NotFound  = 127
)

// Interior is what the programs of a session are to find, and where the files of
// its disguise lie.
type Interior struct {
	Env       map[string]string // what the session sets for every program
	Who       string            // path of cosplay-who, as the session sees it
	Probe     string            // path of cosplay-probe, as the session sees it
	UsageFile string            // path on the host of what its programs count in; "" where they do not
	PythonIn  string            // folder of the disguise's Python part, as the session sees it; "" without
}
