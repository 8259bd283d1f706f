//go:build cgo && linux

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// NVML has no public function for the length of time slices, so the agent runs nvidia-smi.

const setTimeSlice = "nvidia-smi compute-policy --set-timeslice"

// timeSliceCalls are the commands of nvidia-smi that the agent runs.
var timeSliceCalls = []Call{
	{Name: resource.ReadTimeSlice, Feature: resource.FeatureTimeSlice, Without: "the length of time slices is not managed"},
	{Name: setTimeSlice, Feature: resource.FeatureTimeSlice, Set: true, Without: "the first apply that needs it finds out; from then on the length of time slices is not managed", Destroy: Leaves},
}

// smiPaths are where the driver's packages install nvidia-smi. An agent that works as root for others runs it from there
// alone, and only if no other user can change it: PATH is the user's.
var smiPaths = []string{"/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi"}

// smiPatience is how long one command of nvidia-smi may take. It is a variable for tests.
var smiPatience = 4 * time.Second

// findSMI returns the path of nvidia-smi for an agent, which may be privileged.
func findSMI(privileged bool, paths []string) (string, error) {
	if !privileged {
		path, err := exec.LookPath("nvidia-smi")
		if errors.Is(err, exec.ErrNotFound) {
			err = errors.New("there is none in PATH")
		}
		return path, err
	}
	var untrusted error
	for _, path := range paths {
		real, err := trustedFile(path)
		if err == nil {
			return real, nil
		}
		if !os.IsNotExist(err) {
			untrusted = errors.Join(untrusted, err)
		}
	}
	if untrusted != nil {
		return "", fmt.Errorf("the agent does not run it as root: %w", untrusted)
	}
	return "", fmt.Errorf("there is none at %s", prose.Or(paths))
}

// readsTimeSlices notes for a request whether it needs the lengths of time slices. Most do not, and nvidia-smi takes a
// while.
func (l *nvmlLibrary) readsTimeSlices(r request) {
	l.smiHangs = false
	l.timeSlices = r.TimeSlices || r.Setting != nil && *r.Setting == resource.TimeSlice ||
		r.Take != nil && r.Take.Baseline.Has(resource.TimeSlice)
}

// managesTimeSlice reports whether the ledger has the setting: a project has to restore it, or cosplay has set it.
func (d device) managesTimeSlice() bool {
	if d.lib.book.Dir == "" {
		return false
	}
	page, read := d.lib.reading[d.uuid]
	if d.lib.reading == nil {
		var err error
		page, err = d.lib.entry(request{GPU: d.uuid}).Page()
		read = err == nil
	}
	return read && len(page.Holders) > 0 && (page.Baseline.Has(resource.TimeSlice) || page.Set.Has(resource.TimeSlice) || page.Was.Has(resource.TimeSlice))
}

func (d device) readTimeSlice(gpu *resource.GPU) error {
	if !d.lib.timeSlices && !d.managesTimeSlice() {
		return nil
	}
	length, err := d.timeSlice()
	if err == nil {
		gpu.TimeSlice = &length
	}
	return err
}

func (d device) timeSlice() (int, error) {
	table, err := d.smi(resource.ReadTimeSlice, "-l")
	if err != nil {
		return 0, err
	}
	length, err := parseTimeSlice(table)
	if err != nil {
		return 0, &Error{Call: resource.ReadTimeSlice, GPU: d.name, Code: int(nvml.ERROR_NOT_SUPPORTED), Message: err.Error()}
	}
	return length, nil
}

func (d device) setTimeSlice(length int) error {
	if _, err := d.smi(setTimeSlice, fmt.Sprintf("--set-timeslice=%d", length)); err != nil {
		return err
	}
	now, known, err := readBack(d.timeSlice())
	if known && now != length {
		return d.notTaken(setTimeSlice, "the time slice is "+resource.TimeSlice.Text(now))
	}
	return err
}

// smi runs nvidia-smi compute-policy for the GPU, and returns what it prints. call names the command in errors.
func (d device) smi(call, option string) (string, error) {
	l := d.lib
	l.now.Store(&site{call: call, gpu: d.name})
	if l.smiHangs {
		return "", d.failed(call, nvml.ERROR_TIMEOUT, "nvidia-smi does not answer")
	}
	program, err := findSMI(l.guard != nil, smiPaths)
	if err != nil {
		return "", d.failed(call, nvml.ERROR_FUNCTION_NOT_FOUND, err.Error())
	}
	ctx, cancel := context.WithTimeout(context.Background(), smiPatience)
	defer cancel()
	command := exec.CommandContext(ctx, program, "compute-policy", "-i", d.uuid, option)
	command.WaitDelay = time.Second
	command.Env = smiEnvironment(l.guard != nil, l.path)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	err = command.Run()
	text := outsideTable(said.String())
	code, words := smiCode(text)
	switch {
	case ctx.Err() != nil:
		l.smiHangs = true // for the other GPUs of this request, too
		return "", d.failed(call, nvml.ERROR_TIMEOUT, fmt.Sprintf("nvidia-smi does not answer within %s", smiPatience))
	case words != "": // whatever its exit status
		return "", d.failed(call, code, words)
	case err == nil:
		return said.String(), nil
	case text == "":
		text = err.Error()
	}
	return "", d.failed(call, code, text[:min(len(text), maxSMIText)])
}

// outsideTable is the first line that nvidia-smi prints outside a table, "" if there is none.
func outsideTable(said string) string {
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '+' && line[0] != '|' {
			return line
		}
	}
	return ""
}

// maxSMIText bounds what an error repeats of nvidia-smi, in bytes.
const maxSMIText = 200

// smiEnvironment is the environment of nvidia-smi: with the folder of the host's NVML library, unless it is the system's. An
// agent that works as root for others passes nothing else.
func smiEnvironment(privileged bool, library string) []string {
	var env []string
	if !privileged {
		env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LD_LIBRARY_PATH=") && library != systemLibrary })
	}
	if library != systemLibrary {
		env = append(env, "LD_LIBRARY_PATH="+filepath.Dir(library))
	}
	return append(env, "LC_ALL=C")
}

// smiCode is NVML's code for a message of nvidia-smi, whose exit status is 255 for most, and the words that name it; no
// words where the message is another one.
func smiCode(text string) (code nvml.Return, words string) {
	for _, known := range smiWords {
		if strings.Contains(text, known.words) {
			return known.code, known.words
		}
	}
	return nvml.ERROR_UNKNOWN, ""
}

var smiWords = []struct {
	code  nvml.Return
	words string
}{
	{nvml.ERROR_NOT_SUPPORTED, "Not Supported"}, {nvml.ERROR_NO_PERMISSION, "Insufficient Permissions"},
	{nvml.ERROR_GPU_IS_LOST, "GPU is lost"}, {nvml.ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
}

// parseTimeSlice reads the length from the table that nvidia-smi compute-policy -l prints for one GPU:
//
//	| GPU     Name           Value        |
//	|=====================================|
//	| 0       Timeslice      Default      |
func parseTimeSlice(table string) (int, error) {
	found := -1
	for line := range strings.Lines(table) {
		words := strings.Fields(strings.Trim(strings.TrimSpace(line), "|"))
		if len(words) != 3 || words[1] != "Timeslice" {
			continue
		}
		if found >= 0 {
			return 0, errors.New("nvidia-smi prints the time slice of several GPUs")
		}
		if found = slices.Index(resource.TimeSlices[:], strings.ToLower(words[2])); found < 0 {
			return 0, fmt.Errorf("nvidia-smi prints a time slice that cosplay does not know: %q", words[2])
		}
	}
	if found < 0 {
		return 0, errors.New("nvidia-smi prints no time slice")
	}
	return found, nil
}
