package resource

import (
	"slices"

	"cosplay/internal/prose"
)

// Runtime describes one way to run sessions: what it can do, and what its objects
// are called. Code checks for a capability, never for a name.
type Runtime struct {
	Name  string // in the configuration and the state: "docker"
	Title string // as users know it: "Docker"
	Where string // after "sessions run": "in containers"
	Body  string // what the runtime makes for a session, in words: "container"

	// Attributes are the attributes and blocks of a session that only some runtimes
	// use, and that this one uses: "image", "volume", "ssh".
	Attributes []string

	Ignores []string // attributes that other runtimes use, and that this one does not: "workspace"

	RunsPrograms  bool // a body runs and can be stopped; the session's programs end with it
	Rewrites      bool // a change is written into the body, which stays; otherwise the body is replaced
	RenewsInPlace bool // an outdated disguise is renewed in a body that stays; otherwise the next start renews it
	HasShell      bool // exec without a command opens a shell
	LeavesFiles   bool // a body that is lost has left files, which Unprepare removes
	UniqueIDs     bool // no later body gets the ID of an earlier one
	Labelled      bool // a body says which state created it; otherwise its folder does

	Named   bool // a body has a name, BodyName
	Devices bool // a body is a CDI device, called Session.Device
	ShownID int  // how many characters of an ID the runtime's own commands print; 0 is all

	StopCommand   string // what a user types to stop a body: "docker stop"
	RemoveCommand string // what a user types to remove a body, before its ID: "docker rm -f"
}

// Uses reports whether an attribute that only some runtimes use has an effect in this one.
func (r Runtime) Uses(attribute string) bool { return slices.Contains(r.Attributes, attribute) }

// ShortID is an ID of a body as the runtime's own commands print it.
func (r Runtime) ShortID(id string) string {
	if r.ShownID == 0 {
		return id
	}
	return id[:min(r.ShownID, len(id))]
}

var runtimes []Runtime

// RegisterRuntime makes a runtime known, before anything asks for one. The runtimes
// are preferred in the order in which they are registered.
func RegisterRuntime(r Runtime) { runtimes = append(runtimes, r) }

// RuntimeNamed finds a runtime. One that is not registered, as a state of a later
// cosplay may have it, can do nothing.
func RuntimeNamed(name string) Runtime {
	if r, known := find(runtimes, func(r Runtime) bool { return r.Name == name }); known {
		return r
	}
	return Runtime{Name: name, Title: name, Where: "in " + name, Body: "session"}
}

// RunRuntimes are the names of the runtimes in which cosplay runs a program by itself.
func RunRuntimes() []string {
	return prose.Each(prose.Only(runtimes, func(r Runtime) bool { return !r.Devices }), func(r Runtime) string { return r.Name })
}

// RuntimeNames are the names of the runtimes that use an attribute, or of all where the attribute is "".
func RuntimeNames(attribute string) []string {
	ignored := slices.ContainsFunc(runtimes, func(r Runtime) bool { return slices.Contains(r.Ignores, attribute) })
	using := prose.Only(runtimes, func(r Runtime) bool {
		return attribute == "" || r.Uses(attribute) || ignored && !slices.Contains(r.Ignores, attribute)
	})
	return prose.Each(using, func(r Runtime) string { return r.Name })
}
