package verify

import (
	"fmt"
	"strings"

	"cosplay/internal/resource"
)

// Wanted is what a session should show.
type Wanted struct {
	Name      string // of the GPU
	UUID      string // as shown
	Slice     string // UUID of the MIG slice or of the whole GPU, by the state
	MemoryMiB int
	Power     Power
	Host      string // the GPU behind, as NVML names it: nothing may tell of it
	LacksTF32 bool

	Env       map[string]string
	Private   map[string]bool                    // variables whose values are the user's affair
	Secret    map[string]func(value string) bool // variables of which it is only known whether a value is theirs
	User      *resource.User                     // nil: nobody in particular
	Container bool
	CUDA      bool // the CUDA driver is disguised, too

	Place    string            // of the slice, in words
	Applied  resource.Settings // to the physical GPU
	PythonIn string            // the folder of the disguise's Python part, as the session sees it; "" without
}

// Locked reports whether the SM clock has to be locked.
func (w Wanted) Locked() bool { return w.Applied.Value(resource.SMClock) != 0 }

// Power are the limits that are shown, in mW.
type Power struct{ Limit, Default, Min, Max int }

// Inside is what the programs of a session said that was entered in one way.
type Inside struct {
	Way     Way
	Barred  string            // why nothing could be run; "" where it could
	Answers map[string]Output // by the question's key
}

// Output is what a program said, and how it ended.
type Output struct {
	Text  string // standard output
	Error string // standard error, or why it was not run
	Code  int
}

// Observed is what was seen from outside of a session.
type Observed struct {
	SliceUUID string            // of what is where the session's slice should be; "" is nothing
	Live      *resource.GPU     // nil: see NoGPU
	NoGPU     string            // what is wrong with a GPU that cannot be read: "unusable: GPU is lost (15) ..."
	Fix       string            // what brings that GPU back
	LockLost  bool              // the clock lock that was applied is known to be gone
	Load      Load              // of the GPU, where a clock lock is to be proven
	Altered   map[string]string // by check of files: what is not as it was written, in words
}

// Question is a program that is run in a session.
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

// Questions are what is asked in a session, in that order; Follow is the last. who
// and probe are the paths of those programs as the session sees them.
func Questions(who, probe string) []Question {
	all := []Question{{Key: askWho, Argv: []string{who}}}
	for _, v := range views {
		all = append(all, Question{Key: v.key, Argv: append([]string{"nvidia-smi"}, v.args...)})
	}
	return append(all, Question{Key: askProbe, Argv: []string{probe}})
}

// records are what a program told as key and value, each between zeros: a key
// may come more than once.
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

// numbers reads a record of so many numbers.
func (r records) numbers(key string, want int) ([]uint64, bool) {
	value, ok := r.first(key)
	words := strings.Fields(value)
	if !ok || len(words) != want {
		return nil, false
	}
	var all []uint64
	for _, word := range words {
		var n uint64
		if _, err := fmt.Sscan(word, &n); err != nil {
			return nil, false
		}
		all = append(all, n)
	}
	return all, true
}

const mib = 1 << 20

// inMiB writes bytes: whole MiB where they are.
func inMiB(bytes uint64) string {
	if bytes%mib == 0 {
		return fmt.Sprintf("%d MiB", bytes/mib)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/mib)
}

func (w Wanted) memory() uint64 { return uint64(w.MemoryMiB) * mib }

// Shells and engines say these of what they could not run.
const (
	cannotRun = 126
	notFound  = 127
)

// absent reports whether the program, or the loader that it takes, is not there.
// Older engines say of it that it cannot be run.
func (o Output) absent() bool {
	return o.Code == notFound || o.Code == cannotRun && (strings.Contains(o.Error, "not found") || strings.Contains(o.Error, "no such file"))
}

// ended tells how a program that said too little ended.
func (o Output) ended() string {
	words := "nothing was said"
	if o.Code != 0 {
		words = fmt.Sprintf("nothing: it ended with code %d", o.Code)
	}
	if said := strings.Join(strings.Fields(o.Error), " "); said != "" {
		words += ": " + said
	}
	return words
}
