package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/versions"

	"cosplay/internal/pattern"
	"cosplay/internal/prose"
)

// podman answers the requests of Docker's API. These are the differences that matter to cosplay.

// localImages is the registry of images that podman has not pulled.
const localImages = "localhost/"

// podmanDevices is the oldest podman on which requests for devices were tried. 4.3 ignores them.
const podmanDevices = "5.4"

// podmanFolders are where podman looks for CDI specifications; it does not report them.
var podmanFolders = []string{"/etc/cdi", "/var/run/cdi"}

// ignoresDevices reports whether containers would start without the devices that cosplay requests.
func (e *Engine) ignoresDevices() bool {
	return e.podman && versions.LessThan(e.info.ServerVersion, podmanDevices)
}

// isPodman reports whether the engine is podman, by the name of one of its components.
func isPodman(v types.Version) bool {
	return slices.ContainsFunc(v.Components, func(c types.ComponentVersion) bool { return strings.HasPrefix(c.Name, "Podman") })
}

var (
	dockerCommands = pattern.Of(`\bdocker (ps|rm|rename|stop|pull|build|save|load|system|login|logs)\b`)
	podmanWords    = strings.NewReplacer(
		"sudo systemctl start docker", "sudo systemctl start podman.socket",
		"sudo usermod -aG docker $USER, then log in again", "run cosplay as root, or give your user the right to write to the socket",
		"sudo systemctl restart docker", "sudo systemctl restart podman",
		"journalctl -u docker", "journalctl -u podman",
		"name it in insecure-registries of /etc/docker/daemon.json", "name it with insecure = true in /etc/containers/registries.conf",
		", or install the hook of NVIDIA's container toolkit: apt-get install nvidia-container-toolkit", "",
		"that Docker creates", "that podman creates",
		"the Docker engine", "podman",
	)
)

// words are those of a message, with the commands and files of the engine that there is.
func (e *Engine) words(text string) string {
	if !e.podman {
		return text
	}
	return dockerCommands().ReplaceAllString(podmanWords.Replace(text), "podman $1")
}

// worded is an error whose text has the engine's words.
type worded struct {
	error
	text string
}

func (w worded) Error() string { return w.text }
func (w worded) Unwrap() error { return w.error }

func (e *Engine) reword(err error) error {
	if err == nil || !e.podman {
		return err
	}
	return worded{err, e.words(err.Error())}
}

// imageName is the name by which the engine finds an image: podman does not find one that was built or loaded on this
// machine by its short name.
func (e *Engine) imageName(ctx context.Context, name string) string {
	if e.podman && !e.hasImage(ctx, name) && e.hasImage(ctx, localImages+name) {
		return localImages + name
	}
	return name
}

func (e *Engine) hasImage(ctx context.Context, name string) bool {
	_, err := e.client.ImageInspect(ctx, name)
	return err == nil
}

// shortNames adds to the images of podman the short names of those that imageName finds by them.
func (e *Engine) shortNames(images map[string]string) {
	if !e.podman {
		return
	}
	for name, id := range maps.Clone(images) {
		if short, local := strings.CutPrefix(name, localImages); local && images[short] == "" {
			images[short] = id
		}
	}
}

// networkName is the engine's name of a network: podman calls its own "bridge" in a container and "podman" elsewhere.
func (e *Engine) networkName(name string) string {
	if e.podman && name == bridge {
		return "podman"
	}
	return name
}

// checkSources returns an error if there is no file or folder to mount: podman would create a folder, as root.
func (e *Engine) checkSources(container string, mounts []mount.Mount) error {
	for _, m := range mounts {
		if !e.podman || m.Type != mount.TypeBind {
			continue
		}
		if _, err := os.Stat(m.Source); errors.Is(err, fs.ErrNotExist) {
			return prose.Advice{What: fmt.Sprintf("creating the container %s: there is no %s to mount", container, m.Source), Fix: fixVolume, Cause: err}
		}
	}
	return nil
}
