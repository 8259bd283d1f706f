package docker

import (
	"context"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Driver is the runtime whose sessions are containers.
var Driver = runtime.Driver{
	Runtime: resource.Runtime{
		Name: "docker", Body: "container",
		Attributes:   []string{"image", "pull", "volume", "ssh", "limits", "sudo", "restart"},
		RunsPrograms: true, HasShell: true, LeavesFiles: true, UniqueIDs: true, Named: true, ShownID: 12,
		StopCommand: "docker stop", RemoveCommand: "docker rm -f",
	},
	Auto:         func(simulated bool) bool { return !simulated && Installed() },
	FolderSuffix: ".containers",
	Runs:         Runs,
	Connect: func(ctx context.Context) (func(runtime.Host) runtime.Runtime, error) {
		engine, err := Connect(ctx)
		return func(h runtime.Host) runtime.Runtime { return open(engine, h) }, err
	},
}

func open(engine *Engine, h runtime.Host) Runtime {
	return Runtime{Engine: engine, Base: h.Folders + ".containers", Host: h.Name, Owner: h.Owner, Library: h.Library, SimDir: h.SimDir, Version: h.Version}
}
