package verify

import "fmt"

const nvmlFix = "a library in the session bypasses the disguise, or its files were damaged: see the checks of files; libnvidia-ml.so.1 must be the session's own (ldd, LD_LIBRARY_PATH)"

// probed checks the probe's answers. Checks are skipped if the image has no loader for the probe.
func probed(look func(Wanted, *reading) string) func(Wanted, Inside) answer {
	return func(w Wanted, in Inside) answer {
		out := in.Answers[askProbe]
		if w.Container && out.absent() {
			return skip(noGlibc)
		}
		said := &reading{records: parse(out.Text)}
		words := look(w, said)
		if refused := said.refusal(); said.lacks && refused != "" {
			return found(refused)
		}
		if !said.lacks {
			return found(words)
		}
		if why, failed := said.failure("nvml.load", "nvml.init"); failed {
			return found("NVML: " + why)
		}
		return found(out.ended())
	}
}

func text(key string) func(Wanted, *reading) string {
	return func(_ Wanted, said *reading) string { return said.text(key) }
}

// agree checks that two records of the probe begin with the same number of bytes, which they give by two ways.
func agree(key string, numbers int, way, other string, numbersOfOther int, otherWay, both string) func(Wanted, *reading) string {
	return func(_ Wanted, said *reading) string {
		one, two := said.need(key, numbers)[0], said.need(other, numbersOfOther)[0]
		if one != two {
			return fmt.Sprintf("%s by %s, %s by %s", inMiB(one), way, inMiB(two), otherWay)
		}
		return inMiB(one) + both
	}
}

var nvmlChecks = of(NVML, nvmlFix, []check[Inside]{
	{name: "nvml.name", expected: wantsName, found: probed(text("nvml.name"))},
	{name: "nvml.uuid", expected: wantsUUID, found: probed(text("nvml.uuid"))},
	{name: "nvml.count", expected: func(w Wanted) string { return w.devices("GPU") }, found: probed(nvmlCount)},
	{name: "nvml.memory", expected: func(w Wanted) string { return wantsMemory(w) + byBoth }, found: probed(agree("nvml.memory", 3, "the first", "nvml.memory2", 4, "the second", byBoth))},
	{name: "nvml.sum", expected: always(allAddUp), found: probed(nvmlSum)},
	{name: "nvml.limits", expected: nvmlLimitsWanted, found: probed(nvmlLimits)},
	{name: "nvml.mig", expected: always("hidden"), found: probed(nvmlMIG)},
}...)

const (
	byBoth   = " by both layouts"
	allAddUp = "free, used and reserved add up by both layouts"
)

func nvmlCount(_ Wanted, said *reading) string {
	count := said.text("nvml.count")
	if _, second := said.numbers("nvml.second", 1); second && count == "1" {
		return "1 GPU, and a handle of a second"
	}
	return count + " GPU"
}

func nvmlSum(_ Wanted, said *reading) string {
	first, second := said.need("nvml.memory", 3), said.need("nvml.memory2", 4)
	switch {
	case first[1]+first[2] != first[0]:
		return fmt.Sprintf("by the first %s free and %s used of %s", inMiB(first[1]), inMiB(first[2]), inMiB(first[0]))
	case second[1]+second[2]+second[3] != second[0]:
		return fmt.Sprintf("by the second %s free, %s used and %s reserved of %s", inMiB(second[1]), inMiB(second[2]), inMiB(second[3]), inMiB(second[0]))
	}
	return allAddUp
}

func nvmlLimitsWanted(w Wanted) string {
	return limitWords(w.Power.Limit, w.Power.Limit, w.Power.Default, w.Power.Min, w.Power.Max)
}

func limitWords[N int | uint64](limit, enforced, usual, least, most N) string {
	w := func(mw N) string { return fmt.Sprintf("%g W", float64(mw)/1000) }
	return fmt.Sprintf("%s, enforced %s, by default %s, from %s to %s", w(limit), w(enforced), w(usual), w(least), w(most))
}

func nvmlLimits(_ Wanted, said *reading) string {
	limit, enforced, usual := said.need("nvml.limit", 1), said.need("nvml.enforced", 1), said.need("nvml.default", 1)
	ends := said.need("nvml.range", 2)
	return limitWords(limit[0], enforced[0], usual[0], ends[0], ends[1])
}

// NVML's answers of a GPU without MIG.
const (
	notSupported = "error 3"
	noSuchDevice = "error 6"
)

func nvmlMIG(_ Wanted, said *reading) string {
	mode := said.text("nvml.mig")
	device, _ := said.first("nvml.migdevice")
	most, _ := said.first("nvml.migdevices")
	switch {
	case mode != notSupported:
		return "NVML reports a MIG mode: " + mode
	case device != noSuchDevice && device != notSupported:
		return "a MIG device can be asked for"
	case most != "0":
		return "as many MIG devices as " + most
	}
	return "hidden"
}
