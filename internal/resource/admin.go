package resource

// Admin is what the admin of a host with hardware has written there for cosplay.
type Admin struct {
	Rules  AdminFile `json:"rules,omitzero"`  // who may change which GPUs, and how
	Clocks AdminFile `json:"clocks,omitzero"` // locks from before cosplay
}

// AdminFile is a file that only root can change, as an agent has read it. Without a path there is none.
type AdminFile struct {
	Path   string      `json:"path,omitempty"`
	Lines  []AdminLine `json:"lines,omitempty"`  // those with words
	Unread string      `json:"unread,omitempty"` // why it cannot be relied on
	Hidden bool        `json:"hidden,omitempty"` // the user of the agent may not read it
}

// AdminLine has the words of a line; a comment is none.
type AdminLine struct {
	Number int      `json:"number"`
	Words  []string `json:"words"`
}
