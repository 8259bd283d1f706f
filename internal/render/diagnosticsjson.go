package render

import (
	"bytes"
	"io"

	"github.com/hashicorp/hcl/v2"
)

// diagnosticJSON is a diagnostic as data, by the names that Terraform has.
type diagnosticJSON struct {
	Severity string       `json:"severity"`
	Summary  string       `json:"summary"`
	Detail   string       `json:"detail,omitempty"`
	Range    *rangeJSON   `json:"range,omitempty"`
	Snippet  *snippetJSON `json:"snippet,omitempty"` // where the source is at hand
}

type rangeJSON struct {
	File  string  `json:"filename"`
	Start posJSON `json:"start"`
	End   posJSON `json:"end"`
}

type posJSON struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// snippetJSON is the line of the source that a diagnostic is about. Offsets are
// bytes in the code.
type snippetJSON struct {
	Context string `json:"context,omitempty"` // the block around it: session "worker"
	Code    string `json:"code"`
	Line    int    `json:"start_line"`
	Start   int    `json:"highlight_start_offset"`
	End     int    `json:"highlight_end_offset"`
}

// DiagnosticsJSON writes diagnostics as data, with the source that files hold.
func DiagnosticsJSON(w io.Writer, diags hcl.Diagnostics, files map[string]*hcl.File) error {
	errors := 0
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			errors++
		}
	}
	return writeJSON(w, struct {
		FormatVersion int              `json:"format_version"`
		Valid         bool             `json:"valid"`
		Errors        int              `json:"error_count"`
		Warnings      int              `json:"warning_count"`
		Diagnostics   []diagnosticJSON `json:"diagnostics"`
	}{formatVersion, errors == 0, errors, len(diags) - errors, diagnosticsJSON(diags, files)})
}

func diagnosticsJSON(diags hcl.Diagnostics, files map[string]*hcl.File) []diagnosticJSON {
	all := []diagnosticJSON{}
	for _, d := range diags {
		one := diagnosticJSON{Severity: "error", Summary: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagWarning {
			one.Severity = "warning"
		}
		if r := d.Subject; placed(d) {
			one.Range = &rangeJSON{File: r.Filename,
				Start: posJSON{r.Start.Line, r.Start.Column, r.Start.Byte},
				End:   posJSON{r.End.Line, r.End.Column, r.End.Byte}}
			one.Snippet = snippet(*r, files[r.Filename])
		}
		all = append(all, one)
	}
	return all
}

// snippet is the line that a range begins in.
func snippet(r hcl.Range, file *hcl.File) *snippetJSON {
	if file == nil || r.Start.Byte > len(file.Bytes) {
		return nil
	}
	start := bytes.LastIndexByte(file.Bytes[:r.Start.Byte], '\n') + 1
	end := len(file.Bytes)
	if n := bytes.IndexByte(file.Bytes[r.Start.Byte:], '\n'); n >= 0 {
		end = r.Start.Byte + n
	}
	return &snippetJSON{Context: enclosing(file, r.Start.Byte), Code: string(file.Bytes[start:end]), Line: r.Start.Line,
		Start: r.Start.Byte - start, End: min(r.End.Byte, end) - start}
}
