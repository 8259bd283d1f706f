package project

import (
	"testing"

	"cosplay/internal/resource"
)

// A session counts as it was left only if a command can enter it without any repair or message.
func TestAsLeft(t *testing.T) {
	left := resource.Body{ID: "a", Session: "one", Runtime: "docker", State: resource.Running, SSHPort: 2222}
	for name, c := range map[string]struct {
		change func(*resource.Body)
		noSSH  bool
		want   bool
	}{
		"unchanged":         {func(*resource.Body) {}, false, true},
		"another container": {func(b *resource.Body) { b.ID = "b" }, false, false},
		"another session":   {func(b *resource.Body) { b.Session = "two" }, false, false},
		"paused":            {func(b *resource.Body) { b.State = resource.Paused }, false, false},
		"stopped":           {func(b *resource.Body) { b.State = resource.Stopped }, false, false},
		"another port":      {func(b *resource.Body) { b.SSHPort = 2223 }, false, false},
		"no port":           {func(b *resource.Body) { b.SSHPort = 0 }, false, false},
		"off its network":   {func(b *resource.Body) { b.Altered = []resource.Alteration{{Part: resource.AlteredNetwork}} }, false, false},
		"without ssh":       {func(b *resource.Body) { b.SSHPort = 0 }, true, true},
	} {
		s, now := resource.PriorSession{}, left
		c.change(&now)
		s.ID, s.Runtime, s.Slice.Host, s.Spec.SSH.Enabled = "one", "docker", "lab", !c.noSSH
		was := left
		if c.noSSH {
			was.SSHPort = 0
		}
		s.Body = &was
		live := resource.Live{Hosts: []resource.Host{{Name: "lab", Bodies: []resource.Body{now}}}}
		if got := asLeft(s, live); got != c.want {
			t.Errorf("%s: as left: %v; want %v", name, got, c.want)
		}
	}
}
