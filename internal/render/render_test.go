package render

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files again")

// styles are the looks that each golden holds, one under the other.
var styles = []struct {
	name  string
	style Style
}{
	{"plain, 100 columns", Style{}},
	{"plain, 80 columns", Style{Width: 80}},
	{"plain, 60 columns", Style{Width: 60}},
	{"coloured, UTF-8, 100 columns", Style{Color: true, Unicode: true, Width: 100}},
	{"UTF-8, 160 columns", Style{Unicode: true, Width: 160}},
}

func shown(s screen, style Style) string {
	var b bytes.Buffer
	s.show(&b, style)
	return b.String()
}

func TestScreens(t *testing.T) {
	known := map[string]bool{}
	for _, s := range screens() {
		file := filepath.Join("testdata", s.name+".golden")
		known[file] = true
		var got strings.Builder
		for _, look := range styles {
			fmt.Fprintf(&got, "===== %s\n%s", look.name, shown(s, look.style))
		}
		compare(t, file, got.String())
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f] {
			t.Errorf("%s belongs to no screen", f)
		}
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%v; go test -update writes it", err)
		return
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestNothingWraps holds every line of every screen within its width.
func TestNothingWraps(t *testing.T) {
	for _, s := range screens() {
		for _, width := range []int{60, 80, 100, 120, 160} {
			for _, unicode := range []bool{false, true} {
				for _, verbose := range []bool{false, true} {
					text := shown(s, Style{Width: width, Unicode: unicode, Verbose: verbose})
					for _, l := range strings.Split(text, "\n") {
						// A word that is longer than the screen stays whole.
						if columns(l) > width && (width > 60 || !strings.HasSuffix(s.name, "long-name")) {
							t.Errorf("%s at %d columns, verbose %t: %d columns:\n%s", s.name, width, verbose, columns(l), l)
						}
					}
				}
			}
		}
	}
}

// TestColourCarriesNothing takes the colour away: the text is the same.
func TestColourCarriesNothing(t *testing.T) {
	for _, s := range screens() {
		coloured, without := shown(s, Style{Color: true}), shown(s, Style{})
		if strings.Contains(without, "\x1b") {
			t.Errorf("%s: there is colour without Color", s.name)
		}
		if got := escapes.ReplaceAllString(coloured, ""); got != without {
			t.Errorf("%s: colour changes the text:\n%s", s.name, cmp.Diff(without, got))
		}
	}
}

// TestASCII keeps line-drawing characters and arrows to UTF-8 locales.
func TestASCII(t *testing.T) {
	for _, s := range screens() {
		for i, r := range shown(s, Style{}) {
			if r >= 0x80 {
				t.Errorf("%s: %q at byte %d without Unicode", s.name, r, i)
				break
			}
		}
	}
}

// TestTidy finds blanks at ends of lines, double empty lines and a missing end
// of the last line.
func TestTidy(t *testing.T) {
	for _, s := range screens() {
		for _, look := range styles {
			text := escapes.ReplaceAllString(shown(s, look.style), "")
			if strings.Contains(text, " \n") || strings.Contains(text, "\n\n\n") || strings.HasPrefix(text, "\n") || strings.HasSuffix(text, "\n\n") || text != "" && !strings.HasSuffix(text, "\n") {
				t.Errorf("%s, %s is untidy:\n%q", s.name, look.name, text)
			}
		}
	}
}
