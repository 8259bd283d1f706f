package machine

import "golang.org/x/sys/unix"

// systemID is the UUID of this machine's hardware, or "".
func systemID() string {
	id, _ := unix.Sysctl("kern.uuid")
	return id
}

// MemoryMiB is the memory of this machine, or 0 if it is unknown.
func MemoryMiB() int {
	bytes, _ := unix.SysctlUint64("hw.memsize")
	return int(bytes >> 20)
}
