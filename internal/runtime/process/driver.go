package process

import (
	"context"

	"cosplay/internal/preflight"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// name is the name of the runtime in the configuration and the state.
const name = "process"

// Driver is the runtime whose sessions are folders, in which processes of the host find the disguise.
var Driver = runtime.Driver{
	Runtime: resource.Runtime{
		Name: name, Title: "process", Where: "as processes", Body: "session folder",
		Rewrites: true, RenewsInPlace: true,
		RemoveCommand: "rm -r",
	},
	Auto: func(bool) bool { return true },
	Runs: Runs,
	Open: func(h runtime.Host) runtime.Runtime { return open(h) },
	Readdress: func(h runtime.Host, session string, to resource.Address) error {
		return open(h).Readdress(session, to)
	},
}

func open(h runtime.Host) Runtime {
	return Runtime{Base: h.Folders, Library: h.Library, Key: h.Owner.Key, Serial: h.Owner.Serial, Version: h.Version}
}

// Survey prepares the check of sessions that are to be created.
func (r Runtime) Survey(context.Context) (runtime.Survey, error) {
	return runtime.Survey{Check: func(_ context.Context, s resource.Session, _ map[string]bool) []preflight.Problem {
		return runtime.CheckWorkspace(s.Workspace)
	}}, nil
}
