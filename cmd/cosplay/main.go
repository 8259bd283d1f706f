// Command cosplay makes one large NVIDIA GPU act as several smaller ones, from a file.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"cosplay/internal/cli"
)

func main() {
	// A command lives for milliseconds: collecting its garbage early costs a fifth of its CPU time and saves little
	// memory. The first collection, which comes at a fixed size, comes at 64 MiB; the next ones at five times the data.
	debug.SetGCPercent(1600)
	runtime.AddCleanup(new([32]byte), func(percent int) { debug.SetGCPercent(percent) }, 400)
	os.Exit(cli.Main(os.Args[1:], cli.Stdio()))
}
