// Package runtime has what all runtimes share: their interface and their registry.
package runtime

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
)

// Streams are what a command in a session reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// CheckSession refuses an ID that is not the name of a single folder: cosplay removes a session's files by its ID.
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

// Interior is what the programs of a session should find, and the paths of its disguise.
type Interior struct {
	OwnRoot   bool              // the programs see another root file system than the host's, with a user of its own
	Env       map[string]string // what the session sets for every program
	Who       string            // path of cosplay-who, as the session sees it
	Probe     string            // path of cosplay-probe, as the session sees it
	UsageFile string            // path on the host of the usage file; "" without
	PythonIn  string            // folder of the disguise's Python part, as the session sees it; "" without
}

// Reachable is the address at which this machine reaches a server that listens on bind.
func Reachable(bind string) string {
	ip, err := netip.ParseAddr(bind)
	switch {
	case bind == "":
		return "127.0.0.1"
	case err != nil || !ip.IsUnspecified():
		return bind
	case ip.Is6():
		return net.IPv6loopback.String()
	}
	return "127.0.0.1"
}
