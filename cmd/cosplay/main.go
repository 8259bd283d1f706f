// Command cosplay makes one large NVIDIA GPU act as several smaller ones, from a file.
package main

import (
	"os"

	"cosplay/internal/cli"
	"cosplay/internal/heap"
)

func main() {
	heap.Begin()
	os.Exit(cli.Main(os.Args[1:], cli.Stdio()))
}
