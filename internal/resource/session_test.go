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

// TestExposed: ssh on an address of this machine alone is not exposed.
func TestExposed(t *testing.T) {
	for bind, want := range map[string]bool{"127.0.0.1": false, "127.1.2.3": false, "::1": false, "0.0.0.0": true, "::": true, "10.0.0.1": true, "": true} {
		if got := (SSH{Enabled: true, Bind: bind}).Exposed(); got != want {
			t.Errorf("%q: %v", bind, got)
		}
		if (SSH{Bind: bind}).Exposed() {
			t.Errorf("%q: exposed without ssh", bind)
		}
	}
}
