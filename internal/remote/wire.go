// Package remote runs the sessions of a host on another machine: each question to a runtime goes to cosplay over there,
// which has the runtime. The other side is Server.
package remote

import (
	"time"

	"github.com/moby/go-archive"

	"cosplay/internal/disguise"
	"cosplay/internal/plan"
	"cosplay/internal/preflight"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// question is one to a runtime of a machine.
type question struct {
	Op      string         `json:"op"`
	Runtime string         `json:"runtime"`
	Owner   resource.Owner `json:"owner"`

	Session *session               `json:"session,omitempty"`
	Given   resource.Handle        `json:"given,omitzero"`
	Prior   *resource.PriorSession `json:"prior,omitempty"`
	IDs     []string               `json:"ids,omitempty"`
	Bodies  []body                 `json:"bodies,omitempty"`
	Removed map[string]bool        `json:"removed,omitempty"` // IDs of bodies that are removed before
	Image   string                 `json:"image,omitempty"`
	Ref     string                 `json:"ref,omitempty"` // of a body that cosplay did not create

	// With opProgram, one of these, or Image with How to get it.
	Program *runtime.Program    `json:"program,omitempty"`
	Logs    *runtime.LogOptions `json:"logs,omitempty"`
	How     plan.ImageSource    `json:"how,omitempty"`
	Notify  bool                `json:"notify,omitempty"` // a line for each event
	Pack    *archive.CopyInfo   `json:"pack,omitempty"`
	Unpack  *unpacking          `json:"unpack,omitempty"`

	Find *finding `json:"find,omitempty"`

	Signal  int           `json:"signal,omitempty"`
	Message string        `json:"message,omitempty"` // for the terminals of programs that end
	Grace   time.Duration `json:"grace,omitempty"`
}

// The questions, after the methods of runtime.Runtime.
const (
	opPlace     = "place" // what the machine is
	opPrepare   = "prepare"
	opUnprepare = "unprepare"
	opList      = "list"
	opRemains   = "remains"
	opUsage     = "usage"
	opInterior  = "interior"
	opAltered   = "altered"
	opCheck     = "check"
	opEntered   = "entered"
	opReports   = "reports"
	opReaddress = "readdress"
	opOffer     = "offer"
	opStop      = "stop"
	opStart     = "start"
	opEnd       = "end"
	opConnect   = "connect" // whether the runtime can be reached
	opInspect   = "inspect"
	opReaches   = "reaches"
	opOffered   = "offered"
	opLeftovers = "leftovers"
	opStranger  = "stranger"
	opFind      = "find"
	opTidy      = "tidy"    // removes what sessions shared, where there are none
	opProgram   = "program" // keeps a program, or what else has streams, for Run
	opSignal    = "signal"  // to that program
	opOutcome   = "outcome" // of that program
)

// How much longer than other questions those may take that start, remove or stop a body.
const (
	startTime  = 6 * time.Minute
	removeTime = 3 * time.Minute
)

// patience is how much longer than other questions this one may take.
func (q question) patience() time.Duration {
	switch q.Op {
	case opPrepare, opStart:
		return startTime
	case opUnprepare, opStop, opEnd:
		return removeTime + q.Grace
	}
	return q.Grace
}

// finding is a path that is the source of a copy, or its destination.
type finding struct {
	Path   string `json:"path"`
	Into   bool   `json:"into,omitempty"`
	Follow bool   `json:"follow,omitempty"`
}

// unpacking is where an archive is extracted.
type unpacking struct {
	Folder string `json:"folder"`
	Owners bool   `json:"owners,omitempty"`
}

// session is a session with its sensitive values, which its own form leaves out.
type session struct {
	resource.Session
	Secret map[string]string `json:"secret,omitempty"`
}

// body is a body with what its own form leaves out.
type body struct {
	resource.Body
	Use *use `json:"use,omitempty"`
}

type use struct {
	resource.Use
	CacheMiB int   `json:"cache_mib,omitempty"`
	NowBytes int64 `json:"now_bytes,omitempty"`
	PeaksMiB []int `json:"peaks_mib,omitempty"`
}

type answer struct {
	Place    *Place                  `json:"place,omitempty"`
	Bodies   []body                  `json:"bodies,omitempty"`
	Use      use                     `json:"use,omitzero"`
	Remains  []resource.Remains      `json:"remains,omitempty"`
	Usage    *disguise.Usage         `json:"usage,omitempty"`
	Interior runtime.Interior        `json:"interior,omitzero"`
	Altered  map[string]string       `json:"altered,omitempty"`
	Problems []preflight.Problem     `json:"problems,omitempty"`
	Entered  map[string]bool         `json:"entered,omitempty"`
	Reports  map[int]resource.Report `json:"reports,omitempty"`
	Program  string                  `json:"program,omitempty"`
	Outcome  *outcome                `json:"outcome,omitempty"`
	Offer    resource.Offer          `json:"offer,omitzero"`
	Engine   *resource.Engine        `json:"engine,omitempty"`
	Image    string                  `json:"image,omitempty"`
	Stranger *stranger               `json:"stranger,omitempty"`
	Found    *archive.CopyInfo       `json:"found,omitempty"`

	Missing bool `json:"missing,omitempty"` // what was asked for is not there: fs.ErrNotExist
}

// stranger is what the labels of a body say that cosplay did not create.
type stranger struct {
	Name    string `json:"name"`
	Lineage string `json:"lineage"`
	Host    string `json:"host"`
}

// outcome is how a program ended that ran over there: with an exit code, or not at all.
type outcome struct {
	Code   int          `json:"code"`
	Error  prose.Advice `json:"error,omitzero"`
	Vacant bool         `json:"vacant,omitempty"` // a runtime.VacantError
}

// Place is what a machine is for one host of a configuration.
type Place struct {
	Runtime   string        // of new sessions, where the block leaves the choice to cosplay
	Rooted    bool          // only root changes its GPUs, and the user is not root
	User      resource.User // of the sessions
	Groups    []string      // of that user: names and GIDs
	Sessions  []string      // folders of the sessions of every runtime
	Workspace string        // folder of sessions whose blocks name none
	Library   string        // path of the NVML library; "" is the system's
	Ledger    string        // folder of the ledger, for people
	CUDA      string        // path of the CUDA driver; "" is none
	Folders   string        // of the sessions
	Sim       string        // folder of a simulated host; "" is hardware
	Version   string        // of cosplay
}

func toWire(b resource.Body) body {
	w := body{Body: b}
	if b.Use != nil {
		u := useToWire(*b.Use)
		w.Use = &u
	}
	return w
}

func (b body) body() resource.Body {
	if b.Use != nil {
		u := b.Use.use()
		b.Body.Use = &u
	}
	return b.Body
}

func useToWire(u resource.Use) use {
	return use{Use: u, CacheMiB: u.CacheMiB, NowBytes: u.NowBytes, PeaksMiB: u.PeaksMiB}
}

func (u use) use() resource.Use {
	u.Use.CacheMiB, u.Use.NowBytes, u.Use.PeaksMiB = u.CacheMiB, u.NowBytes, u.PeaksMiB
	return u.Use
}
