// Command cosplay makes a big NVIDIA GPU pass for a smaller one, from a file.
package main

import (
	"os"

	"cosplay/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.Stdio())) }
