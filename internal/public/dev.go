package public

// Dev is what dev writes: where an editor works in a session, and how to open it there.
type Dev struct {
	Format
	Session  string   `json:"session"`       // address
	Target   string   `json:"target"`        // key of the catalog
	Folder   string   `json:"folder"`        // workspace as the session's programs see it; "" for a container that was imported
	SSH      *SSHHost `json:"ssh,omitempty"` // Host block that ssh needs; missing where the session has no ssh
	SSHKnown bool     `json:"ssh_known"`     // the user's configuration of ssh has the block
	Editors  []Editor `json:"editors"`       // the first is what --open starts
}

// Editor is one way to open a session in an editor.
type Editor struct {
	Name     string            `json:"name"`               // for people: VS Code, JetBrains Gateway
	Needs    string            `json:"needs,omitempty"`    // what has to be installed or done before, in words
	Command  []string          `json:"command,omitempty"`  // command that opens it
	Link     string            `json:"link,omitempty"`     // link that opens it
	Settings map[string]string `json:"settings,omitempty"` // of VS Code's configuration file for the container
	Note     string            `json:"note,omitempty"`     // what to know, in words
}
