//go:build cgo && linux

package agent

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// systemLibrary is what the loader finds when no path is given.
const systemLibrary = "libnvidia-ml.so.1"

type nvmlLibrary struct {
	nvml.Interface
	path       string
	book       ledger.Book                                      // of the host; without a folder none is kept
	turn       *ledger.Turn                                     // of the change under way
	permission func() error                                     // asks again whether that change is allowed
	users      func() prose.Advice                              // of the GPU or the slice that the change failed for
	was        string                                           // the value that the change replaces
	guard      *guard                                           // of a child that works as root for others; else nil
	client     *os.File                                         // where its requests come from; nil in some tests
	place      io.Closer                                        // counts this agent among those of its user while it runs
	waiter     ledger.Waiter                                    // its client's, in the queue
	wanted     request                                          // what the waiter waits for
	events     nvml.EventSet                                    // nil until the client waits for one
	sessions   func(question []byte) (answer []byte, err error) // as Service has it
	broken     error                                            // why it could not be opened

	timeSlices bool // the request needs the lengths of time slices
	smiHangs   bool // nvidia-smi did not answer during this request

	deadline time.Duration             // of the request under way
	reading  map[string]resource.Page  // the ledger's pages, by GPU, while the whole host is read
	known    map[string]bool           // symbols that were looked up and found
	indexes  map[string]int            // of the GPUs, by UUID, as they were last listed
	tables   map[string][]gpuProfile   // of the GPUs, by UUID, that this request has read
	profiles map[board][]gpuProfile    // likewise, for all GPUs of a kind
	clocks   map[board][]int           // MHz
	now      atomic.Pointer[site]      // the call under way, for the watchdog
	made     atomic.Pointer[int]       // the GPU instance of a slice that is being made, likewise
	created  atomic.Pointer[[]created] // what became of the slices of the request so far, likewise
}

type site struct{ call, gpu string }

// device is one GPU of the library; without a name, it is for calls about the host.
type device struct {
	nvml.Device
	lib   *nvmlLibrary
	index int
	uuid  string
	name  string // "GPU 0 (GPU-51a0...)", made once for the many calls
	constants
}

func (d device) String() string { return d.name }

func open(path string) (*nvmlLibrary, error) {
	if path == "" {
		path = systemLibrary
	}
	l := &nvmlLibrary{path: path, known: map[string]bool{}, tables: map[string][]gpuProfile{}, profiles: map[board][]gpuProfile{}, clocks: map[board][]int{}}
	// go-nvml loads and calls in one step, and a call of a missing symbol ends the
	// process: so look the symbols of Init up first.
	probe := dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := probe.Open(); err != nil {
		return l, &Error{Call: "dlopen", Message: strings.TrimSpace(err.Error()),
			Advice: prose.Advice{What: "No NVML library there.", Fix: "install the NVIDIA driver, name a library with nvml = \"...\", or simulate one: simulate = \"1 x h200\" in a host block, or cosplay run --simulate \"1 x h200\" where no configuration has a host block"}}
	}
	for _, symbol := range []string{"nvmlInit_v2", "nvmlShutdown", "nvmlErrorString"} {
		if err := probe.Lookup(symbol); err != nil {
			return l, missing(symbol, path)
		}
	}
	l.Interface = nvml.New(nvml.WithLibraryPath(path))
	l.now.Store(&site{call: "nvmlInit_v2"})
	if ret := l.Init(); ret != nvml.SUCCESS {
		return l, &Error{Call: "nvmlInit_v2", Code: int(ret), Message: ret.Error(),
			Advice: prose.Advice{What: "Possible cause: the driver is not loaded.", Fix: "load it (modprobe nvidia) until nvidia-smi lists the GPUs"}}
	}
	return l, nil
}

func (l *nvmlLibrary) close() {
	if l.broken == nil && l.Interface != nil {
		_ = l.Shutdown()
	}
}

// hung is the watchdog's answer: the call, and its GPU, that does not return.
func (l *nvmlLibrary) hung(after time.Duration) *Error {
	at := l.now.Load()
	if at == nil {
		at = &site{call: "dlopen"}
	}
	made := l.made.Load()
	return &Error{Call: at.call, GPU: at.gpu, Message: fmt.Sprintf("no answer within %s", after), GPUInstance: made, Sure: made != nil,
		Advice: prose.Advice{What: "The driver hangs.", Fix: "read the Xid errors in dmesg; then reset the GPU or reboot the machine"}}
}

func missing(symbol, path string) *Error {
	return &Error{Call: symbol, Code: int(nvml.ERROR_FUNCTION_NOT_FOUND), Message: fmt.Sprintf("the library %s has no such function", path),
		Advice: prose.Advice{What: "It is not an NVML library, or its driver is too old.", Fix: "install a newer driver (535 or later)"}}
}

// host is the device of calls that are not about one GPU.
func (l *nvmlLibrary) host() device { return device{lib: l} }

// call makes one NVML call, after making sure that the library has it.
func (d device) call(name string, f func() nvml.Return) error {
	if err := d.has(name); err != nil {
		return err
	}
	l := d.lib
	l.now.Store(&site{call: name, gpu: d.name})
	if ret := f(); ret != nvml.SUCCESS {
		return d.failed(name, ret, ret.Error())
	}
	return nil
}

// failed is the error of a call that answers a code.
func (d device) failed(call string, code nvml.Return, message string) *Error {
	return &Error{Call: call, GPU: d.name, Code: int(code), Message: message, Advice: adviceOn(call, code)}
}

// has returns an error if the library does not have a function.
func (d device) has(name string) error {
	l := d.lib
	if l.known[name] {
		return nil
	}
	if err := l.Extensions().LookupSymbol(name); err != nil {
		at := missing(name, l.path)
		at.GPU = d.name
		return at
	}
	l.known[name] = true
	return nil
}

// get is call for a function with one result.
func get[T any](d device, name string, f func() (T, nvml.Return)) (value T, err error) {
	err = d.call(name, func() (ret nvml.Return) {
		value, ret = f()
		return ret
	})
	return value, err
}

func get2[A, B any](d device, name string, f func() (A, B, nvml.Return)) (a A, b B, err error) {
	err = d.call(name, func() (ret nvml.Return) {
		a, b, ret = f()
		return ret
	})
	return a, b, err
}

// The codes that the client knows are NVML's: otherwise this does not compile.
var _ = [1]bool{}[(codeNotSupported-nvml.ERROR_NOT_SUPPORTED)|(codeNoPermission-nvml.ERROR_NO_PERMISSION)|
	(codeFunctionNotFound-nvml.ERROR_FUNCTION_NOT_FOUND)|(codeInsufficientResources-nvml.ERROR_INSUFFICIENT_RESOURCES)|
	(codeUnknown-nvml.ERROR_UNKNOWN)]

func isCode(err error, codes ...nvml.Return) bool {
	at, known := failedCall(err)
	return known && slices.Contains(codes, nvml.Return(at.Code))
}

// devices lists the GPUs that answer and those that do not: without a GPU that fell off
// the bus, cosplay can use the others.
func (l *nvmlLibrary) devices() (there []device, unusable []resource.Unusable, err error) {
	count, err := get(l.host(), "nvmlDeviceGetCount_v2", l.DeviceGetCount)
	if err != nil {
		return nil, nil, err
	}
	for i := range count {
		d, err := l.at(i)
		if err == nil {
			there = append(there, d)
			continue
		}
		lost, is := d.unusable(err)
		if !is {
			return nil, nil, err
		}
		unusable = append(unusable, lost)
	}
	return there, unusable, nil
}

// unusable is a GPU on which a required call failed; false if NVML returned no code.
func (d device) unusable(err error) (resource.Unusable, bool) {
	at, known := failedCall(err)
	if !known {
		return resource.Unusable{}, false
	}
	return resource.Unusable{Index: d.index, UUID: d.uuid, Call: at.Call, Code: at.Code, Message: at.Message}, true
}

func (l *nvmlLibrary) at(index int) (d device, err error) {
	d = device{lib: l, index: index, name: fmt.Sprintf("GPU %d", index)}
	d.Device, err = get(d, "nvmlDeviceGetHandleByIndex_v2", func() (nvml.Device, nvml.Return) { return l.DeviceGetHandleByIndex(index) })
	if err != nil {
		return d, err
	}
	uuid, err := get(d, "nvmlDeviceGetUUID", d.GetUUID)
	if err == nil {
		d.uuid, d.name = uuid, fmt.Sprintf("GPU %d (%s)", index, uuid)
	}
	d.constants = d.ask()
	return d, err
}

// device finds a GPU: first where it was the last time, since a host may have many.
func (l *nvmlLibrary) device(uuid string) (device, error) {
	if index, known := l.indexes[uuid]; known {
		if d, err := l.at(index); err == nil && d.uuid == uuid {
			return d, nil
		}
	}
	devices, unusable, err := l.devices()
	if err != nil {
		return device{}, err
	}
	l.indexes = map[string]int{}
	for _, d := range devices {
		l.indexes[d.uuid] = d.index
	}
	if i := slices.IndexFunc(devices, func(d device) bool { return d.uuid == uuid }); i >= 0 {
		return devices[i], nil
	}
	at := &Error{Call: "nvmlDeviceGetHandleByIndex_v2", GPU: uuid, Message: "the GPU is missing", Advice: prose.Advice{Fix: "run nvidia-smi -L, which lists the GPUs"}}
	if len(unusable) == 1 { // then it is that one, as far as cosplay can know
		at.Call, at.Code, at.Message, at.Advice = unusable[0].Call, unusable[0].Code, unusable[0].Message, adviceOn(unusable[0].Call, nvml.Return(unusable[0].Code))
	}
	return device{}, at
}

func (l *nvmlLibrary) read() (*resource.Host, error) {
	if l.book.Dir == "" {
		return l.readGPUs(nil)
	}
	return ofOneMoment(l.book, l.readGPUs)
}

// pages are those of the ledger. The stamp is another one after they have changed.
type pages interface {
	Read() ([]resource.Page, error)
	Stamp() (string, error)
}

// maxReads bounds the readings of a host that other projects change all the time: then an older ledger is better than none.
const maxReads = 5

// ofOneMoment reads the GPUs until the ledger is the same before and after. While a project gives its GPU back, the
// ledger of before and the GPU of after would look like a GPU that a project holds without MIG.
func ofOneMoment(ledger pages, gpus func([]resource.Page) (*resource.Host, error)) (host *resource.Host, err error) {
	before, err := ledger.Stamp()
	for range maxReads {
		if err != nil {
			return nil, err
		}
		var now []resource.Page
		if now, err = ledger.Read(); err != nil {
			return nil, err
		}
		if host, err = gpus(now); err != nil {
			return nil, err
		}
		var after string
		if after, err = ledger.Stamp(); before == after {
			host.Ledger = now
			return host, err
		}
		before = after
	}
	host.Ledger, err = ledger.Read()
	return host, err
}

// readGPUs reads the GPUs, whose pages of the ledger have been read.
func (l *nvmlLibrary) readGPUs(pages []resource.Page) (*resource.Host, error) {
	l.reading = map[string]resource.Page{}
	defer func() { l.reading = nil }()
	for _, page := range pages {
		l.reading[page.UUID] = page
	}
	host := &resource.Host{Library: l.path, Driver: l.driver(), Unbooked: l.book.Dir == ""}
	var err error
	if host.BootID, err = bootID(l.path); err != nil {
		return nil, err
	}
	if host.Queue, err = l.book.Waiting(time.Now()); err != nil {
		return nil, err
	}
	devices, unusable, err := l.devices()
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		gpu, err := d.read()
		if lost, is := d.unusable(err); is {
			unusable = append(unusable, lost)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, lacks := range l.book.GivenUp(gpu.UUID, host.BootID, host.Driver) {
			if !gpu.Without(lacks.Feature) {
				gpu.Degraded = append(gpu.Degraded, lacks)
			}
		}
		host.GPUs = append(host.GPUs, gpu)
	}
	slices.SortFunc(unusable, func(a, b resource.Unusable) int { return a.Index - b.Index })
	host.Unusable = unusable
	return host, nil
}

func (l *nvmlLibrary) driver() string {
	version, err := get(l.host(), "nvmlSystemGetDriverVersion", l.SystemGetDriverVersion)
	if err != nil {
		return resource.UnknownDriver
	}
	return version
}

// bootID identifies the boot of the host: the driver forgets slices and locks at a
// reboot. A simulated host has its own boots.
func bootID(library string) (string, error) {
	if dir := filepath.Dir(library); sim.Is(dir) {
		return sim.BootID(dir)
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot id of this machine: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}
