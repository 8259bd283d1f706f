package render

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

func inMarkdown(t *testing.T, v PlanView, s Style) string {
	t.Helper()
	var b bytes.Buffer
	if err := PlanMarkdown(&b, s, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMarkdown(t *testing.T) {
	drifted := one().applied().lose("worker-3", false).foreign(0, 0, "1g.18gb", 7)
	drifted.gpu(0, 0).SMClockMHz = 1980
	changed := one().applied().env(resource.Nth("worker", 2), "SEED", "13").without(func(s resource.Session) bool { return s.Address.Key.Index > 4 })
	changed.place(resource.Each("odd", "a|b`c*_d"), "3060", 0, 0, "2g.35gb", 4)
	nasty := one().applied().env(resource.Nth("worker", 1), "NOTE", "a ``` b\n# title | <b>")
	warned := one().view()
	warned.Warnings, warned.Files = mistakes()
	warned.Notes = []resource.Note{{Step: "session.worker[3]/slice", Kind: resource.StepDone}}
	for name, v := range map[string]PlanView{
		"first": one().view(), "nothing": one().applied().view(), "drift": drifted.view(), "change": changed.view(),
		"nasty": nasty.view(), "warned": warned, "fleet": rack().view(), "docker": blocks().view(),
	} {
		got := inMarkdown(t, v, Style{})
		compare(t, filepath.Join("testdata", "markdown", name+".md"), got)
		for _, s := range []Style{{Color: true}, {Width: 40}, {Unicode: true}} {
			if other := inMarkdown(t, v, s); other != got {
				t.Errorf("%s: %+v gives other Markdown", name, s)
			}
		}
		checkMarkdown(t, name, got)
	}
}

// checkMarkdown makes sure that the fence closes at its end alone, and that each line is plain text.
func checkMarkdown(t *testing.T, name, text string) {
	t.Helper()
	_, rest, _ := strings.Cut(text, "\n\n")
	fence := rest[:len(rest)-len(strings.TrimLeft(rest, "`"))]
	if len(fence) < 3 || strings.Count(rest, fence) != 2 || !strings.HasSuffix(rest, "\n"+fence+"\n") {
		t.Errorf("%s: the fence %q does not close at the end", name, fence)
	}
	if strings.ContainsAny(text, "\x1b\r"+hard) {
		t.Errorf("%s: colour or odd blanks", name)
	}
}
