package terminal_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"cosplay/internal/terminal"
)

func TestSafe(t *testing.T) {
	for given, want := range map[string]string{
		"":                         "",
		"/home/ada":                "/home/ada",
		"Zürich │ · → 東京 👍":        "Zürich │ · → 東京 👍",
		"\x1b[31mred\x1b[0m":       `\x1b[31mred\x1b[0m`,
		"\x1b]0;title\a":           `\x1b]0;title\x07`,
		"two\nlines\r\t\b":         `two\nlines\r\t\x08`,
		"\x7f\x00":                 `\x7f\x00`,
		"\u009b31m":                `\u009b31m`,
		"\x9b31m":                  `\x9b31m`,
		"cut \xe6\x9d":             `cut \xe6\x9d`,
		"\u202egnp.exe\u2066":      `\u202egnp.exe\u2066`,
		"\u2028\ufeff\u200e":       `\u2028\ufeff\u200e`,
		"replacement \ufffd stays": "replacement \ufffd stays",
	} {
		if got := terminal.Safe(given); got != want {
			t.Errorf("Safe(%q) = %q, want %q", given, got, want)
		}
	}
	if got := terminal.Lines("a\tb\r\n\x1b"); got != "a\tb\\r\n\\x1b" {
		t.Errorf("Lines: %q", got)
	}
}

func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := terminal.NewWriter(&out)
	if n, err := w.Write([]byte("\x1b[2Jname\n")); n != 9 || err != nil || out.String() != "\\x1b[2Jname\n" {
		t.Errorf("%d, %v, %q", n, err, out.String())
	}
	if terminal.Raw(w) != &out || terminal.Raw(&out) != &out {
		t.Error("Raw does not give what is behind")
	}
	if int(w.Fd()) != -1 {
		t.Error("a buffer is no terminal")
	}
}

func TestJSON(t *testing.T) {
	const hostile = "\x1b\x7f\u009b\u202e\n"
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(map[string]string{hostile: hostile}); err != nil {
		t.Fatal(err)
	}
	safe := terminal.JSON(text.String())
	var read map[string]string
	if err := json.Unmarshal([]byte(safe), &read); err != nil || read[hostile] != hostile {
		t.Errorf("%v: %q reads as %q", err, safe, read)
	}
	if strings.ContainsAny(safe, "\x1b\x7f\u009b\u202e") {
		t.Errorf("%q", safe)
	}
}

// FuzzSafe checks for any text that no control character remains and that a safe text does not change.
func FuzzSafe(f *testing.F) {
	f.Add("\x1b[31m\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		safe := terminal.Safe(s)
		if !utf8.ValidString(safe) || strings.ContainsFunc(safe, unicode.IsControl) || terminal.Safe(safe) != safe {
			t.Errorf("Safe(%q) = %q", s, safe)
		}
		if lines := terminal.Lines(s); strings.Count(lines, "\n") != strings.Count(s, "\n") {
			t.Errorf("Lines(%q) = %q", s, lines)
		}
	})
}
