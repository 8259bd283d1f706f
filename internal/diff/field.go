package diff

import (
	"slices"

	"cosplay/internal/resource"
)

// Kind names what differs. An attribute has its name in the language.
type Kind string

const (
	FieldTarget            Kind = "target"
	FieldTargetFigures     Kind = "target-figures" // of the same target, in another catalog
	FieldFraction          Kind = "fraction"
	FieldSharing           Kind = "sharing"
	FieldGPUs              Kind = "gpus"
	FieldOversubscribe     Kind = "oversubscribe"
	FieldProfile           Kind = "slice.profile"
	FieldHost              Kind = "host"
	FieldGPU               Kind = "placement-gpu"
	FieldSlice             Kind = "slice"
	FieldFitClock          Kind = "fit-clock"
	FieldFitPrefer         Kind = "fit.prefer"
	FieldFitTolerance      Kind = "fit.tolerance"
	FieldFitMaxError       Kind = "fit.max_error"
	FieldGPUSelector       Kind = "gpu"
	FieldRuntime           Kind = "runtime"
	FieldCommand           Kind = "command"
	FieldEntrypoint        Kind = "entrypoint"
	FieldWorkspace         Kind = "workspace"
	FieldDependsOn         Kind = "depends_on"
	FieldStrict            Kind = "strict"
	FieldCapability        Kind = "capability"
	FieldCompute           Kind = "compute"
	FieldStopped           Kind = "stopped"
	FieldPreventDestroy    Kind = "prevent_destroy"
	FieldTriggeredBy       Kind = "replace_triggered_by"
	FieldImage             Kind = "image"
	FieldPull              Kind = "pull"
	FieldVolumes           Kind = "volumes"
	FieldSSH               Kind = "ssh"
	FieldSSHPort           Kind = "ssh.port"
	FieldSSHBind           Kind = "ssh.bind"
	FieldName              Kind = "name"
	FieldNetwork           Kind = "network"
	FieldPorts             Kind = "ports"
	FieldSSHAuthorizedKeys Kind = "ssh.authorized_keys"
	FieldLimits            Kind = "limits"
	FieldLimitCPUs         Kind = "limits.cpus"
	FieldLimitMemory       Kind = "limits.memory"
	FieldLimitPIDs         Kind = "limits.pids"
	FieldSudo              Kind = "sudo"
	FieldRestart           Kind = "restart"
	FieldUser              Kind = "user"
	FieldTTL               Kind = "ttl"
	FieldIdleTimeout       Kind = "idle_timeout"
	FieldStopAt            Kind = "stop_at"
	FieldEnv               Kind = "env"
	FieldSliceUUID         Kind = "mig-uuid"
	FieldFacades           Kind = resource.Facades
	FieldDriver            Kind = resource.Driver

	FieldSMClock Kind = Kind(resource.FeatureClock) // as SettingKind has it

	FieldMPS      Kind = "mps-daemon"
	FieldWholeGPU Kind = "whole-gpu"
	FieldSettings Kind = "settings" // all of a GPU
)

// SettingKind is the kind of a setting of a GPU.
func SettingKind(s resource.Setting) Kind { return Kind(s.String()) }

// Field is one difference, with its reason where the kind does not say it. If a setting is kept, From is its value
// and To the one that it would get otherwise.
type Field struct {
	Kind   Kind
	Name   string // of an environment variable, or of the MIG slice of an MPS daemon
	From   Value
	To     Value
	Reason resource.Reason
	Left   bool // with GiveBack: cosplay changed it and cannot restore it now
}

// attribute is the name of the field's attribute in the language.
func (f Field) attribute() string {
	if f.Kind == FieldEnv {
		return string(FieldEnv) + "." + f.Name
	}
	return string(f.Kind)
}

type fields []Field

// add records a difference, if there is one. Values of one type are compared before they become interfaces, because
// most are equal and each interface is an allocation.
func add[V interface {
	comparable
	Value
}](all *fields, kind Kind, from, to V) {
	if from != to {
		*all = append(*all, Field{Kind: kind, From: from, To: to})
	}
}

// addList does the same for lists. An empty one is none.
func addList[T interface {
	~[]E
	Value
}, E comparable](all *fields, kind Kind, from, to T) {
	if !slices.Equal(from, to) {
		*all = append(*all, Field{Kind: kind, From: listed(from), To: listed(to)})
	}
}

// Value is one side of a difference, of the type that its kind has; nil is none.
//
//sumtype:decl
type Value interface{ value() }

type (
	Text     string         // a name, a path
	EnvValue string         // of an environment variable
	Names    []string       // of blocks
	Command  []string       // a program and its arguments
	Bool     bool           // an attribute that is true or false
	Switch   bool           // a mode that is on or off
	Power    int            // mW
	Percent  float64        // a ratio: 0.07 is 7 %
	Port     int            // 0 is one that cosplay chooses
	Count    int            // of processes
	Restarts int            // of a container that restarts again and again
	CPUs     float64        // processors
	Memory   int            // MiB
	GPU      string         // a UUID
	UUID     string         // of a MIG slice
	ID       string         // of a container or an image, as the engine has it
	Slice    resource.Slice // a placement
	Taken    resource.Slice // a placement that a foreign slice has
	Volumes  []resource.Volume
	Ports    []resource.Port
	Keys     []string // lines of public keys
	Limits   resource.Limits
	User     resource.User
	Seconds  resource.Seconds
	Moment   resource.Moment
	Damage   string // what of a disguise is not as it was written, or what a check found

	// MPS is a control daemon that runs, with its defaults.
	MPS resource.MPS

	// Unanswered is the error of a GPU that is unusable.
	Unanswered resource.Unusable

	// Condition is a state without a value.
	Condition string
)

// MIG is MIG mode, with the mode after the next reset.
type MIG struct {
	Now     bool `json:"now"`
	Pending bool `json:"pending"`
}

// Clock is an SM clock lock as far as it is known.
type Clock struct {
	MHz  int         `json:"mhz"`                // 0 is none
	As   ClockSource `json:"as,omitempty"`       // "" for one that cosplay set
	Read int         `json:"read_mhz,omitempty"` // as verify read it under load
}

// ClockSource is how a clock lock is known.
type ClockSource string

const (
	ClockSeen    ClockSource = "seen"    // the SM clock indicates it
	ClockOther   ClockSource = "other"   // it is not the one that cosplay set
	ClockLifted  ClockSource = "lifted"  // it was lifted
	ClockUnknown ClockSource = "unknown" // set or lifted
)

const (
	IsPresent        Condition = "present"
	IsMissing        Condition = "missing"
	IsUp             Condition = "up"
	IsRebooted       Condition = "rebooted"
	IsVisible        Condition = "visible"
	IsInvisible      Condition = "invisible"
	IsAnswering      Condition = "answers"
	IsSilent         Condition = "silent"
	IsRunning        Condition = "running"
	IsStopped        Condition = "stopped"
	IsUnstarted      Condition = "never started"
	IsPaused         Condition = "paused"
	IsAsApplied      Condition = "as-applied"
	IsChanged        Condition = "changed"
	IsReplaced       Condition = "replaced-on-host"
	IsEarlier        Condition = "earlier"
	IsIntact         Condition = "intact"
	IsOfCatalog      Condition = "in-catalog"
	IsOfConfig       Condition = "in-configuration"
	IsWithoutCompute Condition = "no-compute-instance"
	IsInFile         Condition = "secret-in-file"
	IsInEnvironment  Condition = "secret-in-environment"
	IsSensitive      Condition = "sensitive"
	IsPlain          Condition = "not-sensitive"
	IsAny            Condition = "any"
	IsAsSet          Condition = "as-set"
)

// SettingValue is a value of a setting of a GPU.
func SettingValue(s resource.Setting, value int) Value {
	switch {
	case s.Mode():
		return Switch(value == resource.On)
	case s == resource.SMClock:
		return Clock{MHz: value}
	case s.Names() != nil:
		return Text(s.Text(value))
	}
	return Power(value)
}

func (Text) value()       {}
func (EnvValue) value()   {}
func (Names) value()      {}
func (Command) value()    {}
func (Bool) value()       {}
func (Switch) value()     {}
func (Power) value()      {}
func (Percent) value()    {}
func (Port) value()       {}
func (Count) value()      {}
func (Restarts) value()   {}
func (CPUs) value()       {}
func (Memory) value()     {}
func (GPU) value()        {}
func (UUID) value()       {}
func (ID) value()         {}
func (Slice) value()      {}
func (Taken) value()      {}
func (Volumes) value()    {}
func (Ports) value()      {}
func (Keys) value()       {}
func (Limits) value()     {}
func (User) value()       {}
func (MIG) value()        {}
func (Clock) value()      {}
func (Damage) value()     {}
func (Seconds) value()    {}
func (Moment) value()     {}
func (MPS) value()        {}
func (Unanswered) value() {}
func (Condition) value()  {}
