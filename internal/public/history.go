package public

// History is what history writes.
type History struct {
	Format
	Events []Event `json:"events"` // the newest last
}

// Event is a change, or a refused or failed attempt at one.
type Event struct {
	Time    string `json:"time"`              // RFC 3339
	User    string `json:"user"`              // who acted; of a project's log, who it says acted
	UID     int    `json:"uid"`               // of that user
	For     string `json:"for,omitempty"`     // the user whose project it is, where root acted for another
	Project string `json:"project"`           // folder of its state; of a run, the folder in which it was started; empty where unknown
	Lineage string `json:"lineage,omitempty"` // of its state; missing where unknown
	State   string `json:"state,omitempty"`   // path of its state; missing where unknown
	Command string `json:"command,omitempty"` // of cosplay: apply, watch; missing where unknown
	Host    string `json:"host"`              // name of the host
	GPU     string `json:"gpu,omitempty"`     // UUID
	Index   *int   `json:"gpu_index"`         // number of the GPU; null where it cannot be read
	Session string `json:"session,omitempty"` // address; missing where unknown
	Op      string `json:"op"`                // take, leave, release, set-SETTING, create-slice, destroy-slice, queue, or the kind of a step
	Old     string `json:"old,omitempty"`     // value or object before, in words
	New     string `json:"new,omitempty"`     // value or object after, in words
	Outcome string `json:"outcome"`           // done, refused, failed, or interrupted: it may be done or not
	Why     string `json:"why,omitempty"`     // why it was refused or failed, in words
	Log     string `json:"log"`               // ledger: root's record, which no user can change; project: a log that its user can change
}
