//go:build cgo && linux

package driver

import "embed"

// Here says whether this cosplay has access to GPUs, simulated ones too, of its machine.
const Here = true

//go:embed all:lib
var built embed.FS
