// Command cosplay makes one large NVIDIA GPU act as several smaller ones, from a file.
package main

import (
	"os"
	"runtime/debug"

	"cosplay/internal/cli"
)

func main() {
	// A command lives for milliseconds: collecting its garbage early costs a fifth
	// of its CPU time and saves little memory.
	debug.SetGCPercent(400)
	os.Exit(cli.Main(os.Args[1:], cli.Stdio()))
}
