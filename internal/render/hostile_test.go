package render_test

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/apply"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// steers is text that a terminal obeys; colours are the only such text that screens
// may have.
const steers = "\x1b[31m\x1b[2J\u009b2J\u202e\r\a"

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestOnlyOwnColours: in colour, too, nothing from outside steers a terminal, be the
// writer one that makes text safe or not.
func TestOnlyOwnColours(t *testing.T) {
	address := resource.One("a")
	live := resource.Live{Hosts: []resource.Host{{Name: "lab", Library: steers, Driver: steers, GPUs: []resource.GPU{{Host: "lab", UUID: "GPU-1",
		Model: resource.Model{Name: "NVIDIA " + steers}, Processes: []resource.Process{{PID: 1, Name: steers}}}}}}}
	prior := resource.Prior{Lineage: "l", GPUs: []resource.PriorGPU{{Host: "lab", UUID: "GPU-1"}}}
	view := render.PlanView{Config: steers, Prior: prior, Live: live, Notes: []resource.Note{{Step: steers, Slice: resource.LiveSlice{Slice: resource.Slice{Profile: steers}}, Kind: resource.SliceInUse}}, Flags: []string{steers},
		Warnings: hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: steers, Detail: steers, Subject: &hcl.Range{}}},
		Plan:     &plan.Plan{Diff: diff.Diff{Drift: []diff.Drift{{Class: diff.DisguiseBroken, Host: "lab", Session: &address, Name: steers, From: diff.Text(steers), To: diff.Damage(steers)}}}}}
	style := render.Style{Color: true, Unicode: true}
	for _, safe := range []bool{true, false} {
		var out bytes.Buffer
		var w io.Writer = &out
		if safe {
			w = terminal.NewWriter(&out)
		}
		render.Show(w, style, view)
		render.Drift(w, style, view)
		progress := render.NewProgress(w, style)
		progress.Event(apply.Event{Kind: apply.StepFailed, Step: plan.Step{ID: steers}, Total: 1})
		progress.Say(steers)
		progress.Close()
		text := colours.ReplaceAllStringFunc(out.String(), func(s string) string {
			if s == "\x1b[2J" {
				return s
			}
			return ""
		})
		if i := strings.IndexFunc(text, func(r rune) bool {
			return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r)
		}); i >= 0 {
			t.Errorf("%q", text[i:min(len(text), i+40)])
		}
		if !strings.Contains(text, `\x1b[31m\x1b[2J\u009b2J\u202e\r\x07`) {
			t.Errorf("what was hostile is not shown: %q", text)
		}
	}
}
