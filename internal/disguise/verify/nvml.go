package verify

import (
	"fmt"
)

const nvmlFix = "a library in the session bypasses the disguise, or its files were damaged: see the checks of files; libnvidia-ml.so.1 must be the session's own (ldd, LD_LIBRARY_PATH)"

// probed checks the probe's answers. Checks are skipped if the image has no loader for the probe.
func probed(look func(Wanted, records) (words string, told bool)) func(Wanted, Inside) answer {
	return func(w Wanted, in Inside) answer {
		out := in.Answers[askProbe]
		if w.Container && out.absent() {
			return skip(noGlibc)
		}
		told := parse(out.Text)
		if words, ok := look(w, told); ok {
			return found(words)
		}
		for _, key := range []string{"nvml.load", "nvml.init"} {
			if value, said := told.first(key); said && value != "ok" {
				return found("NVML: " + value)
			}
		}
		return found(out.ended())
	}
}

// text returns one record unchanged.
func text(key string) func(Wanted, Inside) answer {
	return probed(func(_ Wanted, told records) (string, bool) { return told.first(key) })
}

var nvmlChecks = []check[Inside]{
	{name: "nvml.name", class: NVML, fix: nvmlFix, expected: func(w Wanted) string { return w.Name }, found: text("nvml.name")},
	{name: "nvml.uuid", class: NVML, fix: nvmlFix, expected: func(w Wanted) string { return w.UUID }, found: text("nvml.uuid")},
	{name: "nvml.count", class: NVML, fix: nvmlFix, expected: func(Wanted) string { return "1 GPU" }, found: probed(nvmlCount)},
	{name: "nvml.memory", class: NVML, fix: nvmlFix,
		expected: func(w Wanted) string { return fmt.Sprintf("%d MiB by both layouts", w.MemoryMiB) }, found: probed(nvmlMemory)},
	{name: "nvml.sum", class: NVML, fix: nvmlFix,
		expected: func(Wanted) string { return "free, used and reserved add up by both layouts" }, found: probed(nvmlSum)},
	{name: "nvml.limits", class: NVML, fix: nvmlFix, expected: nvmlLimitsWanted, found: probed(nvmlLimits)},
	{name: "nvml.mig", class: NVML, fix: nvmlFix, expected: func(Wanted) string { return "hidden" }, found: probed(nvmlMIG)},
}

func nvmlCount(_ Wanted, told records) (string, bool) {
	count, ok := told.first("nvml.count")
	if !ok {
		return "", false
	}
	if _, second := told.numbers("nvml.second", 1); second && count == "1" {
		return "1 GPU, and a handle of a second", true
	}
	return count + " GPU", true
}

func nvmlMemory(w Wanted, told records) (string, bool) {
	first, one := told.numbers("nvml.memory", 3)
	second, two := told.numbers("nvml.memory2", 4)
	switch {
	case !one || !two:
		return refusals(told, "nvml.memory", "nvml.memory2")
	case first[0] != second[0]:
		return fmt.Sprintf("%s by the first, %s by the second", inMiB(first[0]), inMiB(second[0])), true
	}
	return inMiB(first[0]) + " by both layouts", true
}

func nvmlSum(_ Wanted, told records) (string, bool) {
	first, one := told.numbers("nvml.memory", 3)
	second, two := told.numbers("nvml.memory2", 4)
	switch {
	case !one || !two:
		return refusals(told, "nvml.memory", "nvml.memory2")
	case first[1]+first[2] != first[0]:
		return fmt.Sprintf("by the first %s free and %s used of %s", inMiB(first[1]), inMiB(first[2]), inMiB(first[0])), true
	case second[1]+second[2]+second[3] != second[0]:
		return fmt.Sprintf("by the second %s free, %s used and %s reserved of %s", inMiB(second[1]), inMiB(second[2]), inMiB(second[3]), inMiB(second[0])), true
	}
	return "free, used and reserved add up by both layouts", true
}

func nvmlLimitsWanted(w Wanted) string {
	return limitWords(w.Power.Limit, w.Power.Limit, w.Power.Default, w.Power.Min, w.Power.Max)
}

func limitWords[N int | uint64](limit, enforced, usual, least, most N) string {
	w := func(mw N) string { return fmt.Sprintf("%g W", float64(mw)/1000) }
	return fmt.Sprintf("%s, enforced %s, by default %s, from %s to %s", w(limit), w(enforced), w(usual), w(least), w(most))
}

func nvmlLimits(_ Wanted, told records) (string, bool) {
	keys := []string{"nvml.limit", "nvml.enforced", "nvml.default"}
	var all []uint64
	for _, key := range keys {
		one, ok := told.numbers(key, 1)
		if !ok {
			return refusals(told, append(keys, "nvml.range")...)
		}
		all = append(all, one...)
	}
	ends, ok := told.numbers("nvml.range", 2)
	if !ok {
		return refusals(told, "nvml.range")
	}
	return limitWords(all[0], all[1], all[2], ends[0], ends[1]), true
}

// NVML's answers of a GPU without MIG.
const (
	notSupported = "error 3"
	noSuchDevice = "error 6"
)

func nvmlMIG(_ Wanted, told records) (string, bool) {
	mode, ok := told.first("nvml.mig")
	device, _ := told.first("nvml.migdevice")
	most, _ := told.first("nvml.migdevices")
	switch {
	case !ok:
		return "", false
	case mode != notSupported:
		return "NVML reports a MIG mode: " + mode, true
	case device != noSuchDevice && device != notSupported:
		return "a MIG device can be asked for", true
	case most != "0":
		return "as many MIG devices as " + most, true
	}
	return "hidden", true
}

// refusals returns the first error among some records.
func refusals(told records, keys ...string) (string, bool) {
	for _, key := range keys {
		if value, ok := told.first(key); ok {
			if _, isNumber := told.numbers(key, len(value)); !isNumber && len(value) > 5 && value[:5] == "error" {
				return key + ": " + value, true
			}
		}
	}
	return "", false
}
