package words

import (
	"fmt"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// None stands for a value that is not there.
const None = "(none)"

// Value writes one side of a difference. GPUs are named as people call them where the live view has them.
func Value(v diff.Value, live resource.Live) string {
	switch v := v.(type) {
	case nil:
		return None
	case diff.Text:
		return string(v)
	case diff.Damage:
		return string(v)
	case diff.UUID:
		return string(v)
	case diff.EnvValue:
		return fmt.Sprintf("%q", string(v))
	case diff.Names:
		return strings.Join(v, ", ")
	case diff.Command:
		return resource.CommandWords(v)
	case diff.Bool:
		return fmt.Sprint(bool(v))
	case diff.Switch:
		return resource.OnOff(bool(v))
	case diff.MIG:
		return mig(v)
	case diff.Power:
		return resource.Watts(int(v))
	case diff.Clock:
		return clock(v)
	case diff.Percent:
		return percent(float64(v))
	case diff.Port:
		if v == 0 {
			return "auto"
		}
		return fmt.Sprint(int(v))
	case diff.Count:
		return fmt.Sprint(int(v))
	case diff.CPUs:
		return fmt.Sprint(float64(v))
	case diff.Memory:
		return size(int(v))
	case diff.GPU:
		return anyGPU(live, string(v))
	case diff.ID:
		return ShortID(string(v))
	case diff.Slice:
		return resource.Slice(v).String()
	case diff.Taken:
		return fmt.Sprintf("taken by another %s at slot %d", v.Profile, v.Start)
	case diff.Volumes:
		return volumes(v)
	case diff.Keys:
		return keys(v)
	case diff.Limits:
		return limits(resource.Limits(v))
	case diff.User:
		return fmt.Sprintf("%s (%d:%d), group %s", v.Name, v.UID, v.GID, v.Group)
	case diff.Unanswered:
		return "unusable"
	case diff.Condition:
		return conditions[v]
	}
	return ""
}

var conditions = map[diff.Condition]string{
	diff.IsPresent:        "there",
	diff.IsMissing:        "missing",
	diff.IsUp:             "up",
	diff.IsRebooted:       "rebooted",
	diff.IsRunning:        "running",
	diff.IsStopped:        "stopped",
	diff.IsAsApplied:      "as applied",
	diff.IsChanged:        "changed",
	diff.IsIntact:         "intact",
	diff.IsOfCatalog:      "as in the catalog now",
	diff.IsOfConfig:       "as in the configuration now",
	diff.IsWithoutCompute: "without its compute instance",
	diff.IsInFile:         "in a file of the session's user",
	diff.IsInEnvironment:  "in the container's environment",
	diff.IsSensitive:      "(sensitive)",
	diff.IsAny:            "(any)",
	diff.IsAsSet:          "as set",
}

// SMI is the option of nvidia-smi that sets a setting.
func SMI(s resource.Setting, value int) string {
	switch s {
	case resource.PersistenceMode:
		return fmt.Sprintf("-pm %d", value)
	case resource.MIGMode:
		return fmt.Sprintf("-mig %d", value)
	case resource.PowerLimit:
		return fmt.Sprintf("-pl %g", float64(value)/1000)
	case resource.SMClock:
		if value == 0 {
			return "-rgc"
		}
		return fmt.Sprintf("-lgc %d,%d", value, value)
	}
	return ""
}

// mig is MIG mode with the mode after the next reset.
func mig(m diff.MIG) string {
	if m.Now != m.Pending {
		return resource.OnOff(m.Now) + ", pending " + resource.OnOff(m.Pending)
	}
	return resource.OnOff(m.Now)
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

// percent writes a ratio with every digit that a person typed, and without the noise of binary fractions: 0.07 times
// 100 is not quite 7.
func percent(ratio float64) string { return fmt.Sprintf("%.12g %%", ratio*100) }

func volumes(all []resource.Volume) string {
	var words []string
	for _, v := range all {
		word := v.Source + " at " + v.Target
		if v.ReadOnly {
			word += ", read-only"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// keys shows of each key what people know it by: its kind, its end, its comment.
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
	if len(words) == 0 {
		return None
	}
	return strings.Join(words, ", ")
}

// size writes MiB as people do.
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

// GPU is what people call a GPU: with its host where there are several.
func GPU(live resource.Live, host, uuid string) string {
	name := ShortUUID(uuid) // it is missing
	if g, ok := live.GPU(host, uuid); ok {
		name = fmt.Sprintf("GPU %d", g.Index)
	}
	if len(live.Hosts) > 1 {
		return host + " " + name
	}
	return name
}

// anyGPU is the same of a GPU on whichever host; one that no host has is its UUID.
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
