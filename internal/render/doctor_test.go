package render

import (
	"strings"
	"testing"

	"cosplay/internal/public"
)

// TestDoctorLine: what is to be copied is in one piece, however narrow the screen.
func TestDoctorLine(t *testing.T) {
	const rule = "ann ALL=(root) NOPASSWD: /usr/local/bin/cosplay agent --privileged --library /opt/nvidia/lib/libnvidia-ml.so.1"
	var out strings.Builder
	Show(&out, Style{Width: 40}, DoctorView{Findings: []public.Finding{{Host: "lab", Thing: "privilege", Found: strings.Repeat("no rule ", 20), Grade: "notice", Fix: "visudo", Line: rule}}})
	if !strings.Contains(out.String(), " "+rule+"\n") {
		t.Errorf("the line is broken:\n%s", out.String())
	}
}

// TestParagraphs: so it is in an error.
func TestParagraphs(t *testing.T) {
	long := strings.Repeat("words ", 20)
	p := newPage(Style{Width: 40})
	p.paragraphs(0, "  "+long+"\n    "+long)
	lines := strings.Split(p.out.String(), "\n")
	if last := lines[len(lines)-2]; last != "    "+strings.TrimSpace(long) || len(lines) < 5 {
		t.Errorf("got\n%s", p.out.String())
	}
}
