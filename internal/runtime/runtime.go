// Package runtime is what the places where sessions run have in common.
package runtime

import "io"

// Streams are what a command in a session reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exit codes of a command that did not run, as shells have them.
const (
	CannotRun = 126
	NotFound  = 127
)
