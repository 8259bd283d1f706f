package words

import (
	"fmt"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// None is the text of a value that does not exist.
const None = "(none)"

// Value writes one side of a difference. A GPU that the live view has is written with its index.
func Value(v diff.Value, live resource.Live) string {
	switch v := v.(type) {
	case nil:
		return None
	case diff.Text, diff.Damage, diff.UUID, diff.Bool, diff.Count, diff.CPUs:
		return fmt.Sprint(v)
	case diff.Restarts:
		return fmt.Sprintf("restarting, %d times so far", v)
	case diff.EnvValue:
		return fmt.Sprintf("%q", string(v))
	case diff.Names:
		return strings.Join(v, ", ")
	case diff.Command:
		return resource.CommandWords(v)
	case diff.Switch:
		return resource.OnOff(bool(v))
	case diff.MIG:
		if v.Now != v.Pending {
			return resource.OnOff(v.Now) + ", pending " + resource.OnOff(v.Pending)
		}
		return resource.OnOff(v.Now)
	case diff.Power:
		return resource.Watts(int(v))
	case diff.Clock:
		return clock(v)
	case diff.Percent: // with every digit that was written, and without the noise of binary fractions: 0.07 * 100 is not 7
		return fmt.Sprintf("%.12g %%", v*100)
	case diff.Port:
		if v == 0 {
			return "auto"
		}
		return fmt.Sprint(v)
	case diff.Memory:
		return size(int(v))
	case diff.GPU:
		return anyGPU(live, string(v))
	case diff.ID:
		return ShortID(string(v))
	case diff.Seconds:
		return resource.Seconds(v).String()
	case diff.Moment:
		return resource.Moment(v).String()
	case diff.Slice:
		return resource.Slice(v).String()
	case diff.Taken:
		return fmt.Sprintf("taken by another %s at slot %d", v.Profile, v.Start)
	case diff.Volumes:
		return volumes(v)
	case diff.Ports:
		return strings.Join(prose.Each(v, resource.Port.String), ", ")
	case diff.Keys:
		return keys(v)
	case diff.Limits:
		return limits(resource.Limits(v))
	case diff.User:
		return fmt.Sprintf("%s (%d:%d), group %s", v.Name, v.UID, v.GID, v.Group)
	case diff.MPS:
		return "running (" + mpsLimits(resource.MPS(v)) + ")"
	case diff.Unanswered:
		return "unusable"
	case diff.Condition:
		return conditions[v]
	}
	return ""
}

// mpsLimits are what one program can get from an MPS daemon.
func mpsLimits(m resource.MPS) string {
	memory := fmt.Sprintf("%d MiB", m.MemoryMiB)
	if m.Percent == 0 {
		return memory
	}
	return fmt.Sprintf("%d %%, %s", m.Percent, memory)
}

var conditions = map[diff.Condition]string{
	diff.IsPresent:        "there",
	diff.IsMissing:        "missing",
	diff.IsUp:             "up",
	diff.IsRebooted:       "rebooted",
	diff.IsVisible:        "visible",
	diff.IsInvisible:      "not visible",
	diff.IsAnswering:      "answers",
	diff.IsSilent:         "does not answer",
	diff.IsRunning:        "running",
	diff.IsStopped:        "stopped",
	diff.IsUnstarted:      "never started",
	diff.IsPaused:         "paused",
	diff.IsAsApplied:      "as applied",
	diff.IsChanged:        "changed",
	diff.IsReplaced:       "replaced on the host",
	diff.IsEarlier:        "an earlier one in running containers",
	diff.IsIntact:         "intact",
	diff.IsOfCatalog:      "as in the catalog now",
	diff.IsOfConfig:       "as in the configuration now",
	diff.IsWithoutCompute: "without its compute instance",
	diff.IsInFile:         "in a file of the session's user",
	diff.IsInEnvironment:  "in the container's environment",
	diff.IsSensitive:      "(sensitive)",
	diff.IsPlain:          "not sensitive",
	diff.IsAny:            "(any)",
	diff.IsAsSet:          "as they are",
}

// SMI is the arguments of nvidia-smi that set a setting of a GPU.
func SMI(gpu string, s resource.Setting, value int) string {
	option := fmt.Sprintf("%s %d", s.SMI(), value)
	switch {
	case s == resource.TimeSlice:
		return fmt.Sprintf("compute-policy -i %s --set-timeslice=%d", gpu, value)
	case s == resource.SMClock && value == 0:
		option = "-rgc"
	case s == resource.SMClock:
		option = fmt.Sprintf("-lgc %d,%d", value, value)
	case s == resource.PowerLimit:
		option = fmt.Sprintf("-pl %g", float64(value)/1000)
	}
	return "-i " + gpu + " " + option
}

func clock(c diff.Clock) string {
	switch c.As {
	case diff.ClockSeen:
		return resource.Clock(c.MHz) + "?"
	case diff.ClockOther:
		return "at " + resource.Clock(c.MHz)
	case diff.ClockLifted:
		return "lifted"
	case diff.ClockUnknown:
		return "unknown"
	}
	return resource.Clock(c.MHz)
}

func volumes(all []resource.Volume) string {
	words := prose.Each(all, func(v resource.Volume) string {
		if v.ReadOnly {
			return v.Source + " at " + v.Target + ", read-only"
		}
		return v.Source + " at " + v.Target
	})
	return strings.Join(words, ", ")
}

// keys shows the kind, the end and the comment of each key.
func keys(all []string) string {
	var words []string
	for _, line := range all {
		if fields := strings.Fields(line); len(fields) > 1 {
			fields[1] = "..." + fields[1][max(0, len(fields[1])-8):]
			words = append(words, strings.Join(fields, " "))
		}
	}
	return strings.Join(words, ", ")
}

func limits(l resource.Limits) string {
	var words []string
	add := func(set bool, word string) {
		if set {
			words = append(words, word)
		}
	}
	add(l.CPUs != 0, fmt.Sprintf("%g CPUs", l.CPUs))
	add(l.MemoryMiB != 0, size(l.MemoryMiB)+" of memory")
	add(l.ShmMiB != 0, size(l.ShmMiB)+" of shared memory")
	add(l.PIDs != 0, fmt.Sprintf("%d processes", l.PIDs))
	if len(words) == 0 {
		return None
	}
	return strings.Join(words, ", ")
}

// size writes MiB, or GiB for whole ones.
func size(mib int) string {
	if mib%1024 == 0 {
		return fmt.Sprintf("%d GiB", mib/1024)
	}
	return fmt.Sprintf("%d MiB", mib)
}

// ShortID is an id as Docker's own commands print it.
func ShortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}

// GPU names a GPU by its index, with its host if there are several.
func GPU(live resource.Live, host, uuid string) string {
	name := ShortUUID(uuid) // the host does not have it
	if g, ok := live.GPU(host, uuid); ok {
		name = fmt.Sprintf("GPU %d", g.Index)
	}
	if len(live.Hosts) > 1 {
		return host + " " + name
	}
	return name
}

// GPUs names those of a session: "GPU 0", "GPU 0 and 2".
func GPUs(live resource.Live, s resource.Session) string {
	first := GPU(live, s.Slice.Host, s.Slice.GPU)
	all := []string{first}
	for _, more := range s.More {
		name := GPU(live, more.Host, more.GPU)
		if i := strings.LastIndex(name, "GPU "); i >= 0 {
			name = name[i+len("GPU "):]
		}
		all = append(all, name)
	}
	return prose.And(all)
}

// anyGPU does the same for a GPU of any host; a GPU that no host has is named by its UUID.
func anyGPU(live resource.Live, uuid string) string {
	for _, h := range live.Hosts {
		if _, ok := live.GPU(h.Name, uuid); ok {
			return GPU(live, h.Name, uuid)
		}
	}
	return uuid
}

// ShortUUID is enough of a UUID to distinguish two GPUs.
func ShortUUID(uuid string) string {
	const enough = len("GPU-51a0c0de")
	return uuid[:min(enough, len(uuid))]
}

// Found names what a finding is about: "session.worker[1]", "GPU 0", "host lab".
func Found(d public.Drift, live resource.Live) string {
	switch {
	case d.Session != nil:
		return *d.Session
	case d.GPU != "":
		return GPU(live, d.Host, d.GPU)
	}
	return "host " + d.Host
}
