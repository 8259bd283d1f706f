// Command cosplay-init is pid 1 in the container of a session. It is one static
// file, so that it runs in any image.
package main

import (
	"os"

	"cosplay/internal/initd/boot"
)

func main() { os.Exit(boot.Main(os.Args[1:])) }
