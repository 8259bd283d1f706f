package config

import (
	"slices"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Block is a kind of block of the language: its purpose and its content. Diagnostics, the reference and the schema
// for editors are all generated from it.
type Block struct {
	Name        string      // "session"
	Label       string      // an example of its label: "worker"; "" if it has none
	Description string      // one line
	Repeatable  bool        // whether a file can have several
	Dynamic     bool        // whether a dynamic block can stand for it
	Free        string      // what each attribute is if its name is free, as in locals; otherwise ""
	Attributes  []Attribute // in the order of the reference
	Blocks      []Block     // nested blocks

	what  string   // "a session"
	later []string // attributes and blocks that the language reserves and cosplay does not support yet
}

// Attribute is one attribute of a block.
type Attribute struct {
	Name        string
	Type        Type
	Words       []string // the words that are valid
	Unit        string   // "MHz"; "" for none
	Default     string   // as written in a file, or a description in parentheses; "" if required
	Required    bool
	Instead     string // an attribute that replaces this required one
	Unless      string // an attribute without which this one is required
	Common      bool   // equal in all instances of a block with count or for_each
	Change      Change // the effect of changing this attribute alone
	Description string // one line
	Example     string // a value as written in a file

	more func() []string // further words, which other packages register
}

func (a Attribute) words() []string {
	if a.more == nil {
		return a.Words
	}
	return slices.Concat(a.Words, a.more())
}

// Type is the type of an attribute's value.
type Type string

// The types.
const (
	Text       Type = "text"
	Word       Type = "word" // one of a few
	Texts      Type = "list of texts"
	Program    Type = "list of texts, or \"image\""
	TextMap    Type = "map of texts"
	Number     Type = "number"
	Whole      Type = "whole number"
	Flag       Type = "true or false"
	Size       Type = "size"       // "32GiB"
	Percentage Type = "percentage" // "10%"
	Duration   Type = "duration"   // "8h"
	Time       Type = "time"       // "2026-12-01T18:00:00Z"
	Path       Type = "path"       // absolute, from the project's folder, or from ~
	GPUName    Type = "GPU"        // index, UUID or PCI address
	GPUNames   Type = "list of GPUs"
	Port       Type = "port or \"auto\""
	MapOrSet   Type = "map or set of texts"
	Sessions   Type = "list of sessions" // session.a, without quotes
	TypeName   Type = "type"             // string, list(number)
	Anything   Type = "any value"

	SessionName Type = "session"                    // session.a, session.a[0]: without quotes
	Attributes  Type = "list of attributes, or all" // env, fit.tolerance: without quotes
	References  Type = "list of sessions and values"
)

// Change is the effect of a changed attribute on a session.
type Change string

// The effects of a change.
const (
	Nothing  Change = ""         // no effect by itself
	Update   Change = "update"   // processes keep running
	Replace  Change = "replace"  // the container is recreated in the same slice; a process session is updated
	Replaces Change = "replaces" // container and slice are recreated if another slice fits
)

// Schema returns the whole language: a block without a name that contains the top-level blocks. Callers must not
// modify it.
func Schema() Block { return fileSchema }

func (b *Block) attribute(name string) *Attribute {
	return first(b.Attributes, func(a *Attribute) bool { return a.Name == name })
}

func (b *Block) block(name string) *Block {
	return first(b.Blocks, func(inner *Block) bool { return inner.Name == name })
}

// first returns the first element that a function accepts; nil if there is none.
func first[T any](list []T, accepts func(*T) bool) *T {
	for i := range list {
		if accepts(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

func (b *Block) attributeNames() []string {
	return sortedTexts(b.Attributes, func(a Attribute) string { return a.Name })
}

func (b *Block) blockNames() []string {
	return sortedTexts(b.Blocks, func(inner Block) string { return inner.Name })
}

func (b *Block) required() []Attribute {
	return prose.Only(b.Attributes, func(a Attribute) bool { return a.Required })
}

var fileSchema = Block{
	what:   "a file",
	Blocks: []Block{cosplaySchema, variableSchema, localsSchema, targetSchema, hostSchema, sessionSchema, outputSchema, checkSchema, movedSchema, removedSchema, importSchema},
}

var cosplaySchema = Block{
	Name: "cosplay", what: "a cosplay block",
	Description: "Settings of cosplay itself for this project.",
	Attributes: []Attribute{
		{Name: "required_version", Type: Text, Default: "(any)", Example: `">= 0.1"`,
			Description: "The versions of cosplay that this project accepts."},
		{Name: "state", Type: Path, Default: `"cosplay.state.json"`, Example: `"../fleet.state.json"`,
			Description: "The path of the state file. --state overrides it."},
	},
}

var variableSchema = Block{
	Name: "variable", Label: "image", Repeatable: true, what: "a variable",
	Description: "A value that the user passes in; expressions read it as var.image.",
	Attributes: []Attribute{
		{Name: "type", Type: TypeName, Default: "any", Example: "list(number)",
			Description: "The type of the value. Attributes of an object can be optional(type, default)."},
		{Name: "default", Type: Anything, Default: "(the variable is required)", Example: `"cosplay:latest"`,
			Description: "The value if the user passes none."},
		{Name: "description", Type: Text, Default: `""`, Example: `"image of every worker"`,
			Description: "Its purpose, for readers."},
		{Name: "sensitive", Type: Flag, Default: "false", Example: "true",
			Description: "Whether cosplay hides the value in all output."},
		{Name: "nullable", Type: Flag, Default: "true", Example: "false",
			Description: "Whether null is a valid value. If false, the default replaces null."},
	},
	Blocks: []Block{validationSchema},
}

var validationSchema = Block{
	Name: "validation", Repeatable: true, what: "a validation block",
	Description: "A rule that the value must satisfy.",
	Attributes: []Attribute{
		{Name: "condition", Type: Flag, Required: true, Example: "var.workers > 0",
			Description: "The condition that must be true."},
		{Name: "error_message", Type: Text, Required: true, Example: `"at least one worker is needed"`,
			Description: "The message if the condition is false."},
	},
}

var localsSchema = Block{
	Name: "locals", Repeatable: true, what: "a locals block", Free: "any value, as local.NAME",
	Description: "Named values that every file of the project can use.",
}

var targetSchema = Block{
	Name: "target", Label: "lab-card", Repeatable: true, what: "a target",
	Description: "A target that is not in the catalog: an entry of the catalog with some values changed, or, without base, a GPU that the block describes as a whole.",
	Attributes: []Attribute{
		{Name: "base", Type: Text, Default: "(none)", Example: `"rtx-3090"`,
			Description: "The GPU to start from, in any common spelling of its name."},
		{Name: "name", Type: Text, Default: "(the base's)", Unless: "base", Example: `"NVIDIA GeForce RTX 3090"`,
			Description: "The name that nvidia-smi shows."},
		{Name: "vram", Type: Size, Unit: "MiB", Default: "(the base's)", Unless: "base", Example: `"20GiB"`,
			Description: "Its memory."},
		{Name: "compute_capability", Type: Text, Default: "(the base's)", Unless: "base", Example: `"8.6"`,
			Description: "Its compute capability. Without base the architecture, the rates that the block omits and the number formats of the tensor cores follow from it. With base it is the base's, and cannot be changed."},
		{Name: "sms", Type: Whole, Default: "(the base's)", Unless: "base", Example: "72",
			Description: "The number of SMs. cosplay computes the rates that the block omits from SMs and clock."},
		{Name: "boost_mhz", Type: Whole, Unit: "MHz", Default: "(the base's)", Unless: "base", Example: "1500",
			Description: "Its SM clock at full speed."},
		{Name: "bandwidth_gbs", Type: Number, Unit: "GB/s", Default: "(the base's)", Unless: "base", Example: "760",
			Description: "The bandwidth of its memory."},
		{Name: "bus_bits", Type: Whole, Unit: "bits", Default: "(the base's)", Unless: "base", Example: "384",
			Description: "The width of its memory bus."},
		{Name: "l2_mib", Type: Number, Unit: "MiB", Default: "(the base's)", Unless: "base", Example: "5",
			Description: "The size of its L2 cache."},
		{Name: "power_w", Type: Whole, Unit: "W", Default: "(the base's)", Unless: "base", Example: "300",
			Description: "Its power limit, as nvidia-smi shows it."},
		{Name: "pcie_generation", Type: Whole, Default: "(the base's)", Unless: "base", Example: "4",
			Description: "The generation of PCIe that it is connected by."},
		{Name: "fp32_tflops", Type: Number, Unit: "TFLOPS", Default: "(from SMs and clock)", Example: "30",
			Description: "Its FP32 rate."},
		{Name: "tensor_fp16_tflops", Type: Number, Unit: "TFLOPS", Default: "(from SMs and clock)", Example: "60",
			Description: "Its tensor rate for dense FP16 with FP32 accumulation; 0 for none."},
		{Name: "tensor_bf16_tflops", Type: Number, Unit: "TFLOPS", Default: "(from SMs and clock)", Example: "60",
			Description: "Its tensor rate for dense BF16; 0 for none."},
		{Name: "tensor_fp8_tflops", Type: Number, Unit: "TFLOPS", Default: "(from SMs and clock)", Example: "0",
			Description: "Its tensor rate for dense FP8; 0 for none."},
		{Name: "tensor_int8_tops", Type: Number, Unit: "TOPS", Default: "(from SMs and clock)", Example: "240",
			Description: "Its tensor rate for dense INT8; 0 for none."},
	},
}

var hostSchema = Block{
	Name: "host", Label: "lab", Repeatable: true, what: "a host",
	Description: "A machine with GPUs, and what cosplay may change on it. Without a host block, the project uses host \"local\", this machine.",
	Attributes: []Attribute{
		{Name: "simulate", Type: Text, Default: "(real hardware)", Example: `"8 x h200"`,
			Description: "Simulates a host: the number of GPUs and their model, or the path of a file of cosplay host export, relative to the project's folder."},
		{Name: "connect", Type: Text, Default: "(this machine)", Example: `"ssh://ada@gpu1"`,
			Description: "Where the machine is, for the ssh of your path with your configuration, keys and jump hosts: docs/rack.md. cosplay of the same version is installed there. Its sessions are over there, with their workspaces, volumes and images, and so are the other paths of the block."},
		{Name: "kubernetes", Type: Path, Default: "(a machine)", Example: `"cluster.json"`,
			Description: "The host is a Kubernetes cluster whose nodes run cosplay-node: the path of what kubectl get nodes,resourceslices,resourceclaims -A -o json printed. plan shows the fit, cosplay manifests prints the sessions for kubectl, and apply leaves them alone: docs/kubernetes.md. Cannot be combined with attributes other than namespace."},
		{Name: "namespace", Type: Text, Default: `"default"`, Example: `"lab"`,
			Description: "The namespace of the sessions of a Kubernetes cluster. Claims of other namespaces are foreign."},
		{Name: "compute", Type: Word, Words: Computes(), Default: `"cpu"`, Example: `"none"`,
			Description: "How programs compute on a simulated host. cpu: PyTorch's device \"cuda\" computes on the CPU, with the target's memory; a program that launches a kernel by CUDA's driver interface gets an error. shapes: likewise, but nothing is computed and no memory is needed: PyTorch's tensors have shapes and the target's memory, and no values, so that a large model shows in seconds whether it fits. none: such a launch succeeds and computes nothing, which tests code paths; PyTorch finds no GPU."},
		{Name: "nvml", Type: Path, Default: "(the system's)", Example: `"/opt/lib/libnvidia-ml.so.1"`,
			Description: "The path of an NVML library to use instead of the system's. Cannot be combined with simulate."},
		{Name: "runtime", Type: Word, Words: []string{RuntimeAuto}, more: func() []string { return resource.RuntimeNames("") }, Default: `"auto"`, Example: `"docker"`,
			Description: "Where sessions run: in containers or as processes. \"auto\" uses Docker if it is installed, and processes on a simulated host."},
		{Name: "gpus", Type: GPUNames, Default: "(all)", Example: `[0, "GPU-8f2a0000", "0000:84:00.0"]`,
			Description: "The GPUs to use, by index, UUID or PCI address. cosplay never changes the others."},
		{Name: "manage", Type: Texts, Words: resource.ManageWords(), Default: `["` + strings.Join(resource.ManageWords(), `", "`) + `"]`, Example: `["slices", "clocks"]`,
			Description: "What cosplay may change on the GPUs; with [] it changes nothing."},
		{Name: "sharing", Type: Texts, Words: []string{"mig", "compute-instance", "exclusive", "time-slice", "mps"}, Default: "(all)", Example: `["mig", "exclusive"]`,
			Description: "Which parts of a GPU sessions may have on this host, as the sharing of a session names them. Where it has neither mig nor exclusive, sessions that do not say share GPUs in the first way of the list."},
		{Name: "timeslice", Type: Word, Words: resource.TimeSlices, Default: "(not changed)", Example: `"short"`,
			Description: "How long the driver lets a process run before the next one, on GPUs that sessions share by time slices. cosplay sets it with nvidia-smi compute-policy and restores it."},
		{Name: "baseline_clock", Type: Whole, Unit: "MHz", Default: "(none)", Example: "1200",
			Description: "The clock lock that was set before cosplay, and that destroy restores. cosplay cannot read it from the driver. For users without root, the admin states it in /etc/cosplay/baseline-clocks."},
		{Name: "slow_neighbours", Type: Flag, Default: "false", Example: "true",
			Description: "Whether cosplay may change clock, power limit and time slice while foreign processes use the GPU."},
	},
}

var sessionSchema = Block{
	Name: "session", Label: "worker", Repeatable: true, what: "a session",
	Description: "One or several containers or process environments in which programs see the target GPU.",
	Attributes: []Attribute{
		{Name: "count", Type: Whole, Default: "(one session)", Common: true, Example: "7",
			Description: "The number of sessions of this block. count.index is the index of each, from 0."},
		{Name: "for_each", Type: MapOrSet, Default: "(one session)", Common: true, Example: `{ a = 11, b = 12 }`,
			Description: "Creates a session for each element, which reads it as each.key and each.value. Cannot be combined with count."},
		{Name: "depends_on", Type: Sessions, Default: "[]", Common: true, Change: Update, Example: "[session.server]",
			Description: "Session blocks that cosplay creates before this one and destroys after it."},
		{Name: "target", Type: Text, Required: true, Instead: "fraction", Change: Replaces, Example: `"rtx-2060"`,
			Description: "The GPU that the session presents, in any common spelling; cosplay ls lists all."},
		{Name: "fraction", Type: Percentage, Default: "(none)", Change: Replaces, Example: "0.33",
			Description: "Instead of target: the host's own GPU with this part of its memory. On a GPU with MIG the session gets the slice that is closest to this part of the rates, too; otherwise, and with sharing = \"time-slice\", it runs by turns with others. All GPUs of the host that it may use have to be of one model."},
		{Name: "host", Type: Text, Default: "(chosen by cosplay)", Change: Replaces, Example: `"lab"`,
			Description: "The session's host. Of several hosts, cosplay chooses one where the block does not name it, and the session stays there."},
		{Name: "hosts", Type: Texts, Default: "(all)", Change: Replaces, Example: `["gpu1", "gpu2"]`,
			Description: "In place of host: the hosts of which cosplay chooses one."},
		{Name: "gpu", Type: GPUName, Default: "(placed by cosplay)", Change: Replaces, Example: "0",
			Description: "The session's GPU, by index, UUID or PCI address."},
		{Name: "gpus", Type: Whole, Unit: "GPUs", Default: "1", Change: Replaces, Example: "2",
			Description: "How many GPUs the session has: devices of the target or of the fraction, each on another GPU of the host, as a whole GPU or with sharing = \"time-slice\" or \"mps\". A CUDA program finds only one MIG device, so none of them is a slice."},
		{Name: "sharing", Type: Word, Words: []string{"auto", "mig", "compute-instance", "exclusive", "time-slice", "mps"}, Default: `"auto"`, Change: Replaces, Example: `"time-slice"`,
			Description: "Which part of a GPU the session may get: a MIG slice (mig), a whole GPU (exclusive), or either together with other sessions of the project, whose programs run by turns (time-slice), a part of the SMs of either by NVIDIA's Multi-Process Service (mps), or a compute instance beside those of other sessions of the project in one GPU instance (compute-instance). auto is a MIG slice or a whole GPU. Sessions that share a slice or a GPU have its memory divided between them, and nothing else isolates them: docs/sharing.md."},
		{Name: "slice", Type: Text, Default: "(chosen by cosplay)", Change: Replaces, Example: `"1c.2g.35gb"`,
			Description: "The profile of the session's MIG slice, as nvidia-smi mig -lgip or -lcip prints it, with or without \"MIG \". cosplay chooses a profile with other media engines or graphics, like 1g.18gb+me, only by this name. A compute instance, like 1c.2g.35gb, has a part of the SMs of its GPU instance, and its memory and bandwidth. It is alone there, except with sharing = \"compute-instance\". With a slot, like 1g.18gb@4, the first memory slice of its GPU instance is that one, as nvidia-smi mig -lgipp lists them; gpu says on which GPU. A fraction decides the profile itself, unless slice has a slot."},
		{Name: "oversubscribe", Type: Flag, Default: "false", Change: Replaces, Example: "true",
			Description: "Whether the session may share a whole GPU whose memory is less than the sum of the targets, with other sessions that state it too. Each keeps its own limit; when the others have taken the memory, CUDA's out of memory comes earlier."},
		{Name: "image", Type: Text, Default: `"cosplay:latest"`, Change: Replace, Example: `"pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime"`,
			Description: "The image of the container. cosplay builds cosplay:latest if it is missing."},
		{Name: "name", Type: Text, Default: "(cosplay-, the session and the project)", Change: Update, Example: `"lab-${count.index}"`,
			Description: "The name of the container. Without it, the name contains the session and the project's folder, so that other projects have other names; it stays when the session moves to another address. A change renames the container."},
		{Name: "pull", Type: Word, Words: []string{"missing", "never", "always"}, Default: `"missing"`, Change: Update, Example: `"always"`,
			Description: "When cosplay pulls the image. With always, also when the registry has another image by its name: the container is replaced."},
		{Name: "command", Type: Texts, Default: "(the session stays up, idle)", Change: Replace, Example: `["python", "train.py"]`,
			Description: "The program to run, with its arguments, as the session's user. With an entrypoint: its arguments."},
		{Name: "entrypoint", Type: Program, Default: "(none; ssh and exec reach the session)", Change: Replace, Example: `"image"`,
			Description: "The program to run, before the words of command. \"image\" runs the image's ENTRYPOINT, with command or else the image's CMD as its arguments. Without it, neither of the image's is run; [] says that this is intended, and plan does not report it. It runs in /workspace as the session's user: the image's WORKDIR and USER are not used."},
		{Name: "workspace", Type: Path, Default: "(the project's folder)", Change: Replace, Example: `"./exp/${count.index}"`,
			Description: "The folder that is mounted at /workspace. Created if missing, never deleted."},
		{Name: "env", Type: TextMap, Default: "{}", Change: Replace, Example: `{ SEED = 11 }`,
			Description: "Environment variables."},
		{Name: "ports", Type: Texts, Default: "[]", Change: Replace, Example: `["8888:8888", "0.0.0.0:6006:6006"]`,
			Description: "Ports of the container that are published on the host, as HOST:CONTAINER, ADDRESS:HOST:CONTAINER, with /udp, or as ranges. Without an address they are published on 127.0.0.1, for this machine only."},
		{Name: "network", Type: Text, Default: "(the engine's)", Change: Replace, Example: `"lab-net"`,
			Description: "The engine's network that the container joins, where its name is that of the session (worker-0). It must exist: docker network create. none is no network, host that of the machine; both are for sessions without ssh and ports."},
		{Name: "sudo", Type: Flag, Default: "(true with ssh on loopback, else false)", Change: Replace, Example: "false",
			Description: "Passwordless sudo in the session."},
		{Name: "strict", Type: Flag, Default: "false", Change: Replace, Example: "true",
			Description: "Whether PyTorch raises an error for tensors of a dtype that the target does not support, for example bfloat16 before Ampere."},
		{Name: "capability", Type: Word, Words: []string{resource.CapabilityTarget, resource.CapabilityReal}, Default: "(target where the CPU computes, else real)", Change: Replace, Example: `"target"`,
			Description: "Whose compute capability, SMs, memory and name torch.cuda.get_device_capability and get_device_properties return to a program: the target's, or those that CUDA reports. Compiled code asks CUDA's driver, and gets the GPU's compute capability in both cases."},
		{Name: "restart", Type: Word, Words: []string{"no", "always", "on-failure", "unless-stopped"}, Default: `"unless-stopped"`, Change: Update, Example: `"no"`,
			Description: "When the container engine restarts the container."},
		{Name: "ttl", Type: Duration, Default: "(none)", Change: Update, Example: `"8h"`,
			Description: "How long after it came up the session expires. cosplay expire ends expired sessions and keeps their workspaces; cosplay extend gives a session more time."},
		{Name: "idle_timeout", Type: Duration, Default: "(none)", Change: Update, Example: `"2h"`,
			Description: "How long without activity the session expires: no process on its slice, no exec, no ssh login."},
		{Name: "stop_at", Type: Time, Default: "(none)", Change: Update, Example: `"2026-12-01T18:00:00Z"`,
			Description: "The point in time at which the session expires."},
	},
	Blocks: []Block{fitSchema, volumeSchema, sshSchema, limitsSchema, lifecycleSchema},
	later:  []string{"cap"},
}

var outputSchema = Block{
	Name: "output", Label: "ssh", Repeatable: true, what: "an output",
	Description: "A value that apply prints and the state records. It can use live attributes of sessions.",
	Attributes: []Attribute{
		{Name: "value", Type: Anything, Required: true, Example: "[for s in session.worker : s.ssh_command]",
			Description: "The value."},
		{Name: "description", Type: Text, Default: `""`, Example: `"how to log in"`,
			Description: "Its purpose, for readers."},
		{Name: "sensitive", Type: Flag, Default: "false", Example: "true",
			Description: "Whether cosplay hides the value in all output and keeps it out of the state."},
	},
}

var checkSchema = Block{
	Name: "check", Label: "fast_enough", Repeatable: true, what: "a check",
	Description: "A condition that plan and apply check; if it is false, they print a warning. It can use live attributes of sessions.",
	Attributes: []Attribute{
		{Name: "condition", Type: Flag, Default: "(in assert blocks)", Example: "session.worker[0].fit.fp32_error < 0.1",
			Description: "The condition that should be true."},
		{Name: "error_message", Type: Text, Default: "(in assert blocks)", Example: `"the workers are too slow"`,
			Description: "The message if the condition is false."},
	},
	Blocks: []Block{{
		Name: "assert", Repeatable: true, what: "an assert block",
		Description: "One of several conditions, in Terraform's syntax.",
		Attributes: []Attribute{
			{Name: "condition", Type: Flag, Required: true, Example: "length(session.worker) > 0",
				Description: "The condition that should be true."},
			{Name: "error_message", Type: Text, Required: true, Example: `"there is no worker"`,
				Description: "The message if the condition is false."},
		},
	}},
}

var fitSchema = Block{
	Name: "fit", Dynamic: true, what: "a fit block",
	Description: "How cosplay chooses the slice. Where free slots do not fit a session, plan names the single session whose move makes room, if there is one, " +
		"and --replace=ADDRESS moves it.",
	Attributes: []Attribute{
		{Name: "prefer", Type: Word, Words: []string{"fp32", "bandwidth", "balanced"}, Default: `"fp32"`, Change: Replaces, Example: `"bandwidth"`,
			Description: "The property of the target to match first."},
		{Name: "tolerance", Type: Percentage, Default: `"10%"`, Change: Replaces, Example: `"5%"`,
			Description: "cosplay takes the smallest slice whose error is within the tolerance. With 0 it takes the slice with the smallest error."},
		{Name: "max_error", Type: Percentage, Default: "(none)", Change: Replaces, Example: `"50%"`,
			Description: "plan refuses a fit with a larger error. A session gets the whole of a GPU that a foreign process keeps from MIG mode only with max_error."},
	},
}

var volumeSchema = Block{
	Name: "volume", Repeatable: true, Dynamic: true, what: "a volume",
	Description: "A folder of the host, or a named volume, mounted in the container.",
	Attributes: []Attribute{
		{Name: "source", Type: Path, Required: true, Change: Replace, Example: `"./data"`,
			Description: "A path that starts with /, ./ or ~/. A bare name is a named volume; a new one belongs to the session's user."},
		{Name: "target", Type: Text, Required: true, Change: Replace, Example: `"/data"`,
			Description: "The absolute path in the container."},
		{Name: "read_only", Type: Flag, Default: "false", Change: Replace, Example: "true",
			Description: "Whether the container can only read it."},
	},
}

var sshSchema = Block{
	Name: "ssh", Dynamic: true, what: "an ssh block",
	Description: "How users log in.",
	Attributes: []Attribute{
		{Name: "enabled", Type: Flag, Default: "true", Change: Replace, Example: "false",
			Description: "Whether the session has an ssh server."},
		{Name: "port", Type: Port, Default: `"auto"`, Change: Replace, Example: "2200",
			Description: "The port on the host. \"auto\" chooses a free port and keeps it."},
		{Name: "bind", Type: Text, Default: `"127.0.0.1"`, Change: Replace, Example: `"0.0.0.0"`,
			Description: "The IP address of the host on which ssh listens."},
		{Name: "authorized_keys", Type: Texts, Default: "(the agent's keys, and each X.pub beside its private X)", Change: Replace, Example: `["~/.ssh/id_ed25519.pub"]`,
			Description: "The keys that may log in: paths of .pub files, or public keys with one line each."},
	},
}

var limitsSchema = Block{
	Name: "limits", Dynamic: true, what: "a limits block",
	Description: "Limits on the machine's resources that the container may use.",
	Attributes: []Attribute{
		{Name: "cpus", Type: Number, Unit: "CPUs", Default: "(no limit)", Change: Update, Example: "4",
			Description: "CPU time, as a number of CPUs. To remove the limit, cosplay recreates the container."},
		{Name: "memory", Type: Size, Unit: "MiB", Default: "(no limit)", Change: Update, Example: `"32GiB"`,
			Description: "Memory of the machine, not of the GPU. To remove the limit, cosplay recreates the container."},
		{Name: "shm_size", Type: Size, Unit: "MiB", Default: `"1GiB"`, Change: Replace, Example: `"8GiB"`,
			Description: "Size of /dev/shm, which data loaders use. A container keeps the size that it was created with."},
		{Name: "pids", Type: Whole, Unit: "processes", Default: "(no limit)", Change: Update, Example: "4096",
			Description: "The largest number of processes."},
	},
}
