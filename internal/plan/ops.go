// Package plan turns a difference into ordered steps, each with its undo, and says what each step does to what the
// state remembers. A plan is a value: the same inputs give the same bytes, and String is what tests compare. Pure.
package plan

import (
	"encoding/json"
	"fmt"

	"cosplay/internal/resource"
)

// Op is one thing that apply does: one call at the edge, or one line in the books. The set is closed.
//
//sumtype:decl
type Op interface {
	kind() string
}

// The operations.
type (
	// TakeGPU takes a GPU in hand, in the host's ledger and in the state: what it is like before cosplay first
	// touches it, and which of the wanted settings it has already.
	TakeGPU struct {
		Host       string            `json:"host"`
		GPU        string            `json:"gpu"`
		Baseline   resource.Settings `json:"baseline"`
		Holds      resource.Settings `json:"holds"`
		LockBefore bool              `json:"lock_before,omitempty"`
		Whole      bool              `json:"whole,omitempty"`      // without MIG: there is no room for another project
		Others     []string          `json:"others,omitempty"`     // lineages that hold it as well
		FromState  bool              `json:"from_state,omitempty"` // the baseline is the state's: the ledger was lost

		Slices []resource.LiveSlice `json:"slices,omitempty"` // that the state has on it
		For    string               `json:"for,omitempty"`    // the session that imports the one slice
	}
	// HoldGPU notes wanted settings that a GPU in hand came to have already.
	HoldGPU struct {
		Host  string            `json:"host"`
		GPU   string            `json:"gpu"`
		Holds resource.Settings `json:"holds"`
	}
	// DoubtClock notes that the clock lock of a GPU in hand is gone: what shows it may be mended before the lock is.
	DoubtClock struct {
		Host string `json:"host"`
		GPU  string `json:"gpu"`
	}
	// NoteBoot notes that all is well in a boot of a host.
	NoteBoot struct {
		Host   string `json:"host"`
		BootID string `json:"boot_id"`
	}
	// SetGPU sets a setting. What the driver rounds its value to becomes cosplay's,
	// unless the step restores the baseline.
	SetGPU struct {
		Host    string           `json:"host"`
		GPU     string           `json:"gpu"`
		Setting resource.Setting `json:"setting"`
		Value   int              `json:"value"`
		Restore bool             `json:"restore,omitempty"`
	}
	// LeaveGPU announces in the host's ledger that a GPU gets its baseline back.
	LeaveGPU struct {
		Host string `json:"host"`
		GPU  string `json:"gpu"`
	}
	// ReleaseGPU releases a GPU that has its baseline again, or that others hold
	// too, or whose baseline the user gives up where it cannot be restored.
	ReleaseGPU struct {
		Host    string `json:"host"`
		GPU     string `json:"gpu"`
		AsItIs  bool   `json:"as_it_is,omitempty"` // others hold on to it, and put it back later
		Abandon bool   `json:"abandon,omitempty"`
	}
	// CreateSlice makes the MIG slice of a session.
	CreateSlice struct {
		Session resource.Session `json:"session"`
	}
	// DestroySlice removes the MIG slice that the state holds for a session.
	DestroySlice struct {
		Address resource.Address `json:"address"`
		Slice   resource.Slice   `json:"slice"`
	}
	// EnsureImage gets an image that containers are made from.
	EnsureImage struct {
		Host  string      `json:"host"`
		Image string      `json:"image"`
		How   ImageSource `json:"how"`
	}
	// Prepare makes a session's container in its slice, or brings the one that is there up to date.
	Prepare struct {
		Session resource.Session `json:"session"`
		How     Preparation      `json:"how,omitempty"`
		Shared  bool             `json:"shared,omitempty"` // programs of others use the whole GPU that it has
	}
	// Unprepare removes a session's container.
	Unprepare struct {
		Address resource.Address `json:"address"`
		Host    string           `json:"host"`
		Runtime string           `json:"runtime"`
		ID      string           `json:"id"` // the session's

		Leftover bool `json:"leftover,omitempty"` // of an interrupted run; the state does not know the session
	}
	// Record brings what the state knows of a session up to date.
	Record struct {
		Session resource.Session `json:"session"`
		Refit   bool             `json:"refit,omitempty"` // it has a new fit
	}
	// Adopt takes what is there already into the state: as the slice or container of a session, with its GPU.
	Adopt struct {
		Session resource.PriorSession `json:"session"`
		GPU     *resource.PriorGPU    `json:"gpu,omitempty"` // nil where the state has it, or it is not in hand
	}
	// Forget drops a session of which nothing is left, or that is cosplay's no longer.
	Forget struct {
		Address resource.Address `json:"address"`
	}
	// MoveSessions gives sessions other addresses, all at once.
	MoveSessions struct {
		Moves []resource.Renamed `json:"moves"`
	}
)

// Preparation is what becomes of a container that is there; "" creates one.
type Preparation string

// The preparations.
const (
	Refit Preparation = "refit" // it is brought up to date
	Start Preparation = "start"
)

// ImageSource is where an image comes from.
type ImageSource string

// The sources.
const (
	PullImage  ImageSource = "pull"
	BuildImage ImageSource = "build"
)

func (TakeGPU) kind() string      { return "take-gpu" }
func (HoldGPU) kind() string      { return "hold-gpu" }
func (DoubtClock) kind() string   { return "doubt-clock" }
func (NoteBoot) kind() string     { return "note-boot" }
func (SetGPU) kind() string       { return "set-gpu" }
func (LeaveGPU) kind() string     { return "leave-gpu" }
func (ReleaseGPU) kind() string   { return "release-gpu" }
func (CreateSlice) kind() string  { return "create-slice" }
func (DestroySlice) kind() string { return "destroy-slice" }
func (EnsureImage) kind() string  { return "ensure-image" }
func (Prepare) kind() string      { return "prepare" }
func (Unprepare) kind() string    { return "unprepare" }
func (Record) kind() string       { return "record" }
func (Adopt) kind() string        { return "adopt" }
func (Forget) kind() string       { return "forget" }
func (MoveSessions) kind() string { return "move-sessions" }

// Bookkeeping reports whether an operation touches nothing but the state.
func Bookkeeping(op Op) bool {
	switch op.(type) {
	case HoldGPU, DoubtClock, NoteBoot, Record, Adopt, Forget, MoveSessions:
		return true
	case TakeGPU, SetGPU, LeaveGPU, ReleaseGPU, CreateSlice, DestroySlice, EnsureImage, Prepare, Unprepare:
	}
	return false
}

// OpJSON carries an operation through JSON, with its kind beside it.
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

var readers = map[string]func([]byte) (Op, error){
	"take-gpu":        reader[TakeGPU],
	"hold-gpu":        reader[HoldGPU],
	"doubt-clock":     reader[DoubtClock],
	"note-boot":       reader[NoteBoot],
	"set-gpu":         reader[SetGPU],
	"set-mig":         settingReader(resource.MIGMode),
	"set-persistence": settingReader(resource.PersistenceMode),
	"set-power":       settingReader(resource.PowerLimit),
	"set-clock":       settingReader(resource.SMClock),
	"leave-gpu":       reader[LeaveGPU],
	"release-gpu":     reader[ReleaseGPU],
	"create-slice":    reader[CreateSlice],
	"destroy-slice":   reader[DestroySlice],
	"ensure-image":    reader[EnsureImage],
	"prepare":         reader[Prepare],
	"unprepare":       reader[Unprepare],
	"record":          reader[Record],
	"adopt":           reader[Adopt],
	"forget":          reader[Forget],
	"move-sessions":   reader[MoveSessions],
}

// settingReader reads an operation that had its own kind for each setting, as in
// the journals of versions before SetGPU.
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

func reader[T Op](data []byte) (Op, error) {
	var op T
	err := json.Unmarshal(data, &op)
	return op, err
}
