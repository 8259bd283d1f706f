package render

import (
	"bytes"
	"io"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/public"
)

// DiagnosticsJSON writes diagnostics as data, with the source that files hold.
func DiagnosticsJSON(w io.Writer, diags hcl.Diagnostics, files map[string]*hcl.File) error {
	errors := 0
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			errors++
		}
	}
	return JSON(w, public.Diagnostics{Format: public.V1, Valid: errors == 0, Errors: errors, Warnings: len(diags) - errors, Diagnostics: diagnosticsJSON(diags, files)})
}

func diagnosticsJSON(diags hcl.Diagnostics, files map[string]*hcl.File) []public.Diagnostic {
	all := []public.Diagnostic{}
	for _, d := range diags {
		one := public.Diagnostic{Severity: "error", Summary: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagWarning {
			one.Severity = "warning"
		}
		if r := d.Subject; placed(d) {
			one.Range = &public.Range{File: r.Filename,
				Start: public.Pos(r.Start),
				End:   public.Pos(r.End)}
			one.Snippet = snippet(*r, files[r.Filename])
		}
		all = append(all, one)
	}
	return all
}

// snippet is the line that a range begins in.
func snippet(r hcl.Range, file *hcl.File) *public.Snippet {
	if file == nil || r.Start.Byte > len(file.Bytes) {
		return nil
	}
	start := bytes.LastIndexByte(file.Bytes[:r.Start.Byte], '\n') + 1
	end := len(file.Bytes)
	if n := bytes.IndexByte(file.Bytes[r.Start.Byte:], '\n'); n >= 0 {
		end = r.Start.Byte + n
	}
	return &public.Snippet{Context: enclosing(file, r.Start.Byte), Code: string(file.Bytes[start:end]), Line: r.Start.Line,
		Start: r.Start.Byte - start, End: min(r.End.Byte, end) - start}
}
