package public

// Notification is what drift and watch send to --exec and --notify: findings that have begun or ended. It has the fields
// of Alertmanager's webhook, version 4, and a text for people. It has no value of env.
type Notification struct {
	Format
	Text     string            `json:"text"`     // all findings in words, a line each
	Version  string            `json:"version"`  // of the fields below: "4"
	GroupKey string            `json:"groupKey"` // of the project
	Status   string            `json:"status"`   // firing if a finding has begun, else resolved
	Receiver string            `json:"receiver"` // "cosplay"
	Group    map[string]string `json:"groupLabels"`
	Common   map[string]string `json:"commonLabels"` // of all alerts
	Notes    map[string]string `json:"commonAnnotations"`
	URL      string            `json:"externalURL"` // ""
	Alerts   []Alert           `json:"alerts"`
}

// Alert is a finding in the terms of Alertmanager.
type Alert struct {
	Status      string            `json:"status"`           // firing or resolved
	Labels      map[string]string `json:"labels"`           // alertname, class, project, host; gpu or session
	Annotations map[string]string `json:"annotations"`      // summary, and where they are known cause and repair
	StartsAt    string            `json:"startsAt"`         // RFC 3339
	EndsAt      string            `json:"endsAt,omitempty"` // RFC 3339, if it has ended
	URL         string            `json:"generatorURL"`     // ""
	Fingerprint string            `json:"fingerprint"`      // the same for the beginning and the end of a finding
}
