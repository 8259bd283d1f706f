package verify

import (
	"slices"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

const visibleDevices = "CUDA_VISIBLE_DEVICES" // a container of an earlier cosplay has the UUID

var sliceChecks = []check[Inside]{
	{name: "slice.inside", class: Slice, expected: func(w Wanted) string { uuids, _ := w.slices(); return uuids },
		found: func(w Wanted, in Inside) answer {
			value := in.environ()[visibleDevices]
			uuids, numbers := w.slices()
			switch {
			case value == "":
				return found("no " + visibleDevices)
			case value == numbers && (w.Container || w.CUDA): // the only GPUs of a container; elsewhere the facade maps them
				return found(uuids)
			}
			return found(value)
		},
		fix: "the session's programs would use another GPU than the state says: cosplay apply puts its environment right"},
}

var settingsChecks = slices.Concat([]check[Observed]{
	{name: "slice.outside", class: Slice, expected: func(w Wanted) string { return w.Slice + ", " + w.Place },
		found: func(w Wanted, o Observed) answer {
			lacks, unread := unreadable(o, resource.FeatureMIG)
			switch {
			case o.Live == nil:
				return noGPU(o)
			case o.SliceUUID != "":
				return found(o.SliceUUID + ", " + w.Place)
			case unread:
				return lacks
			}
			return found("nothing where " + w.Place + " should be")
		},
		fix: "cosplay plan shows the GPU's state; cosplay apply recreates the slice"},
}, readableSettings(), []check[Observed]{
	{name: LockCheck, class: Settings, applies: Wanted.Locked,
		expected: func(w Wanted) string { return resource.Clock(w.Applied.Value(resource.SMClock)) + underLoad }, found: clock,
		fix: "the lock is not in effect: another program changed it, or the driver ignores it. drift reports it from now on, and cosplay apply sets it again"},
})

func readableSettings() (all []check[Observed]) {
	for _, s := range resource.AllSettings {
		if !s.Readable() {
			continue
		}
		all = append(all, check[Observed]{name: "settings." + s.String(), class: Settings, applies: func(w Wanted) bool { return w.Applied.Has(s) },
			expected: func(w Wanted) string { return s.Text(w.Applied.Value(s)) },
			found: func(_ Wanted, o Observed) answer {
				if o.Live == nil {
					return noGPU(o)
				}
				if lacks, unread := unreadable(o, s.Feature()); unread {
					return lacks
				}
				now, _ := o.Live.Now(s)
				return found(s.Text(now))
			},
			fix: "the setting was changed outside cosplay; cosplay apply sets it again"})
	}
	return all
}

// noGPU is the answer of every check of a GPU that cannot be read.
func noGPU(o Observed) answer {
	return answer{Advice: prose.Advice{What: "the GPU is " + o.NoGPU.What, Fix: o.NoGPU.Fix}}
}

// unreadable is the answer about a feature that the driver of the GPU does not report.
func unreadable(o Observed, f resource.Feature) (answer, bool) {
	if o.Live == nil || !o.Live.Unread(f) {
		return answer{}, false
	}
	lacks, _ := o.Live.Degradation(f)
	return skip("the driver does not report " + f.Words() + ": " + lacks.String()), true
}

// The checks of files, by name.
const (
	FacadesCheck = "files.facades"
	FiguresCheck = "files.figures"
	UsageCheck   = "files.usage"
	DriverCheck  = "files.driver"
	MountsCheck  = "files.mounts"
)

// contextBytes is the most that a process may use besides its allocations: contexts and code. The usage file's count of
// these is no evidence, because the facade takes it from the driver.
const contextBytes = 1 << 30

// Unaccounted returns how many bytes the driver reports in use in a slice beyond those that the session's usage file
// accounts for; 0 if contexts and code can explain the difference. Without a process nothing is in use.
func Unaccounted(used, accounted uint64, processes int) uint64 {
	if used <= accounted+uint64(processes)*contextBytes {
		return 0
	}
	return used - accounted
}

const allAccounted = "no memory is used outside the accounting"

const asWritten = "as when the session was prepared"

var filesChecks = []check[Observed]{
	file(FacadesCheck, nil, "cosplay apply rewrites the session's files"),
	file(FiguresCheck, nil, "cosplay apply rewrites the session's files"),
	file(UsageCheck, func(w Wanted) bool { return w.CUDA }, "without it each process counts separately, and together they exceed the cap; cosplay apply recreates it, with --replace SESSION if apply finds no changes"),
	{name: "memory.accounted", class: Files, applies: func(w Wanted) bool { return w.CUDA }, expected: always(allAccounted),
		found: func(_ Wanted, o Observed) answer {
			if o.Bypassed > 0 {
				return found(inMiB(o.Bypassed) + " of memory used outside the accounting")
			}
			return found(allAccounted)
		},
		fix: "a program of the session bypasses the facade (another library path, a static binary) or has overwritten the usage file: cosplay status shows the slice's processes; end them, then cosplay apply"},
	file(DriverCheck, nil, "if the driver was updated, cosplay apply updates the session; a container keeps the old driver until docker stop, then cosplay apply. Otherwise reinstall the driver: cosplay never changes its files"),
	file(MountsCheck, func(w Wanted) bool { return w.Container }, "the container differs from what cosplay created: remove it (docker rm -f), then cosplay apply"),
}

func file(name string, applies func(Wanted) bool, fix string) check[Observed] {
	return check[Observed]{name: name, class: Files, applies: applies, fix: fix,
		expected: always(asWritten),
		found: func(_ Wanted, o Observed) answer {
			if altered := o.Altered[name]; altered != "" {
				return found(altered)
			}
			return found(asWritten)
		}}
}
