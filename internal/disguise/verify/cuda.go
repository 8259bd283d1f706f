package verify

import (
	"fmt"
	"slices"
)

const (
	cudaFix   = "a library in the session bypasses the disguise, or its files were damaged: see the checks of files; libcuda.so.1 must be the session's own (ldd, LD_LIBRARY_PATH)"
	capFix    = "programs get more or less memory than the target has: see the checks of files, and cosplay doctor for the CUDA driver. If foreign processes now use the whole GPU (see cosplay plan), their memory counts as the session's until cosplay apply --replace SESSION. Otherwise report it with the output of --json"
	memoryFix = "the interfaces report different figures for the session's memory: see the checks of files, then end the session's programs and try again"
)

// slack is the permitted difference between memory figures that were read one after the other or by two libraries:
// contexts and code change meanwhile.
func (w Wanted) slack() uint64 { return max(64*mib, w.memory()/64) }

func onCUDA(look func(Wanted, *reading) string) func(Wanted, Inside) answer {
	asked := probed(func(w Wanted, said *reading) string {
		words := look(w, said)
		if why, failed := said.failure("cuda.load", "cuda.init", "two.load", "two.init"); said.lacks && failed && said.refusal() == "" {
			said.lacks = false
			return "CUDA: " + why
		}
		return words
	})
	return func(w Wanted, in Inside) answer {
		if !w.CUDA {
			return skip("the host's driver has no libcuda.so.1")
		}
		return asked(w, in)
	}
}

var cudaChecks = slices.Concat(of(CUDA, cudaFix, []check[Inside]{
	{name: "cuda.name", expected: wantsName, found: onCUDA(text("cuda.name"))},
	{name: "cuda.uuid", expected: wantsUUID, found: onCUDA(text("cuda.uuid"))},
	{name: "cuda.count", expected: func(w Wanted) string { return w.devices("device") }, found: onCUDA(func(_ Wanted, said *reading) string { return said.text("cuda.count") + " device" })},
	{name: "cuda.total", expected: func(w Wanted) string { return wantsMemory(w) + byDevice }, found: onCUDA(agree("cuda.total", 1, "device", "cuda.info", 2, "context", byDevice))},
}...), of(CUDA, capFix, []check[Inside]{
	{name: "cuda.below", expected: always(isGranted), found: onCUDA(granted("one.below"))},
	{name: "cuda.above", expected: always(isRefused), found: onCUDA(refused("one.above"))},
	{name: "cuda.below-two", expected: always(isGranted), found: onCUDA(granted("two.first", "two.below"))},
	{name: "cuda.above-two", expected: always(isRefused), found: onCUDA(refused("two.above"))},
}...), of(CUDA, memoryFix, []check[Inside]{
	{name: "cuda.sum", expected: always(addsUp), found: onCUDA(cudaSum)},
	{name: "cuda.processes", expected: always(isListed), found: onCUDA(processes)},
	{name: "cuda.returned", expected: always(isFreed), found: onCUDA(returned)},
}...))

const (
	byDevice  = ", by device and by context"
	isGranted = "below the cap: granted"
	isRefused = "above the cap: out of memory"
	addsUp    = "free by CUDA and used by NVML add up"
	isListed  = "each process is listed with what it holds"
	isFreed   = "freed memory comes back"
)

// CUDA's answers to an allocation.
const (
	success     = 0
	outOfMemory = 2
)

func granted(keys ...string) func(Wanted, *reading) string {
	return func(w Wanted, said *reading) string {
		for _, key := range keys {
			tried := said.need(key, 2)
			switch {
			case tried[0] == 0:
				return "no memory is free"
			case tried[1] != success:
				return fmt.Sprintf("below the cap: %s refused with error %d", inMiB(tried[0]), tried[1])
			case tried[0] > w.memory():
				return fmt.Sprintf("far above the cap: %s granted", inMiB(tried[0]))
			}
		}
		return isGranted
	}
}

func refused(key string) func(Wanted, *reading) string {
	return func(w Wanted, said *reading) string {
		tried := said.need(key, 2)
		switch {
		case tried[1] == success:
			return fmt.Sprintf("above the cap: %s granted", inMiB(tried[0]))
		case tried[1] != outOfMemory:
			return fmt.Sprintf("above the cap: error %d", tried[1])
		case tried[0] > w.memory()+w.slack():
			return fmt.Sprintf("out of memory no sooner than at %s", inMiB(tried[0]))
		}
		return isRefused
	}
}

// books are figures of one moment: used and free by NVML, free by CUDA, and the bytes listed for the probe and for
// its second process, each plus one; 0 means not listed.
type books struct{ used, free, cuda, mine, theirs uint64 }

func (r *reading) books(moment string) books {
	n := r.need(moment+".books", 5)
	return books{n[0], n[1], n[2], n[3], n[4]}
}

func cudaSum(w Wanted, said *reading) string {
	for _, moment := range []string{"before", "one", "two"} {
		b := said.books(moment)
		if apart(b.used+b.cuda, w.memory()) > w.slack() || apart(b.free, b.cuda) > w.slack() {
			return fmt.Sprintf("NVML has %s used and %s free, CUDA %s free", inMiB(b.used), inMiB(b.free), inMiB(b.cuda))
		}
	}
	return addsUp
}

func apart(a, b uint64) uint64 { return max(a, b) - min(a, b) }

func processes(w Wanted, said *reading) string {
	before, alone, both := said.books("before"), said.books("one"), said.books("two")
	took, first, second := said.need("one.below", 2), said.need("two.first", 2), said.need("two.below", 2)
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
			return listed.who + " is not listed"
		case apart(listed.with, listed.holds) > w.slack():
			return fmt.Sprintf("%s is listed with %s and holds %s", listed.who, inMiB(listed.with-1), inMiB(listed.holds-1))
		}
	}
	return isListed
}

func held(tried []uint64) uint64 {
	if tried[1] != success {
		return 0
	}
	return tried[0]
}

func returned(w Wanted, said *reading) string {
	before, after := said.books("before"), said.books("after")
	busy, _ := said.first("busy")
	switch {
	case after.theirs != 0:
		return "a process that has ended is still listed"
	case after.mine > before.mine+w.slack():
		return fmt.Sprintf("%s are still held", inMiB(after.mine-before.mine))
	case busy == "0" && after.cuda+w.slack() < before.cuda:
		return fmt.Sprintf("%s free before, %s after", inMiB(before.cuda), inMiB(after.cuda))
	}
	return isFreed
}
