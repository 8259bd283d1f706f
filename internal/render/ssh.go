package render

import (
	"fmt"
	"io"
)

// SSHHost is a session as ssh's configuration has it.
type SSHHost struct {
	Name    string      `json:"name"`
	Session string      `json:"session"`
	Options []SSHOption `json:"options"`
}

// SSHOption is one line of it.
type SSHOption struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SSHConfig writes Host blocks for ~/.ssh/config.
func SSHConfig(w io.Writer, hosts []SSHHost) {
	for i, h := range hosts {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "# %s\nHost %s\n", h.Session, h.Name)
		for _, o := range h.Options {
			fmt.Fprintf(w, "  %s %s\n", o.Name, o.Value)
		}
	}
}

// SSHConfigJSON is the same as JSON.
func SSHConfigJSON(w io.Writer, hosts []SSHHost) error {
	return writeJSON(w, struct {
		FormatVersion int       `json:"format_version"`
		Hosts         []SSHHost `json:"hosts"`
	}{formatVersion, hosts})
}
