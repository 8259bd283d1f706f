package config_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/render"
)

func TestWrongConfigurations(t *testing.T) {
	names := append(glob(t, "testdata/wrong/*.hcl"), glob(t, "testdata/wrong/*.hcl.json")...)
	if len(names) < 95 {
		t.Errorf("only %d wrong configurations", len(names))
	}
	for _, path := range names {
		t.Run(nameOf(path), func(t *testing.T) {
			intent, diags, sources := loadCase(t, path)
			if !diags.HasErrors() {
				t.Fatal("no mistake was found")
			}
			if intent.Hosts != nil || intent.Sessions != nil {
				t.Error("a wrong configuration still gave hosts or sessions")
			}
			checkComplete(t, diags, sources)
			for _, d := range diags {
				if !nextStep.MatchString(d.Detail) {
					t.Errorf("%q does not say what to do: %s", d.Summary, d.Detail)
				}
			}
			golden(t, filepath.Join("testdata/wrong", nameOf(path)+".golden"), describe(t, intent.Files, diags))
			var data bytes.Buffer
			if err := render.DiagnosticsJSON(&data, diags, intent.Files); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata/wrong", nameOf(path)+".golden.json"), data.Bytes())
		})
	}
}

// nextStep matches the forms of a fix: an instruction or an example.
var nextStep = regexp.MustCompile(`\b(Add|Break|Pass|Set|Use|Change|Choose|Copy|Count|Declare|Did you mean|Get|Give|Keep|Leave|Make|Name|Put|Remove|Rename|Say|Try|Write|like|write)\b|It needs|can be used in env|alone means|has one slice`)

// nameOf returns the name of a case: its file name without the extension of the syntax.
func nameOf(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".hcl")
	return name
}

// describe returns the text of diagnostics, each preceded by the word that it is about.
func describe(t *testing.T, files map[string]*hcl.File, diags hcl.Diagnostics) []byte {
	var out bytes.Buffer
	for _, d := range diags {
		fmt.Fprintf(&out, "--- %s: %q\n", d.Subject, d.Subject.SliceBytes(files[d.Subject.Filename].Bytes))
		if err := hcl.NewDiagnosticTextWriter(&out, files, 78, false).WriteDiagnostic(d); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// misformatted matches what fmt writes for a verb without a value.
var misformatted = regexp.MustCompile(`%!.?\(`)

// badEnd matches the result of inserting one sentence into another.
var badEnd = regexp.MustCompile(`[^.][.!?;:,][.;:,]( |$)|[^\n ]  `)

// checkComplete rejects a diagnostic that does not state the mistake, its place and its cause.
func checkComplete(t *testing.T, diags hcl.Diagnostics, files map[string][]byte) {
	t.Helper()
	for _, d := range diags {
		checkExamples(t, d.Detail)
		switch src, known := files[d.Subject.Filename]; {
		case !known:
			t.Errorf("%q is about a file that is not there: %q", d.Summary, d.Subject.Filename)
		case d.Subject.Start.Line < 1 || d.Subject.End.Byte > len(src) || d.Subject.Start.Byte > d.Subject.End.Byte:
			t.Errorf("%q points outside of its file: %s", d.Summary, d.Subject)
		case d.Summary == "" || strings.TrimSpace(d.Detail) == "":
			t.Errorf("a diagnostic at %s lacks its summary %q or its detail %q", d.Subject, d.Summary, d.Detail)
		case d.Subject.Empty() && d.Subject.Start.Byte < len(src) && src[d.Subject.Start.Byte] != '\n' && src[d.Subject.Start.Byte] != '\r':
			t.Errorf("%q at %s points at no word", d.Summary, d.Subject)
		case misformatted.MatchString(d.Summary + d.Detail):
			t.Errorf("a diagnostic at %s is badly formatted: %s: %s", d.Subject, d.Summary, d.Detail)
		}
	}
}
