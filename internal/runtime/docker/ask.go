package docker

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/docker/client"

	"cosplay/internal/resource"
)

// Installed tells whether there is an engine to connect to, running or not: one
// that is named by the environment or the docker command's context, or one whose
// socket is where it is by default.
func Installed() bool {
	at, err := find()
	if err != nil || at.from != "" {
		return true // Connect tells what is wrong with it
	}
	_, err = os.Stat(strings.TrimPrefix(client.DefaultDockerHost, "unix://"))
	return err == nil
}

// Reaches tells whether a slice comes into containers; the error says what is
// missing.
func (r Runtime) Reaches() error { return r.access().usable() }

// Know makes sure that an ssh client can know a session, by a file of the one
// line that is its, and gives the file's path.
func (r Runtime) Know(session string, s resource.SSH, port int) (string, error) {
	path := r.KnownHostsFile(session)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, replace(path, []byte(r.KnownHosts(session, s, port)), 0o644)
}
