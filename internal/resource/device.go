package resource

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

// DeviceVariable has the name of the CDI device that gives a container its session.
const DeviceVariable = "GPU_COSPLAY_DEVICE"
