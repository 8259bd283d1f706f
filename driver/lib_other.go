//go:build !cgo || !linux

package driver

import "embed"

// Here says whether this cosplay has access to GPUs, simulated ones too, of its machine.
const Here = false

var built embed.FS // the files are for Linux
