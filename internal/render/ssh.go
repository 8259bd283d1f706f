package render

import (
	"fmt"
	"io"

	"cosplay/internal/public"
)

// SSHConfig writes Host blocks for ~/.ssh/config.
func SSHConfig(w io.Writer, hosts []public.SSHHost) {
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
func SSHConfigJSON(w io.Writer, hosts []public.SSHHost) error {
	return JSON(w, public.SSHConfig{Format: public.V1, Hosts: hosts})
}
