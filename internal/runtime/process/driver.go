package process

import (
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Driver is the runtime whose sessions are folders, in which processes of the host
// find the disguise.
var Driver = runtime.Driver{
	Runtime: resource.Runtime{
		Name: "process", Body: "session folder", Rewrites: true, RenewsInPlace: true,
		RemoveCommand: "rm -r",
	},
	Auto: func(bool) bool { return true },
	Runs: Runs,
	Open: func(h runtime.Host) runtime.Runtime {
		return Runtime{Base: h.Folders, Library: h.Library, Key: h.Owner.Key, Serial: h.Owner.Serial, Version: h.Version}
	},
}
