package verify

import "fmt"

const (
	cudaFix   = "a library in the session bypasses the disguise, or its files were damaged: see the checks of files; libcuda.so.1 must be the session's own (ldd, LD_LIBRARY_PATH)"
	capFix    = "programs get more or less memory than the target has: see the checks of files, and cosplay doctor for the CUDA driver. If foreign processes now use the whole GPU (see cosplay plan), their memory counts as the session's until cosplay apply --replace SESSION. Otherwise report it with the output of --json"
	memoryFix = "the interfaces report different figures for the session's memory: see the checks of files, then end the session's programs and try again"
)

// slack is the permitted difference between memory figures that were read one after the other or by two libraries:
// contexts and code change meanwhile.
func (w Wanted) slack() uint64 { return max(64*mib, w.memory()/64) }

// onCUDA checks the probe's answers about CUDA.
func onCUDA(look func(Wanted, records) (string, bool)) func(Wanted, Inside) answer {
	asked := probed(func(w Wanted, told records) (string, bool) {
		if words, ok := look(w, told); ok {
			return words, true
		}
		for _, key := range []string{"cuda.load", "cuda.init", "two.load", "two.init"} {
			if value, said := told.first(key); said && value != "ok" {
				return "CUDA: " + value, true
			}
		}
		return "", false
	})
	return func(w Wanted, in Inside) answer {
		if !w.CUDA {
			return skip("the host's driver has no libcuda.so.1")
		}
		return asked(w, in)
	}
}

var cudaChecks = []check[Inside]{
	{name: "cuda.name", class: CUDA, fix: cudaFix, expected: func(w Wanted) string { return w.Name },
		found: onCUDA(func(_ Wanted, told records) (string, bool) { return told.first("cuda.name") })},
	{name: "cuda.uuid", class: CUDA, fix: cudaFix, expected: func(w Wanted) string { return w.UUID },
		found: onCUDA(func(_ Wanted, told records) (string, bool) { return told.first("cuda.uuid") })},
	{name: "cuda.count", class: CUDA, fix: cudaFix, expected: func(Wanted) string { return "1 device" },
		found: onCUDA(func(_ Wanted, told records) (string, bool) {
			count, ok := told.first("cuda.count")
			return count + " device", ok
		})},
	{name: "cuda.total", class: CUDA, fix: cudaFix,
		expected: func(w Wanted) string { return fmt.Sprintf("%d MiB, by device and by context", w.MemoryMiB) }, found: onCUDA(cudaTotal)},
	{name: "cuda.below", class: CUDA, fix: capFix, expected: func(Wanted) string { return "below the cap: granted" }, found: onCUDA(granted("one.below"))},
	{name: "cuda.above", class: CUDA, fix: capFix, expected: func(Wanted) string { return "above the cap: out of memory" }, found: onCUDA(refused("one.above"))},
	{name: "cuda.below-two", class: CUDA, fix: capFix, expected: func(Wanted) string { return "below the cap: granted" },
		found: onCUDA(granted("two.first", "two.below"))},
	{name: "cuda.above-two", class: CUDA, fix: capFix, expected: func(Wanted) string { return "above the cap: out of memory" }, found: onCUDA(refused("two.above"))},
	{name: "cuda.sum", class: CUDA, fix: memoryFix, expected: func(Wanted) string { return "free by CUDA and used by NVML add up" }, found: onCUDA(cudaSum)},
	{name: "cuda.processes", class: CUDA, fix: memoryFix, expected: func(Wanted) string { return "each process is listed with what it holds" }, found: onCUDA(processes)},
	{name: "cuda.returned", class: CUDA, fix: memoryFix, expected: func(Wanted) string { return "freed memory comes back" }, found: onCUDA(returned)},
}

func cudaTotal(_ Wanted, told records) (string, bool) {
	device, one := told.numbers("cuda.total", 1)
	context, two := told.numbers("cuda.info", 2)
	switch {
	case !one || !two:
		return refusals(told, "cuda.total", "cuda.info")
	case device[0] != context[0]:
		return fmt.Sprintf("%s by device, %s by context", inMiB(device[0]), inMiB(context[0])), true
	}
	return inMiB(device[0]) + ", by device and by context", true
}

// CUDA's answers to an allocation.
const (
	success     = 0
	outOfMemory = 2
)

func granted(keys ...string) func(Wanted, records) (string, bool) {
	return func(w Wanted, told records) (string, bool) {
		for _, key := range keys {
			tried, ok := told.numbers(key, 2)
			switch {
			case !ok:
				return "", false
			case tried[0] == 0:
				return "no memory is free", true
			case tried[1] != success:
				return fmt.Sprintf("below the cap: %s refused with error %d", inMiB(tried[0]), tried[1]), true
			case tried[0] > w.memory():
				return fmt.Sprintf("far above the cap: %s granted", inMiB(tried[0])), true
			}
		}
		return "below the cap: granted", true
	}
}

func refused(key string) func(Wanted, records) (string, bool) {
	return func(w Wanted, told records) (string, bool) {
		tried, ok := told.numbers(key, 2)
		switch {
		case !ok:
			return "", false
		case tried[1] == success:
			return fmt.Sprintf("above the cap: %s granted", inMiB(tried[0])), true
		case tried[1] != outOfMemory:
			return fmt.Sprintf("above the cap: error %d", tried[1]), true
		case tried[0] > w.memory()+w.slack():
			return fmt.Sprintf("out of memory no sooner than at %s", inMiB(tried[0])), true
		}
		return "above the cap: out of memory", true
	}
}

// books are figures of one moment: used and free by NVML, free by CUDA, and the bytes listed for the probe and for
// its second process, each plus one; 0 means not listed.
type books struct{ used, free, cuda, mine, theirs uint64 }

func (r records) books(moment string) (books, bool) {
	n, ok := r.numbers(moment+".books", 5)
	if !ok {
		return books{}, false
	}
	return books{n[0], n[1], n[2], n[3], n[4]}, true
}

func cudaSum(w Wanted, told records) (string, bool) {
	for _, moment := range []string{"before", "one", "two"} {
		b, ok := told.books(moment)
		if !ok {
			return "", false
		}
		if apart(b.used+b.cuda, w.memory()) > w.slack() || apart(b.free, b.cuda) > w.slack() {
			return fmt.Sprintf("NVML has %s used and %s free, CUDA %s free", inMiB(b.used), inMiB(b.free), inMiB(b.cuda)), true
		}
	}
	return "free by CUDA and used by NVML add up", true
}

func apart(a, b uint64) uint64 { return max(a, b) - min(a, b) }

func processes(w Wanted, told records) (string, bool) {
	before, one := told.books("before")
	alone, two := told.books("one")
	both, three := told.books("two")
	took, four := told.numbers("one.below", 2)
	first, five := told.numbers("two.first", 2)
	second, six := told.numbers("two.below", 2)
	if !one || !two || !three || !four || !five || !six {
		return "", false
	}
	for _, listed := range []struct {
		who         string
		with, holds uint64
	}{
		{"the probe", alone.mine, held(took) + before.mine},
		{"the probe", both.mine, held(first) + before.mine},
		{"a second process", both.theirs, held(second) + before.mine},
	} {
		switch {
		case listed.with == 0:
			return listed.who + " is not listed", true
		case apart(listed.with, listed.holds) > w.slack():
			return fmt.Sprintf("%s is listed with %s and holds %s", listed.who, inMiB(listed.with-1), inMiB(listed.holds-1)), true
		}
	}
	return "each process is listed with what it holds", true
}

func held(tried []uint64) uint64 {
	if tried[1] != success {
		return 0
	}
	return tried[0]
}

func returned(w Wanted, told records) (string, bool) {
	before, one := told.books("before")
	after, two := told.books("after")
	switch {
	case !one || !two:
		return "", false
	case after.theirs != 0:
		return "a process that has ended is still listed", true
	case after.mine > before.mine+w.slack():
		return fmt.Sprintf("%s are still held", inMiB(after.mine-before.mine)), true
	case told["busy"] != nil && told["busy"][0] == "0" && after.cuda+w.slack() < before.cuda:
		return fmt.Sprintf("%s free before, %s after", inMiB(before.cuda), inMiB(after.cuda)), true
	}
	return "freed memory comes back", true
}
