package image

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"cosplay/internal/pattern"
)

// The limits of a report.
const (
	tailLines  = 12 // of output, for the error of a failed build
	quietLines = 50 // of output, between two lines of progress in a step
	stepLength = 72 // characters of an instruction or such a line
)

// noAptGet is the exit code of the Dockerfile if the base has no apt-get.
const noAptGet = "42"

var (
	stepWords     = pattern.Of(`(?i)^step (\d+/\d+) ?: (.*)`)                                // of the classic builder
	buildKitStep  = pattern.Of(`^#\d+ \[(?:\S+ )?(\d+/\d+)\] (.*)`)                          // of BuildKit
	buildKitWords = pattern.Of(`^#\d+ \d+\.\d+ (.*)`)                                        // of a program in a step of BuildKit
	engineWords   = pattern.Of(`^( ---> |Removing intermediate )`)                           // what the classic builder adds
	inkWords      = pattern.Of(`\x1b\[[0-9;]*m`)                                             // in which the classic builder writes errors
	exitWords     = pattern.Of(`(?:returned a non-zero code:|exit code:|exit status) (\d+)`) // of either, and of podman
)

// report turns the output of a builder into one line a step, and keeps the last lines.
type report struct {
	say      func(string)
	buildKit bool
	partial  string // a line that has not ended yet
	step     string
	lines    int // of output in this step
	tail     []string
	verdict  string // the last message of BuildKit
}

// Write reads the output of a builder.
func (r *report) Write(p []byte) (int, error) {
	r.hear(string(p))
	return len(p), nil
}

func (r *report) hear(s string) {
	whole := r.partial + s
	end := strings.LastIndexAny(whole, "\r\n") + 1
	r.partial = whole[end:]
	for line := range strings.FieldsFuncSeq(whole[:end], func(c rune) bool { return c == '\n' || c == '\r' }) {
		r.line(line)
	}
}

func (r *report) end() { r.hear("\n") }

func (r *report) line(line string) {
	line = inkWords().ReplaceAllString(line, "")
	steps := stepWords
	if r.buildKit {
		steps = buildKitStep
	}
	switch step := steps().FindStringSubmatch(line); {
	case step != nil:
		r.begin(fmt.Sprintf("Step %s: %s", step[1], shortened(step[2])))
	case !r.buildKit:
		if !engineWords().MatchString(line) {
			r.keep(line)
		}
	case strings.HasPrefix(line, "#"):
		if words := buildKitWords().FindStringSubmatch(line); words != nil {
			r.keep(words[1])
		}
	case strings.HasPrefix(line, "ERROR") || !strings.HasPrefix(r.verdict, "ERROR"):
		r.verdict = line
	}
}

// begin starts a step. BuildKit repeats the name of a step now and then.
func (r *report) begin(step string) {
	if step == r.step {
		return
	}
	r.step, r.lines, r.tail = step, 0, nil
	r.say(step)
}

func (r *report) keep(line string) {
	if line = strings.TrimSpace(line); line == "" {
		return
	}
	if r.lines++; r.lines%quietLines == 0 {
		r.say("  " + shortened(line))
	}
	r.tail = append(r.tail, line)
	r.tail = r.tail[max(0, len(r.tail)-tailLines):]
}

// shortened is an instruction on one line, with an end if it is too long.
func shortened(instruction string) string {
	all := []rune(strings.Join(strings.Fields(instruction), " "))
	if len(all) <= stepLength {
		return string(all)
	}
	return string(all[:stepLength-3]) + "..."
}

// asItIs is the advice for every unusable base.
const asItIs = "Any image can be a session's as it is, without being built upon: write image = %q in cosplay.hcl"

// noMirror are signs that apt-get did not reach its mirror.
var noMirror = pattern.Of(`Temporary failure resolving|Could not resolve|Could not connect|Cannot initiate the connection|Failed to fetch`)

// failure says what went wrong, and how to fix it.
func (r *report) failure(ctx context.Context, o BuildOptions, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("building %s: %w", o.Tag, context.Cause(ctx))
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) && r.verdict != "" {
		err = errors.New(r.verdict)
	}
	tail, code := strings.Join(r.tail, "\n  "), ""
	if words := exitWords().FindStringSubmatch(err.Error()); words != nil {
		code = words[1]
	}
	if code == noAptGet || strings.Contains(err.Error()+tail, "stat /bin/sh: no such file") {
		return fmt.Errorf("%s cannot be built upon: it has no apt-get, so it is no Debian or Ubuntu, nor derived of one. "+
			"Choose such a base with cosplay build --base IMAGE.\n"+asItIs, o.Base, o.Base)
	}
	why := fmt.Sprintf("building %s upon %s failed", o.Tag, o.Base)
	if r.step != "" {
		why += " in " + strings.ToLower(r.step[:1]) + r.step[1:]
	}
	if code != "" {
		err = fmt.Errorf("exit code %s", code) // the message only repeats the step
	}
	next := fmt.Sprintf("See the lines above, and choose another base with cosplay build --base IMAGE if it is the base's fault.\n"+asItIs, o.Base)
	if noMirror().MatchString(tail) {
		next = "The build cannot reach the mirror of the base's packages: check the network and DNS of the engine's machine; a proxy belongs under proxies in ~/.docker/config.json"
	}
	if tail != "" {
		tail = "\n  " + tail
	}
	return fmt.Errorf("%s: %w%s\n%s", why, err, tail, next)
}
