package machine

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// systemID is what systemd calls this machine, or "".
func systemID() string {
	id, _ := os.ReadFile("/etc/machine-id")
	return strings.TrimSpace(string(id))
}

// MemoryMiB is the memory of this machine, or 0 if it is unknown.
func MemoryMiB() int {
	var memory unix.Sysinfo_t
	if unix.Sysinfo(&memory) != nil {
		return 0
	}
	return int(uint64(memory.Totalram) * uint64(memory.Unit) >> 20)
}
