package alerts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"cosplay/internal/public"
)

// Project says whose findings a message has.
type Project struct {
	Name    string                      // of its folder
	Dir     string                      // absolute
	Machine string                      // where cosplay runs
	Subject func(d public.Drift) string // what a finding is about, in words: "GPU 0", "session.worker[1]"
}

// Message is the notification of findings that have begun and ended.
func (p Project) Message(begun, ended []public.DatedDrift) public.Notification {
	common := map[string]string{"alertname": "CosplayDrift", "project": p.Name, "machine": p.Machine}
	n := public.Notification{Format: public.V1, Version: "4", Status: "resolved", Receiver: "cosplay", GroupKey: p.Machine + ":" + p.Dir,
		Group: map[string]string{"project": p.Name}, Common: common, Notes: map[string]string{}, Alerts: []public.Alert{}}
	lines := []string{fmt.Sprintf("cosplay: %s on %s", p.Name, p.Machine)}
	add := func(d public.DatedDrift, status, summary string) {
		a := public.Alert{Status: status, StartsAt: d.Since, EndsAt: d.Ended, Fingerprint: p.fingerprint(d.Drift),
			Labels: maps.Clone(common), Annotations: map[string]string{"summary": summary}}
		a.Labels["class"], a.Labels["host"] = d.Class, d.Host
		for key, value := range map[string]string{"cause": d.Cause, "repair": d.Apply} {
			if value != "" {
				a.Annotations[key] = value
			}
		}
		if d.Session != nil {
			a.Labels["session"] = *d.Session
		}
		if d.GPU != "" {
			a.Labels["gpu"] = d.GPU
		}
		n.Alerts = append(n.Alerts, a)
		lines = append(lines, summary)
	}
	for _, d := range begun {
		n.Status = "firing"
		add(d, "firing", fmt.Sprintf("%s: %s: %s -> %s (%s)", p.Subject(d.Drift), d.Thing, d.From, d.To, d.Class))
	}
	for _, d := range ended {
		add(d, "resolved", fmt.Sprintf("%s: %s: as applied again (%s)", p.Subject(d.Drift), d.Thing, d.Class))
	}
	n.Text = strings.Join(lines, "\n")
	return n
}

func (p Project) fingerprint(d public.Drift) string {
	session := ""
	if d.Session != nil {
		session = *d.Session
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{p.Machine, p.Dir, d.Class, d.Host, d.GPU, session, d.Kind, d.Name}))
	return hex.EncodeToString(sum[:8])
}
