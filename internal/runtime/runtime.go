// Package runtime has what all runtimes share: their interface and their registry.
package runtime

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"cosplay/internal/durable"
	"cosplay/internal/preflight"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Streams are what a command in a session reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Program is a program to run in a session. Each field but Argv has the session's own value where it is empty.
type Program struct {
	Argv []string
	Env  map[string]string // overrides the session's
	User string            // NAME or UID, with :GROUP or :GID
	Dir  string            // where it is relative, below the workspace

	PrivateMounts bool // the session's libraries are at the system's paths, as they always are in a container
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

// VacantError is the error of Exec where a session has no place for programs now, and nothing is wrong with it.
type VacantError struct{ prose.Advice }

// KillAfter is how long a command may take to end after it was asked to, before it is killed.
const KillAfter = 10 * time.Second

// Interior is what the programs of a session should find, and the paths of its disguise.
type Interior struct {
	OwnRoot   bool              // the programs see another root file system than the host's, with its own user
	Env       map[string]string // what the session sets for every program
	Who       string            // path of cosplay-who, as the session sees it
	Probe     string            // path of cosplay-probe, as the session sees it
	UsageFile string            // path on the host of the usage file; "" without
	Folder    string            // of the session on the host, which programs in a container do not see
	User      *resource.User    // as whom the programs run on another machine; nil is who runs cosplay, or as the container says
	PythonIn  string            // folder of the disguise's Python part, as the session sees it; "" without
}

// Reachable is the address at which this machine reaches a server that listens on bind.
func Reachable(bind string) string {
	ip, err := netip.ParseAddr(bind)
	switch {
	case err == nil && ip.IsUnspecified() && ip.Is6():
		return net.IPv6loopback.String()
	case bind == "" || err == nil && ip.IsUnspecified():
		return "127.0.0.1"
	}
	return bind
}

// CheckWorkspace checks whether the workspace of a session exists or can be created.
func CheckWorkspace(dir string) []preflight.Problem {
	err := durable.CanWriteIn(dir)
	if err == nil {
		return nil
	}
	if info, there := os.Stat(dir); there == nil && info.IsDir() {
		return []preflight.Problem{{
			Attribute: "workspace", Warning: true,
			Summary: fmt.Sprintf("you cannot write into the workspace %s", dir),
			Advice: prose.Advice{What: prose.Stop(err.Error()) + " Sessions run as your user, so they cannot write there either",
				Fix: "change its owner (chown), or name another folder"},
		}}
	}
	return []preflight.Problem{{
		Attribute: "workspace",
		Summary:   fmt.Sprintf("the workspace %s cannot be created", dir),
		Advice:    prose.Advice{What: err.Error(), Fix: "remove what blocks it, or name another folder"},
	}}
}
