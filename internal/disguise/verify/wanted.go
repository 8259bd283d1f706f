package verify

import (
	"fmt"
	"strconv"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Wanted is what a session should show.
type Wanted struct {
	Name      string   // of the GPU
	UUID      string   // as shown
	Slice     string   // UUID of the MIG slice or of the whole GPU, by the state
	More      []string // UUIDs of the whole GPUs of the session's other devices, by the state
	MemoryMiB int
	Power     Power
	Host      string // the physical GPU's name in NVML, which must not appear
	LacksTF32 bool

	Env       map[string]string
	Private   map[string]bool                    // variables whose values cosplay does not check
	Secret    map[string]func(value string) bool // variables whose value is known only by its hash
	User      *resource.User                     // nil: any user
	Container bool
	CUDA      bool // the CUDA driver is disguised, too
	Simulated bool // the host is

	Place    string            // of the slice, in words
	Applied  resource.Settings // to the physical GPU
	PythonIn string            // the folder of the disguise's Python part, as the session sees it; "" without
}

// Locked reports whether the SM clock must be locked.
func (w Wanted) Locked() bool { return w.Applied.Value(resource.SMClock) != 0 }

// slices are the UUIDs of all devices, as a list, and numbers what programs that reach no other GPU call them.
func (w Wanted) slices() (uuids, numbers string) {
	uuids, numbers = w.Slice, "0"
	for i, uuid := range w.More {
		uuids, numbers = uuids+","+uuid, numbers+","+strconv.Itoa(i+1)
	}
	return uuids, numbers
}

// each writes something of all devices, by the number and the UUID of each.
func (w Wanted) each(write func(n int, uuid string) string) string {
	var all []string
	for n, uuid := range append([]string{w.UUID}, w.More...) {
		all = append(all, write(n, uuid))
	}
	return strings.Join(all, "; ")
}

// ofEach is a text that is the same for all devices.
func ofEach(text func(Wanted) string) func(Wanted) string {
	return func(w Wanted) string { return w.each(func(int, string) string { return text(w) }) }
}

// devices is their number, with the word for one of them, as in "1 GPU".
func (w Wanted) devices(word string) string { return strconv.Itoa(1+len(w.More)) + " " + word }

// Power returns the limits to show, in mW.
type Power struct{ Limit, Default, Min, Max int }

// Inside is the answers of a session's programs, entered in one way.
type Inside struct {
	Way     Way
	Barred  string            // why no program could run; "" if one could
	Vacant  string            // why there is no place for programs, and nothing is wrong; "" if there is one
	Answers map[string]Output // by the question's key
}

// Output is a program's output and exit status.
type Output struct {
	Text  string // standard output
	Error string // standard error, or why it did not run
	Code  int
}

// Observed is what cosplay sees from outside of a session.
type Observed struct {
	SliceUUID string            // of the slice at the session's place; "" if there is none
	Live      *resource.GPU     // nil: see NoGPU
	NoGPU     prose.Advice      // on a GPU that cannot be read: "unusable: GPU is lost (15) ..."
	LockLost  bool              // the applied clock lock is known to be lost
	Load      Load              // of the GPU whose clock lock is to be proven
	Bypassed  uint64            // bytes of the slice in use that are not accounted for; see Unaccounted
	Altered   map[string]string // by check of files: how they differ from the manifest, in words
}

// Question is a program to run in a session.
type Question struct {
	Key   string
	Argv  []string
	Stdin string
}

// The keys of the questions, besides those of nvidia-smi's views.
const (
	askWho    = "who"
	askProbe  = "probe"
	askPython = "python"
)

// Questions returns what to run in a session, in order; Follow returns the last one. who and probe are the paths of
// these programs as the session sees them.
func Questions(who, probe string) []Question {
	all := []Question{{Key: askWho, Argv: []string{who}}}
	for _, v := range views {
		all = append(all, Question{Key: v.key, Argv: append([]string{"nvidia-smi"}, v.args...)})
	}
	return append(all, Question{Key: askProbe, Argv: []string{probe}})
}

// DeviceQuestion asks CUDA about a later device, which counts from 1.
func DeviceQuestion(probe string, device int) Question {
	return Question{Key: askProbe, Argv: []string{probe, "device", strconv.Itoa(device)}}
}

// records are keys and values, each between zeros: a key may occur several times.
type records map[string][]string

func parse(text string) records {
	all := records{}
	for _, one := range strings.Split(text, "\x00") {
		if key, value, ok := strings.Cut(one, " "); ok && !strings.ContainsAny(key, "\n\r") {
			all[key] = append(all[key], value)
		}
	}
	return all
}

func (r records) first(key string) (string, bool) {
	if len(r[key]) == 0 {
		return "", false
	}
	return r[key][0], true
}

func (r records) numbers(key string, want int) ([]uint64, bool) {
	value, ok := r.first(key)
	words := strings.Fields(value)
	if !ok || len(words) != want {
		return nil, false
	}
	all := make([]uint64, want)
	for i, word := range words {
		var err error
		if all[i], err = strconv.ParseUint(word, 10, 64); err != nil {
			return nil, false
		}
	}
	return all, true
}

// failure is the first text of some records that is not "ok"; a missing record is no failure.
func (r records) failure(keys ...string) (why string, failed bool) {
	for _, key := range keys {
		if value, there := r.first(key); there && value != "ok" {
			return value, true
		}
	}
	return "", false
}

// reading reads the records that a check needs. If one is missing or has another form, lacks is set and the result of
// the check does not count.
type reading struct {
	records
	lacks bool
	asked []string // keys of the records of numbers that the check needs
}

func (r *reading) text(key string) string {
	value, ok := r.first(key)
	r.lacks = r.lacks || !ok
	return value
}

// need reads a record of numbers; if it is missing, they are zeros.
func (r *reading) need(key string, want int) []uint64 {
	r.asked = append(r.asked, key)
	all, ok := r.numbers(key, want)
	if !ok {
		r.lacks = true
		return make([]uint64, want)
	}
	return all
}

// refusal is the first error in place of numbers, which is the result of the check; "" if there is none.
func (r *reading) refusal() string {
	for _, key := range r.asked {
		if value, _ := r.first(key); strings.HasPrefix(value, "error") {
			return key + ": " + value
		}
	}
	return ""
}

const mib = 1 << 20

// inMiB formats bytes, as whole MiB if possible.
func inMiB(bytes uint64) string {
	if bytes%mib == 0 {
		return fmt.Sprintf("%d MiB", bytes/mib)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/mib)
}

func wantsName(w Wanted) string   { return w.Name }
func wantsUUID(w Wanted) string   { return w.UUID }
func wantsMemory(w Wanted) string { return fmt.Sprintf("%d MiB", w.MemoryMiB) }

func (w Wanted) memory() uint64 { return uint64(w.MemoryMiB) * mib }

// Shells and engines print these for programs that they could not run.
const (
	cannotRun = 126
	notFound  = 127
)

// absent reports whether the program or its loader does not exist. Older engines report such a program as not
// executable.
func (o Output) absent() bool {
	return o.Code == notFound || o.Code == cannotRun && (strings.Contains(o.Error, "not found") || strings.Contains(o.Error, "no such file"))
}

// ended describes how a program ended that printed too little.
func (o Output) ended() string {
	words := "nothing was said"
	if o.Code != 0 {
		words = fmt.Sprintf("nothing: it ended with code %d", o.Code)
	}
	said := o.Error
	if o.Code == cannotRun {
		said += " " + o.Text // the engine's reason
	}
	if said = strings.Join(strings.Fields(said), " "); said != "" {
		words += ": " + said
	}
	return words
}
