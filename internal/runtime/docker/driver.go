package docker

import (
	"context"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

const (
	name         = "docker" // in the configuration and the state
	folderSuffix = ".containers"
)

// Driver is the runtime whose sessions are containers.
var Driver = runtime.Driver{
	Runtime: resource.Runtime{
		Name: name, Title: "Docker", Where: "in containers", Body: "container",
		Attributes:   []string{"image", "pull", "volume", "ssh", "limits", "sudo", "restart"},
		RunsPrograms: true, HasShell: true, LeavesFiles: true, UniqueIDs: true, Labelled: true, Named: true, ShownID: 12,
		StopCommand: "docker stop", RemoveCommand: "docker rm -f",
	},
	Auto:         func(simulated bool) bool { return !simulated && Installed() },
	FolderSuffix: folderSuffix,
	Runs:         Runs,
	Connect:      func(ctx context.Context) (runtime.Connection, error) { return Connect(ctx) },
	Readdress: func(h runtime.Host, session string, to resource.Address) error {
		return (*Engine)(nil).open(h).Readdress(session, to)
	},
}

// Open gives the runtime of a host.
func (e *Engine) Open(h runtime.Host) runtime.Runtime { return e.open(h) }

func (e *Engine) open(h runtime.Host) Runtime {
	return Runtime{Engine: e, Base: h.Folders + folderSuffix, Host: h.Name, Owner: h.Owner, Library: h.Library, SimDir: h.SimDir, Version: h.Version}
}
