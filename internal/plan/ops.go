// Package plan turns a difference into ordered steps, each with its undo, and says what each step does to what the
// state remembers. A plan is a value: the same inputs give the same bytes, and String is what tests compare. Pure.
package plan

import (
	"encoding/json"
	"fmt"
	"reflect"

	"cosplay/internal/resource"
)

// Op is one operation of an apply: one change on a host, or one change of the state alone. The set is closed.
//
//sumtype:decl
type Op interface {
	kind() string
}

type (
	// TakeGPU acquires a GPU, in the host's ledger and in the state: its baseline, and which of the desired settings
	// it has already.
	TakeGPU struct {
		Host       string            `json:"host"`
		GPU        string            `json:"gpu"`
		Baseline   resource.Settings `json:"baseline"`
		Holds      resource.Settings `json:"holds"`
		LockBefore bool              `json:"lock_before,omitempty"`
		Whole      bool              `json:"whole,omitempty"`      // without MIG, so that no other project can hold it
		Others     []string          `json:"others,omitempty"`     // lineages of other holders
		FromState  bool              `json:"from_state,omitempty"` // the baseline is the state's: the ledger was lost
		Stated     bool              `json:"stated,omitempty"`     // the configuration states the baseline: another tool changed the GPU
		Changed    resource.Settings `json:"changed,omitzero"`     // that this tool has set, which are restored

		Slices []resource.LiveSlice `json:"slices,omitempty"` // that the state has on it
		For    string               `json:"for,omitempty"`    // the session that imports the one slice
	}
	// HoldGPU records desired settings that a GPU of the project has already.
	HoldGPU struct {
		Host  string            `json:"host"`
		GPU   string            `json:"gpu"`
		Holds resource.Settings `json:"holds"`
	}
	// DoubtClock records that the clock lock of a GPU is lifted: the evidence may disappear before the lock is set
	// again.
	DoubtClock struct {
		Host string `json:"host"`
		GPU  string `json:"gpu"`
	}
	// NoteBoot records the boot of a host in which everything is as desired.
	NoteBoot struct {
		Host   string `json:"host"`
		BootID string `json:"boot_id"`
	}
	// SetGPU sets a setting. A value that the driver rounds becomes cosplay's, unless the step restores the baseline.
	SetGPU struct {
		Host    string           `json:"host"`
		GPU     string           `json:"gpu"`
		Setting resource.Setting `json:"setting"`
		Value   int              `json:"value"`
		Restore bool             `json:"restore,omitempty"`

		// Baseline is the value before cosplay, if the setting was not read when the project acquired the GPU.
		Baseline *int `json:"baseline,omitempty"`
	}
	// LeaveGPU announces in the host's ledger that the project restores a GPU's baseline.
	LeaveGPU struct {
		Host string `json:"host"`
		GPU  string `json:"gpu"`
	}
	// ReleaseGPU releases a GPU that has its baseline again, or that other projects hold, or whose baseline cannot be
	// restored and is given up by the user.
	ReleaseGPU struct {
		Host    string `json:"host"`
		GPU     string `json:"gpu"`
		AsItIs  bool   `json:"as_it_is,omitempty"` // others hold it, and the last of them restores it
		Abandon bool   `json:"abandon,omitempty"`
	}
	// RunMPS starts the control daemon of MPS for the sessions on a GPU or in a MIG slice of it, unless it runs, and sets
	// its defaults.
	RunMPS struct {
		Host string       `json:"host"`
		GPU  string       `json:"gpu"`
		MPS  resource.MPS `json:"mps"`
	}
	// StopMPS ends such a daemon and removes its folder.
	StopMPS struct {
		Host string       `json:"host"`
		GPU  string       `json:"gpu"`
		MPS  resource.MPS `json:"mps"`
	}
	// CreateSlice creates the MIG slice of a session: a GPU instance with a compute instance, or the latter alone, beside
	// that of another session.
	CreateSlice struct {
		Session resource.Session  `json:"session"`
		Beside  *resource.Address `json:"beside,omitempty"`
		SMs     int               `json:"sms,omitempty"` // of the slice, where the session gets a part of them by MPS
	}
	// DestroySlice removes the MIG slice that the state has for a session, and before it the MPS daemon of the slice,
	// unless another session shares it.
	DestroySlice struct {
		Address resource.Address `json:"address"`
		Slice   resource.Slice   `json:"slice"`
	}
	// JoinSlice gives a session the MIG slice that another session of the state has, which they share.
	JoinSlice struct {
		Session resource.Session `json:"session"`
		With    resource.Address `json:"with"`
	}
	// LeaveSlice takes the slice from a session that joined it.
	LeaveSlice struct {
		Address resource.Address `json:"address"`
	}
	// EnsureImage pulls or builds an image of containers.
	EnsureImage struct {
		Host  string      `json:"host"`
		Image string      `json:"image"`
		How   ImageSource `json:"how"`
	}
	// Prepare creates a session's body in its slice, or brings an existing one up to date.
	Prepare struct {
		Session resource.Session `json:"session"`
		How     Preparation      `json:"how,omitempty"`
		Shared  bool             `json:"shared,omitempty"` // programs outside the session use its whole GPU
	}
	// Unprepare removes a session's body.
	Unprepare struct {
		Address resource.Address `json:"address"`
		Host    string           `json:"host"`
		Runtime string           `json:"runtime"`
		ID      string           `json:"id"` // the session's

		Leftover bool `json:"leftover,omitempty"` // of an interrupted run; the state does not know the session
	}
	// StopSession ends the programs of a session and keeps its body.
	StopSession struct {
		Address resource.Address `json:"address"`
		Host    string           `json:"host"`
		Runtime string           `json:"runtime"`
		ID      string           `json:"id"` // the session's
	}
	// StartSession starts the body of a session that exists, as it is.
	StartSession struct {
		Address resource.Address `json:"address"`
		Host    string           `json:"host"`
		Runtime string           `json:"runtime"`
	}
	// Record updates a session in the state.
	Record struct {
		Session resource.Session `json:"session"`
		Refit   bool             `json:"refit,omitempty"` // it has a new fit
	}
	// Adopt adds an existing slice or container to the state, as that of a session, with its GPU.
	Adopt struct {
		Session  resource.PriorSession `json:"session"`
		GPU      *resource.PriorGPU    `json:"gpu,omitempty"`       // nil if the state has it, or the project has not acquired it
		MoreGPUs []resource.PriorGPU   `json:"more_gpus,omitempty"` // of its other devices
	}
	// EndSession ends the programs of a session whose lifetime has ended, with a warning, and records that it expired.
	EndSession struct {
		Host    string           `json:"host"`
		Runtime string           `json:"runtime"`
		ID      string           `json:"id"` // the session's
		Expired resource.Expired `json:"expired"`
		Grace   resource.Seconds `json:"grace_s"` // between SIGTERM and SIGKILL
	}
	// ForgetExpired drops the record of a session that has expired and that no block names any more.
	ForgetExpired struct {
		Address resource.Address `json:"address"`
	}
	// Forget drops a session that has nothing left, or that stops being cosplay's.
	Forget struct {
		Address resource.Address `json:"address"`
	}
	// MoveSessions gives sessions other addresses, all at once.
	MoveSessions struct {
		Moves []resource.Renamed `json:"moves"`
	}
)

// Preparation is what happens to a body that exists; "" creates one.
type Preparation string

const (
	Refit Preparation = "refit" // it is updated
	Start Preparation = "start"
)

// ImageSource is how an image is obtained.
type ImageSource string

const (
	PullImage  ImageSource = "pull"
	BuildImage ImageSource = "build"
)

func (TakeGPU) kind() string       { return "take-gpu" }
func (HoldGPU) kind() string       { return "hold-gpu" }
func (DoubtClock) kind() string    { return "doubt-clock" }
func (NoteBoot) kind() string      { return "note-boot" }
func (SetGPU) kind() string        { return "set-gpu" }
func (LeaveGPU) kind() string      { return "leave-gpu" }
func (ReleaseGPU) kind() string    { return "release-gpu" }
func (RunMPS) kind() string        { return "run-mps" }
func (StopMPS) kind() string       { return "stop-mps" }
func (CreateSlice) kind() string   { return "create-slice" }
func (DestroySlice) kind() string  { return "destroy-slice" }
func (JoinSlice) kind() string     { return "join-slice" }
func (LeaveSlice) kind() string    { return "leave-slice" }
func (EnsureImage) kind() string   { return "ensure-image" }
func (Prepare) kind() string       { return "prepare" }
func (Unprepare) kind() string     { return "unprepare" }
func (StopSession) kind() string   { return "stop-session" }
func (StartSession) kind() string  { return "start-session" }
func (EndSession) kind() string    { return "end-session" }
func (ForgetExpired) kind() string { return "forget-expired" }
func (Record) kind() string        { return "record" }
func (Adopt) kind() string         { return "adopt" }
func (Forget) kind() string        { return "forget" }
func (MoveSessions) kind() string  { return "move-sessions" }

// Bookkeeping reports whether an operation changes the state alone.
func Bookkeeping(op Op) bool {
	switch op.(type) {
	case HoldGPU, DoubtClock, NoteBoot, JoinSlice, LeaveSlice, Record, Adopt, Forget, ForgetExpired, MoveSessions:
		return true
	case TakeGPU, SetGPU, LeaveGPU, ReleaseGPU, RunMPS, StopMPS, CreateSlice, DestroySlice, EnsureImage, Prepare, Unprepare, StopSession, StartSession, EndSession:
	}
	return false
}

// OpJSON is an operation with its kind in JSON.
type OpJSON struct{ Op Op }

// Kind names the operation, which is not nil.
func (o OpJSON) Kind() string { return o.Op.kind() }

// MarshalJSON writes {"kind": ..., "do": {...}}; no operation is null.
func (o OpJSON) MarshalJSON() ([]byte, error) {
	if o.Op == nil {
		return []byte("null"), nil
	}
	return json.Marshal(struct {
		Kind string `json:"kind"`
		Do   Op     `json:"do"`
	}{o.Op.kind(), o.Op})
}

// UnmarshalJSON reads what MarshalJSON writes; an unknown kind is an error.
func (o *OpJSON) UnmarshalJSON(data []byte) error {
	var wire *struct {
		Kind string          `json:"kind"`
		Do   json.RawMessage `json:"do"`
	}
	if err := json.Unmarshal(data, &wire); err != nil || wire == nil {
		return err
	}
	read, ok := readers[wire.Kind]
	if !ok {
		return fmt.Errorf("unknown operation %q; it was written by a newer cosplay", wire.Kind)
	}
	op, err := read(wire.Do)
	o.Op = op
	return err
}

var readers = func() map[string]func([]byte) (Op, error) {
	all := map[string]func([]byte) (Op, error){
		"set-mig":         settingReader(resource.MIGMode),
		"set-persistence": settingReader(resource.PersistenceMode),
		"set-power":       settingReader(resource.PowerLimit),
		"set-clock":       settingReader(resource.SMClock),
	}
	for _, op := range []Op{
		TakeGPU{}, HoldGPU{}, DoubtClock{}, NoteBoot{}, SetGPU{}, LeaveGPU{}, ReleaseGPU{}, RunMPS{}, StopMPS{}, CreateSlice{}, DestroySlice{}, JoinSlice{}, LeaveSlice{},
		EnsureImage{}, Prepare{}, Unprepare{}, StopSession{}, StartSession{}, EndSession{}, Record{}, Adopt{}, Forget{}, ForgetExpired{}, MoveSessions{},
	} {
		all[op.kind()] = func(data []byte) (Op, error) {
			read := reflect.New(reflect.TypeOf(op))
			err := json.Unmarshal(data, read.Interface())
			return read.Elem().Interface().(Op), err
		}
	}
	return all
}()

// settingReader reads an operation of the journals of versions before SetGPU, which had a kind for each setting.
func settingReader(s resource.Setting) func([]byte) (Op, error) {
	return func(data []byte) (Op, error) {
		op := struct {
			SetGPU
			On    bool `json:"on"`
			MW    int  `json:"mw"`
			MHz   int  `json:"mhz"`
			Exact bool `json:"exact"`
		}{}
		err := json.Unmarshal(data, &op)
		return SetGPU{Host: op.Host, GPU: op.GPU, Setting: s, Value: resource.Bit(op.On) + op.MW + op.MHz, Restore: op.Exact}, err
	}
}
