// Package heap fits Go's memory management to commands, which live for milliseconds.
package heap

import (
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// first is how much a command allocates before its first collection, in bytes: Go begins with 4 MiB at 100 %.
const (
	first        = 48 << 20
	firstPercent = 100 * first / (4 << 20)
	nextPercent  = 400
)

var whenCollected runtime.Cleanup

// Begin delays the collections. Collecting the garbage of a command early costs a fifth of its CPU time and saves little
// memory. The first collection, which comes at a fixed size, comes at 48 MiB; the next ones at five times the data.
func Begin() {
	debug.SetGCPercent(firstPercent)
	whenCollected = runtime.AddCleanup(new([32]byte), func(percent int) { debug.SetGCPercent(percent) }, nextPercent)
}

// Large has Linux give what is allocated before the first collection in huge pages, where the host leaves that to programs.
// In pages of 4 KiB, the page faults take a fifth of the CPU time of a large project, which has to be worth the 1 ms
// that this takes.
func Large() {
	_ = unix.Madvise(make([]byte, first), unix.MADV_HUGEPAGE) // a kernel without huge pages gives the usual ones
	whenCollected.Stop()
	runtime.GC() // the block is free memory now
	Begin()
}
