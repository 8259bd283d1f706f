package render

import (
	"encoding/json"
	"fmt"
	"io"

	"cosplay/internal/public"
)

// WatchEvent writes a line of the log of watch.
func WatchEvent(w io.Writer, e public.WatchEvent) {
	subject := ""
	if e.Subject != "" {
		subject = e.Subject + ": "
	}
	class := ""
	if e.Class != "" {
		class = " (" + e.Class + ")"
	}
	fmt.Fprintf(w, "%s  %-14s  %s%s%s\n", e.Time, e.Kind, subject, oneLine(e.Text), class)
}

// WatchEventJSON writes an event as one line of JSON.
func WatchEventJSON(w io.Writer, e public.WatchEvent) error {
	return json.NewEncoder(w).Encode(e)
}
