package public

// Devices is what devices writes.
type Devices struct {
	Format
	Devices []Device `json:"devices"` // of the sessions whose runtime is cdi, by address
}

// Device is a session as a CDI device, for the containers of others.
type Device struct {
	Session       string            `json:"session"`       // address
	Device        string            `json:"device"`        // qualified name, as engines take it
	Target        string            `json:"target"`        // key of the catalog
	Specification string            `json:"specification"` // path of the device's specification
	Env           map[string]string `json:"env"`           // variables that it sets in a container
	Nodes         []Mount           `json:"nodes"`         // device nodes
	Mounts        []Mount           `json:"mounts"`        // files and folders
}

// Mount is a path of the host in a container.
type Mount struct {
	Host      string `json:"host"`      // path on the host
	Container string `json:"container"` // path in the container
	Writable  bool   `json:"writable"`  // whether programs can change it; a device node always is
}
