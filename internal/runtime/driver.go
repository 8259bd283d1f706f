package runtime

import (
	"context"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/moby/go-archive"

	"cosplay/internal/disguise"
	"cosplay/internal/preflight"
	"cosplay/internal/resource"
)

// Driver is a runtime as it is registered: its description and its code.
type Driver struct {
	resource.Runtime

	// Auto reports whether a host whose block leaves the choice to cosplay can run
	// its sessions here. The first runtime that can is taken.
	Auto func(simulated bool) bool

	// Open opens the runtime of a host if it needs no connection. Otherwise Connect is
	// called once, when the first host needs the runtime.
	Open    func(Host) Runtime
	Connect func(context.Context) (Connection, error)

	// Reach connects for commands in a session that exists, by OneLister and Exec; nil where that is no faster.
	Reach func(context.Context) (Connection, error)

	// FolderSuffix ends the name of the folder of a host's sessions, so that each runtime has its own.
	FolderSuffix string

	// Runs reports whether a process runs in a body, by its marks.
	Runs func(p resource.Process, c resource.Body) bool

	// Login is how users log into the sessions of a host; nil where they have no ssh. It needs no connection.
	Login func(Host) Login

	// Readdress writes the new address of a session where Remains reads it. It needs no connection.
	Readdress func(h Host, session string, to resource.Address) error
}

// Connection is what all hosts share: a container engine.
type Connection interface {
	Open(Host) Runtime
	Close() error
}

// Runtime runs the sessions of one state on one host.
type Runtime interface {
	// Prepare creates the body of a session, or brings it up to date. given is the
	// session's MIG slice; of a whole GPU it has the UUID alone.
	Prepare(ctx context.Context, s resource.Session, given resource.Handle) (resource.Body, error)
	// Unprepare removes the body by the session's ID, and reports what the session
	// used. A body that does not exist is no error.
	Unprepare(ctx context.Context, session string) (resource.Use, error)
	// List reads the bodies of all sessions.
	List(ctx context.Context) ([]resource.Body, error)
	// Remains reads what the sessions have left, for a state that was lost.
	Remains(ctx context.Context) ([]resource.Remains, error)
	// Exec runs a command in a session with the given streams, with a terminal if they
	// are one, and returns its exit code.
	Exec(ctx context.Context, session string, p Program, streams Streams) (int, error)
	// Usage is what the programs of a session use of its GPU's memory, or fs.ErrNotExist where they are not counted.
	Usage(session string) (disguise.Usage, error)
	// Interior is what the programs of a session should find. It installs the probes where
	// these programs can run them.
	Interior(s resource.PriorSession) (Interior, error)
	// Altered reads, by check of files, what of a session's disguise was changed since it was written.
	Altered(ctx context.Context, s resource.PriorSession) (map[string]string, error)
	// Survey prepares the check of sessions that are to be created.
	Survey(ctx context.Context) (Survey, error)
}

// Survey checks for problems of sessions before an apply.
type Survey struct {
	Host []preflight.Problem // of all sessions

	// Check is of one session, once the bodies with the IDs in removed are removed.
	Check func(ctx context.Context, s resource.Session, removed map[string]bool) []preflight.Problem
}

// A runtime can do more: a caller asserts one of these, observe.LeftoverLister or apply.Images.
type (
	// Engine runs containers. Reaches fails if no slice of the host reaches them, with what is missing.
	Engine interface {
		Inspect(ctx context.Context) (resource.Engine, error)
		Reaches() error
	}

	// Notifier calls changed after events that may concern sessions, until the context ends.
	Notifier interface {
		Notify(ctx context.Context, changed func())
	}

	// OneLister reads the body of one session as List does, but not whether its files are damaged or outdated.
	OneLister interface {
		One(ctx context.Context, session string) ([]resource.Body, error)
	}

	// Puller gets images from registries. Offered is the image to which a name refers in its registry now, as its name
	// with its digest, or why it could not be pulled; "" and no error where the engine cannot ask.
	Puller interface {
		Offered(ctx context.Context, name string) (image string, err error)
	}

	// Logger keeps what the programs of a session print.
	Logger interface {
		Logs(ctx context.Context, session string, o LogOptions, out, err io.Writer) error
	}

	// Copier copies files out of a session and into it, as archives. A relative path is below the workspace.
	Copier interface {
		// Source finds what is at a path; follow asks for what a symbolic link at its end leads to.
		Source(ctx context.Context, session, path string, follow bool) (archive.CopyInfo, error)
		// Destination finds what is at a path, a link followed; without anything there, its folder has to exist.
		Destination(ctx context.Context, session, path string) (archive.CopyInfo, error)
		// Pack writes what Source has found. Each name begins with the last part of its path.
		Pack(ctx context.Context, session string, what archive.CopyInfo, to io.Writer) error
		// Unpack extracts an archive into a folder that exists. In a container its files belong to whom it says; elsewhere
		// to the user who runs the session, but with owners.
		Unpack(ctx context.Context, session, folder string, from io.Reader, owners bool) error
	}

	// Login has sessions with ssh. Know writes the known_hosts file of a session and gives its path.
	Login interface {
		Know(session string, s resource.SSH, port int) (string, error)
	}

	// Reporter reads what the programs of sessions did, by the index of each session whose programs report it.
	Reporter interface {
		Reports(sessions []string) iter.Seq2[int, resource.Report]
	}

	// Entered finds the sessions among some that run in which a user is, or may be: a command of cosplay exec, or a
	// login by ssh.
	Entered interface {
		Entered(ctx context.Context, sessions []string) (map[string]bool, error)
	}

	// Offerer has sessions that are devices for the containers of others.
	Offerer interface {
		Offer(session string) (resource.Offer, error)
	}

	// Importer finds a body that cosplay did not create, by any name or ID, with the
	// lineage and the host that its labels name. nil is none.
	Importer interface {
		Stranger(ctx context.Context, ref string) (c *resource.Body, name, lineage, host string, err error)
	}

	// Describer reads what a body that cosplay did not create was created from: of a session, what is in its block, and in
	// words what no block can have. nil is none.
	Describer interface {
		Describe(ctx context.Context, ref string) (s *resource.Session, left []string, err error)
	}
)

// LogOptions select a part of a session's log.
type LogOptions struct {
	Follow     bool      // until the body stops or the context ends
	Tail       string    // the number of lines from the end; "" is all
	Since      time.Time // zero is the beginning
	Timestamps bool
}

var drivers []Driver

// Register makes a runtime available. The first registered runtime is preferred.
func Register(d Driver) {
	drivers = append(drivers, d)
	resource.RegisterRuntime(d.Runtime)
}

// Drivers are the registered runtimes.
func Drivers() []Driver { return slices.Clone(drivers) }

// Auto is the runtime of a host that leaves the choice to cosplay.
func Auto(simulated bool) Driver {
	i := slices.IndexFunc(drivers, func(d Driver) bool { return d.Auto(simulated) })
	return drivers[i] // the last one takes all hosts
}

// Named finds a registered runtime.
func Named(name string) (Driver, bool) {
	i := slices.IndexFunc(drivers, func(d Driver) bool { return d.Name == name })
	if i < 0 {
		return Driver{}, false
	}
	return drivers[i], true
}
