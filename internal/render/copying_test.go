package render

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestCopying: a copy that takes long is shown on a terminal, and nothing is shown elsewhere.
func TestCopying(t *testing.T) {
	var out bytes.Buffer
	copied := func(terminal, long, failed bool) string {
		out.Reset()
		c := NewCopying(&out, Style{Width: 80}, "model\x1b.pt to worker-3:/data", false)
		c.off = !terminal
		if long {
			c.begun = time.Now().Add(-2 * showsAfter)
		}
		_, _ = c.Write(make([]byte, 4_000_000))
		_, _ = c.Write(make([]byte, 1_000_000))
		c.Close(failed)
		_, _ = c.Write(make([]byte, 1_000_000))
		return out.String()
	}
	if got := copied(false, true, false) + copied(true, false, false); got != "" {
		t.Errorf("%q", got)
	}
	done := copied(true, true, false)
	if strings.Count(done, "\r\x1b[KCopying model .pt to worker-3:/data: 4MB, ") != 1 || !strings.Contains(done, "\r\x1b[KCopied model .pt") || !strings.Contains(done, ": 5MB, ") || strings.Count(done, "\n") != 1 {
		t.Errorf("%q", done)
	}
	if got := copied(true, true, true); strings.Contains(got, "Copied") || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("%q", got)
	}
	if c := NewCopying(&out, Style{}, "", false); !c.off {
		t.Error("a file is a terminal")
	}
}
