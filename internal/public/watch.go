package public

// WatchEvent is one line of cosplay watch --json. No event has a value of env.
type WatchEvent struct {
	Format
	Time    string `json:"time"`              // RFC 3339, UTC
	Kind    string `json:"kind"`              // finding, finding-ended, repair, expire, step, failed, not-repaired, would-repair, config-differs, config-invalid, waiting, cycle, resolved
	Subject string `json:"subject,omitempty"` // what it is about: session.worker[1], GPU 0, host lab
	Session string `json:"session,omitempty"` // address
	Host    string `json:"host,omitempty"`    // name of the host
	GPU     string `json:"gpu,omitempty"`     // UUID
	Class   string `json:"class,omitempty"`   // of the drift, as in drift --json
	Why     string `json:"why,omitempty"`     // of drift that is not repaired: not-allowed, ends-programs, on-its-gpu, exhausted, backing-off
	Text    string `json:"text"`              // in words
}
