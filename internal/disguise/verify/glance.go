package verify

import "strings"

// GlanceSeconds is after how long the probe of a glance ends itself.
const GlanceSeconds = 5

// Glance is the question of a quick check: whether NVML shows the session its GPU.
func Glance(probe string) Question { return Question{Key: askProbe, Argv: []string{probe, "glance"}} }

// Glanced judges the answer. lost says why the session does not see its GPU, and broken, for a GPU that it sees, what
// differs from the target. Both are "" if all is well, and in an image that cannot run the probe.
func Glanced(w Wanted, out Output) (lost string, broken []Result) {
	if w.Container && out.absent() {
		return "", nil
	}
	said := parse(out.Text)
	if why, failed := said.failure("nvml.load", "nvml.init"); failed {
		return "NVML: " + why, nil
	}
	if _, answered := said.first("nvml.init"); !answered {
		return "NVML: " + strings.TrimPrefix(out.ended(), "nothing: "), nil
	}
	for _, r := range runAll(nvmlChecks, w, Inside{Answers: map[string]Output{askProbe: out}}, Exec) {
		if r.Outcome == Failed {
			broken = append(broken, r)
		}
	}
	return "", broken
}
