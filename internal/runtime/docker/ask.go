package docker

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/docker/client"

	"cosplay/internal/resource"
)

// Installed reports whether there is an engine to connect to, running or not: one that the
// environment or the docker command's context names, or one with the default socket.
func Installed() bool {
	at, err := find()
	if err != nil || at.from != "" {
		return true // Connect reports the error
	}
	_, err = os.Stat(strings.TrimPrefix(client.DefaultDockerHost, "unix://"))
	return err == nil
}

// Reaches returns an error if containers have no access to slices.
func (r Runtime) Reaches() error { return r.access().usable() }

// Know writes the known_hosts file of a session and returns its path.
func (r Runtime) Know(session string, s resource.SSH, port int) (string, error) {
	path := r.KnownHostsFile(session)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, replace(path, []byte(r.KnownHosts(session, s, port)), 0o644)
}
