package resource

import "testing"

// TestCommandWords: two commands that are not the same do not look so.
func TestCommandWords(t *testing.T) {
	for want, argv := range map[string][]string{
		"(none)":                  nil,
		`["sh", "-c", "echo $A"]`: {"sh", "-c", "echo $A"},
		`["sh", "-c echo", "$A"]`: {"sh", "-c echo", "$A"},
		`[""]`:                    {""},
	} {
		if got := CommandWords(argv); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
