// Package agent puts one NVML library behind a child process. go-nvml serves one library per process, a hung NVML
// call cannot be cancelled, and changing hardware needs root. So `cosplay agent`, a child of the same binary, loads
// the library. It reads requests from standard input and writes answers to standard output, each one line of JSON,
// and has a closed list of operations.
package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Protocol is the version of requests and answers. It is raised with every change of them. The child refuses a
// request of another version, and one with a field that it does not know: a root agent that is older than its client
// must not drop a field on which safety rests. Version 1 was the one without a number. The tags of the types of
// resource and ledger are part of it: testdata/protocol-VERSION.txt lists all fields, and a test fails where they
// change.
const Protocol = 8

// The operations.
const (
	opHello        = "hello" // the first: the answer has the child's version
	opRead         = "read"
	opClock        = "clock"
	opActivity     = "activity"
	opSet          = "set"
	opCreateSlices = "create-slices"
	opCreateSlice  = "create-slice" // one of them, in the history; no request
	opDestroySlice = "destroy-slice"
	opTake         = "take"
	opLeave        = "leave"
	opRelease      = "release"
	opQueue        = "queue" // take a ticket of the queue, or say that the waiter is still there
	opLeaveQueue   = "leave-queue"
	opEvent        = "event" // wait for an event of a GPU, for 2 s at most

	opLedger    = "ledger"
	opHistory   = "history"
	opReleased  = "released"
	opMayChange = "may-change"
	opRunMPS    = "run-mps"
	opStopMPS   = "stop-mps"

	opSessions = "sessions" // what a runtime on this machine is asked from another
)

type request struct {
	Version  int                 `json:"version"`
	Op       string              `json:"op"`
	Deadline int64               `json:"deadline"` // ns; the child ends a call that takes longer
	GPU      string              `json:"gpu,omitzero"`
	Setting  *resource.Setting   `json:"setting,omitzero"`
	Value    int                 `json:"value,omitzero"`   // of the setting
	Slice    *resource.LiveSlice `json:"slice,omitzero"`   // with opDestroySlice
	Need     resource.Need       `json:"-"`                // of a part of opCreateSlices, with Slice
	Creates  []creation          `json:"creates,omitzero"` // with opCreateSlices
	Holder   resource.Holder     `json:"holder"`           // the project that makes the request
	Take     *ledger.Take        `json:"take,omitzero"`
	AsItIs   bool                `json:"as_it_is,omitzero"` // release it, other holders restore it
	Abandon  bool                `json:"abandon,omitzero"`  // release it although the baseline cannot be restored
	GPUs     []string            `json:"gpus,omitzero"`     // on which the project could get room, with opQueue
	Room     []int               `json:"room,omitzero"`     // the memory of each session that it waits for, in MiB, with opQueue

	Instances []resource.GPUInstance `json:"instances,omitzero"` // with opActivity

	TimeSlices bool               `json:"timeslices,omitzero"` // read the lengths of time slices, too
	Search     resource.MPSSearch `json:"search,omitzero"`     // read these MPS daemons, too
	Known      string             `json:"known,omitzero"`      // the stamp of the ledger that the client has, with opLedger
	Daemon     *resource.MPS      `json:"daemon,omitzero"`     // with opRunMPS and opStopMPS
	Sessions   jsontext.Value     `json:"sessions,omitzero"`   // with opSessions: remote has its form
}

func parse(line []byte) (r request, err error) {
	var said struct {
		Version int `json:"version"`
	}
	err = jsonv2.Unmarshal(line, &said)
	if err == nil && said.Version != Protocol {
		return request{}, otherVersion("its client", said.Version)
	}
	if err == nil {
		err = jsonv2.Unmarshal(line, &r, jsonv2.RejectUnknownMembers(true))
	}
	if err != nil {
		return request{}, &Error{Message: fmt.Sprintf("the agent refuses a line that is not one of its requests: %v", err)}
	}
	return r, nil
}

// otherVersion is the error where client and child are different versions of cosplay. peer names the other side.
func otherVersion(peer string, version int) *Error {
	return &Error{Message: fmt.Sprintf("cosplay and its agent are different versions: protocol %d here, %d at %s. Nothing was changed", Protocol, max(version, 1), peer),
		Advice: prose.Advice{Fix: "install the same cosplay for root and for the users: sudo install -m 0755 $(command -v cosplay) " + Installed}}
}

// check refuses an incomplete or unknown request.
func (r request) check() error {
	bad := func(what string) error {
		return &Error{GPU: r.GPU, Message: fmt.Sprintf("the agent refuses %q: %s", r.Op, what)}
	}
	switch r.Op {
	case opHello, opRead, opActivity, opLeaveQueue, opEvent, opLedger, opHistory, opReleased, opMayChange, opSessions:
		return nil
	case opStopMPS, opRunMPS:
		if r.Daemon == nil {
			return bad("it does not say which daemon")
		}
		if r.Op == opStopMPS {
			return nil
		}
	case opQueue:
		if len(r.GPUs) == 0 {
			return bad("it names no GPU")
		}
		if len(r.Room) > maxRoom {
			return bad(fmt.Sprintf("it waits for room for %d sessions, of which %d are permitted", len(r.Room), maxRoom))
		}
		return nil
	case opClock, opLeave, opRelease:
	case opSet:
		switch {
		case r.Setting == nil:
			return bad("it does not say which setting")
		case r.Value < 0 || r.Setting.Mode() && r.Value > resource.On:
			return bad("the setting has no such value")
		}
	case opTake:
		if r.Take == nil {
			return bad("it does not say what is taken")
		}
	case opCreateSlices:
		if what := r.checkCreates(); what != "" {
			return bad(what)
		}
	case opDestroySlice:
		switch {
		case r.Slice == nil:
			return bad("it does not say which slice")
		case r.Slice.GPU != r.GPU:
			return bad("its slice is on another GPU")
		case r.Slice.Slice != r.Slice.Place():
			return bad(moreThanPlace)
		}
	default:
		return bad("there is no such operation")
	}
	if r.GPU == "" {
		return bad("it names no GPU")
	}
	return nil
}

// alters reports whether a request is for a change of a GPU or of its page.
func (r request) alters() bool {
	switch r.Op {
	case opHello, opRead, opClock, opActivity, opQueue, opLeaveQueue, opEvent, opSessions:
		return false
	}
	return !r.ofUser()
}

// ofUser reports whether a request is for records of the host or for an MPS daemon, which need no NVML.
func (r request) ofUser() bool {
	switch r.Op {
	case opLedger, opHistory, opReleased, opMayChange, opRunMPS, opStopMPS, opSessions:
		return true
	}
	return false
}

// maxRoom bounds how many sessions wait for room with one ticket.
const maxRoom = 1 << 14

func (r request) onlyLedger() bool { return r.Op == opTake || r.Op == opLeave || r.Op == opRelease }

func (r request) kind() string {
	if r.Setting != nil {
		return r.Op + "-" + r.Setting.String()
	}
	return r.Op
}

func (r request) value() string {
	switch {
	case r.Setting != nil:
		return exact(*r.Setting, r.Value)
	case r.Slice != nil:
		return fmt.Sprintf("%s, slot %d %s", r.Slice.Profile, r.Slice.Start, r.Slice.UUID)
	case r.Abandon:
		return "abandon the baseline"
	}
	return ""
}

func exact(s resource.Setting, value int) string {
	return ledger.Exact(resource.Settings{}.With(s, value), s)
}

// Place is a place in the queue of a host.
type Place struct {
	Number int64 `json:"number"` // of the ticket
	Ahead  int   `json:"ahead"`  // how many wait before it for one of the same GPUs
}

type response struct {
	Version  int                   `json:"version"`
	Host     *wireHost             `json:"host,omitzero"`
	Created  []created             `json:"created,omitzero"` // with opCreateSlices, in the order of the request
	Clock    *resource.ClockSample `json:"clock,omitzero"`
	Activity []int                 `json:"activity,omitzero"` // with opActivity, in the order of the request
	Value    int                   `json:"value,omitzero"`    // what the value of a setting was rounded to
	Place    *Place                `json:"place,omitzero"`
	Error    *Error                `json:"error,omitzero"`
	Happened bool                  `json:"happened,omitzero"` // with opEvent
	Last     bool                  `json:"last,omitzero"`     // the child ends with this answer
	Ledger   []wirePage            `json:"ledger,omitzero"`   // with opLedger
	Stamp    string                `json:"stamp,omitzero"`    // of that ledger
	History  []ledger.Attempted    `json:"history,omitzero"`  // with opHistory
	Released []string              `json:"released,omitzero"` // GPUs, by UUID, with opReleased
	Sessions jsontext.Value        `json:"sessions,omitzero"` // with opSessions
}

// Error is a failure of the NVML library, with its code.
type Error struct {
	Call    string       `json:"call,omitempty"`  // the NVML function; empty where none was called
	GPU     string       `json:"gpu,omitempty"`   // "GPU 0 (GPU-51a0...)"; empty for the library as a whole
	Code    int          `json:"code,omitempty"`  // NVML's, where the call answered
	Message string       `json:"message"`         // what happened
	Advice  prose.Advice `json:"advice,omitzero"` // what it means, and what to do

	Refused bool `json:"refused,omitempty"` // because of what another project did since the plan was made

	// GivenUp is the feature that cosplay does without from now on, since the driver
	// does not offer the call: a new plan leaves it out.
	GivenUp resource.Feature `json:"given_up,omitempty"`

	// If a slice was not created: the GPU instance that is left, nil for none, and whether that is known.
	GPUInstance *int `json:"gpu_instance,omitempty"`
	Sure        bool `json:"sure,omitempty"`
}

// Overtaken reports whether another process was faster: a new plan may succeed.
func (e *Error) Overtaken() bool {
	return e.Refused || e.Code == codeInsufficientResources
}

// NVML's codes that a client knows, which may be built without NVML.
const (
	codeNotSupported          = 3
	codeNoPermission          = 4
	codeFunctionNotFound      = 13
	codeInsufficientResources = 23
	codeUnknown               = 999
)

func failedCall(err error) (*Error, bool) {
	at, is := errors.AsType[*Error](err)
	return at, is && at.Call != "" && at.Code != 0
}

// unavailable reports whether an error says that a call is not there for a GPU, and nothing of the GPU itself.
func unavailable(err error) bool {
	at, known := failedCall(err)
	return known && slices.Contains([]int{codeNotSupported, codeNoPermission, codeFunctionNotFound, codeUnknown}, at.Code)
}

func isSMI(call string) bool { return strings.HasPrefix(call, "nvidia-smi ") }

// Left returns what a failed CreateSlice has left, and whether that is known.
func (e *Error) Left() (left *resource.Handle, sure bool) {
	if e.GPUInstance != nil {
		left = &resource.Handle{GPUInstance: *e.GPUInstance}
	}
	return left, e.Sure
}

// Error states call, GPU and code in one line, and the advice in another.
func (e *Error) Error() string {
	text := e.Message
	if e.Call != "" {
		if !isSMI(e.Call) {
			text = "NVML: " + text
		}
		if e.Code != 0 {
			text += fmt.Sprintf(" (%d)", e.Code)
		}
		text += " from " + e.Call
		if e.GPU != "" {
			text += " on " + e.GPU
		}
	}
	if advice := e.Advice.Error(); advice != "" {
		text = prose.Stop(text) + "\n  " + prose.Stop(advice)
	}
	return text
}

// Unwrap returns the advice, so that errors.As finds it.
func (e *Error) Unwrap() error { return e.Advice }

// Service is what a child serves with the rights of its user.
type Service struct {
	Library string // path of the NVML library; "" is the system's
	Ledger  string // folder of the host's ledger, which every change is checked against; "" keeps none

	// Sessions answers questions to the runtimes of this machine, for a client on another; nil for one on this machine.
	Sessions func(question []byte) (answer []byte, err error)
}
