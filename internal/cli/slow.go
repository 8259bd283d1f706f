package cli

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/term"
)

// slowAfter is how long work lasts before its user gets to know what it is.
const slowAfter = 800 * time.Millisecond

// slow prints on a terminal what a command does, if that takes long. The caller calls done when it has ended.
func (inv *invocation) slow(what string) (done func()) {
	if f, ok := inv.stderr.(interface{ Fd() uintptr }); !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	printed := make(chan struct{})
	timer := time.AfterFunc(slowAfter, func() {
		defer close(printed)
		fmt.Fprintln(inv.Err, what, "...")
	})
	return sync.OnceFunc(func() {
		if !timer.Stop() {
			<-printed
		}
	})
}
