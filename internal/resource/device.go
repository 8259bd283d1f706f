package resource

import (
	"strconv"

	"cosplay/internal/prose"
)

// DeviceKind is the kind of the CDI devices for the containers of others.
const DeviceKind = "cosplay.dev/session"

// Device is the name of the session's CDI device, as engines take it; "" where it is none.
func (s Session) Device() string {
	if !RuntimeNamed(s.Runtime).Devices {
		return ""
	}
	return DeviceKind + "=" + s.ID
}

// Offer is the CDI device of a session, with what it gives a container.
type Offer struct {
	Device        string // its name, as engines take it
	Specification string // path
	Env           map[string]string
	Nodes, Mounts []Mount
}

// Mount is a path of the host in a container.
type Mount struct {
	Host, Container string
	Writable        bool // of a file or folder; a device node always is
}

// DeviceVariable has the name of the CDI device that gives a container its session, and DeviceDigest a digest of what that
// device gave when the container started.
const (
	DeviceVariable = "GPU_COSPLAY_DEVICE"
	DeviceDigest   = "GPU_COSPLAY_DEVICE_DIGEST"
)

// RestartContainer is what to do with a container that was started with an earlier device: engines give devices to
// containers when they start.
const RestartContainer = "start the container again by its engine, like: docker restart NAME"

// DeviceHolders names containers by their first processes: "the container of process 12".
func DeviceHolders(pids []int) string {
	return prose.Choose(len(pids), "the container of process ", "the containers of processes ") + prose.And(prose.Few(prose.Each(pids, strconv.Itoa), 5))
}
