package diff

import (
	"cmp"
	"fmt"
	"strings"

	"cosplay/internal/resource"
)

// boxFields lists what differs of what only a session in a container has.
func boxFields(was, want *resource.Box) []Field {
	if was == nil || want == nil {
		return nil // the runtime differs, and that is told
	}
	var all []Field
	add := func(name, from, to string) {
		if from != to {
			all = append(all, Field{Name: name, From: from, To: to})
		}
	}
	add("image", was.Image, want.Image)
	add("pull", was.Pull, want.Pull)
	add("volumes", volumes(was.Volumes), volumes(want.Volumes))
	add("ssh", resource.OnOff(was.SSH.Enabled), resource.OnOff(want.SSH.Enabled))
	add("ssh.port", port(was.SSH.Port), port(want.SSH.Port))
	add("ssh.bind", was.SSH.Bind, want.SSH.Bind)
	if was.SSH.Enabled && want.SSH.Enabled {
		add("ssh.authorized_keys", keys(was.SSH.AuthorizedKeys), keys(want.SSH.AuthorizedKeys))
	}
	add("limits", limits(was.Limits), limits(want.Limits))
	add("sudo", resource.OnOff(was.Sudo), resource.OnOff(want.Sudo))
	add("restart", was.Restart, want.Restart)
	add("user", user(was.User), user(want.User))
	return all
}

func port(n int) string {
	if n == 0 {
		return "auto"
	}
	return fmt.Sprint(n)
}

func volumes(all []resource.Volume) string {
	var words []string
	for _, v := range all {
		word := v.Source + " at " + v.Target
		if v.ReadOnly {
			word += ", read-only"
		}
		words = append(words, word)
	}
	return orNone(words)
}

// keys shows of each key what people tell it by: its kind, its end, its comment.
func keys(all []string) string {
	var words []string
	for _, line := range all {
		if fields := strings.Fields(line); len(fields) > 1 {
			fields[1] = "..." + fields[1][max(0, len(fields[1])-8):]
			words = append(words, strings.Join(fields, " "))
		}
	}
	return orNone(words)
}

func limits(l resource.Limits) string {
	var words []string
	if l.CPUs != 0 {
		words = append(words, fmt.Sprintf("%g CPUs", l.CPUs))
	}
	if l.MemoryMiB != 0 {
		words = append(words, size(l.MemoryMiB)+" of memory")
	}
	if l.ShmMiB != 0 {
		words = append(words, size(l.ShmMiB)+" of shared memory")
	}
	if l.PIDs != 0 {
		words = append(words, fmt.Sprintf("%d processes", l.PIDs))
	}
	return orNone(words)
}

// size writes MiB as people do.
func size(mib int) string {
	if mib%1024 == 0 {
		return fmt.Sprintf("%d GiB", mib/1024)
	}
	return fmt.Sprintf("%d MiB", mib)
}

func user(u resource.User) string {
	return fmt.Sprintf("%s (%d:%d), group %s", u.Name, u.UID, u.GID, u.Group)
}

func orNone(words []string) string { return cmp.Or(strings.Join(words, ", "), "(none)") }
