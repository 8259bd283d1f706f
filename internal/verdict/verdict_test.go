package verdict_test

import (
	"slices"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/resource"
	"cosplay/internal/verdict"
)

func TestVerdict(t *testing.T) {
	const finds = "; cosplay fits -- COMMAND finds the card"
	for _, test := range []struct {
		target      string
		peak        int
		outOfMemory int
		overcome    int
		want        string
	}{
		{"rtx-2060", 0, 0, 0, ""},
		{"rtx-2060", 5812, 0, 0, "peaked at 5812 of 6144 MiB; would fit an RTX 2060 or larger, not a GTX 1650 SUPER (4096 MiB)"},
		{"rtx-2060", 6144, 0, 0, "peaked at 6144 of 6144 MiB; would fit an RTX 2060 or larger, not a GTX 1650 SUPER (4096 MiB)"},
		{"rtx-2060", 4097, 0, 0, "peaked at 4097 of 6144 MiB; would fit an RTX 2060 or larger, not a GTX 1650 SUPER (4096 MiB)"},
		{"rtx-2060", 4096, 0, 0, "peaked at 4096 of 6144 MiB; would fit a GTX 1650 SUPER (4096 MiB) too, not a GTX 1060 3GB (3072 MiB)"},
		{"rtx-2060", 300, 0, 0, "peaked at 300 of 6144 MiB; would fit a GTX 750 (1024 MiB) too"},
		{"gtx-1650", 3900, 0, 0, "peaked at 3900 of 4096 MiB; would fit a GTX 1650 or larger, not a GTX 1060 3GB (3072 MiB)"},
		{"gtx-1060-3gb", 3000, 0, 0, "peaked at 3000 of 3072 MiB; would fit a GTX 1060 3GB or larger, not a GTX 960 (2048 MiB)"},
		{"rtx-2070", 8160, 0, 0, "peaked at 8160 of 8192 MiB; would fit an RTX 2070 or larger, not an RTX 2060 (6144 MiB)"},
		{"rtx-3060", 7000, 0, 0, "peaked at 7000 of 12288 MiB; would fit an RTX 3060 (8192 MiB) too, not an RTX 2060 (6144 MiB)"},
		{"a100-pcie-40gb", 40000, 0, 0, "peaked at 40000 of 40960 MiB; would fit an A100-PCIE-40GB or larger, not a V100-SXM2-32GB (32768 MiB)"},
		{"a100-40gb", 30000, 0, 0, "peaked at 30000 of 40960 MiB; would fit a V100-SXM2-32GB (32768 MiB) too, not a Quadro RTX 6000 (24576 MiB)"},
		{"b300", 200000, 0, 0, "peaked at 200000 of 275040 MiB; would fit a B300 SXM6 AC or larger, not a GB200 (189471 MiB)"},
		{"gtx-1650", 5000, 0, 0, "peaked at 5000 of 4096 MiB; would fit a GTX 1660 (6144 MiB) or larger, not a GTX 1650 (4096 MiB)"},
		{"rtx-5090", 40000, 0, 0, "peaked at 40000 of 32607 MiB; would fit an A100-SXM4-40GB (40960 MiB) or larger, not an RTX 5090 (32607 MiB)"},
		{"rtx-2060", 6100, 3, 0, "ran out of memory 3 times: 6144 MiB are not enough" + finds},
		{"rtx-2060", 0, 1, 0, "ran out of memory once: 6144 MiB are not enough" + finds},
		{"rtx-5090", 32000, 2, 0, "ran out of memory 2 times: 32607 MiB are not enough" + finds},
		{"b300", 270000, 1, 0, "ran out of memory once: 275040 MiB are not enough, and no GPU of the catalog has more"},
		{"b300", 280000, 0, 0, "peaked at 280000 of 275040 MiB; no GPU of the catalog has that much"},
		{"h200", 302, 0, 0, "peaked at 302 of 143771 MiB; would fit a GTX 750 (1024 MiB) too; of the professional GPUs, an RTX A2000 (6138 MiB) or larger"},
		{"rtx-3090", 21000, 0, 0, "peaked at 21000 of 24576 MiB; would fit an A10G (23028 MiB) too, not an RTX A4500 (20470 MiB); of the gaming GPUs, an RTX 3090 or larger"},
		{"rtx-3090", 12000, 0, 0, "peaked at 12000 of 24576 MiB; would fit an RTX 3080 Ti (12288 MiB) too, not an RTX 2080 Ti (11264 MiB)"},
		{"t4", 9000, 0, 0, "peaked at 9000 of 15360 MiB; would fit an RTX 3080 (10240 MiB) too, not a P4 (7680 MiB); of the professional GPUs, an RTX A2000 12GB (12282 MiB) or larger"},
		{"rtx-2060", 6144, 3, 3, "peaked at 6144 of 6144 MiB (out of memory 3 times, and got over it); would fit an RTX 2060 or larger; cosplay fits -- COMMAND finds out whether less is enough"},
		{"rtx-2060", 6144, 3, 2, "ran out of memory once: 6144 MiB are not enough" + finds},
	} {
		own, err := catalog.Target(test.target)
		if err != nil {
			t.Fatal(err)
		}
		v, used := verdict.Of(resource.Use{PeakMiB: test.peak, OutOfMemory: test.outOfMemory, Overcome: test.overcome}, own, catalog.Targets())
		if used != (test.want != "") {
			t.Errorf("%s with %d MiB has a verdict: %v", test.target, test.peak, used)
		}
		if used && v.String() != test.want {
			t.Errorf("%s with %d MiB:\n got %s\nwant %s", test.target, test.peak, v, test.want)
		}
	}
}

// TestVerdictDuringTrial: what cosplay verify allocates to try a session is not judged.
func TestVerdictDuringTrial(t *testing.T) {
	own, err := catalog.Target("rtx-2060")
	if err != nil {
		t.Fatal(err)
	}
	if v, used := verdict.Of(resource.Use{NowBytes: 3 << 30}, own, catalog.Targets()); used {
		t.Errorf("a session that only a trial used: %s", v)
	}
}

// TestVerdictOfPrograms: programs that went on with less memory ran, and an error says what is needed at least.
func TestVerdictOfPrograms(t *testing.T) {
	own, err := catalog.Target("rtx-2060")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		use        resource.Use
		want, next string
	}{
		{resource.Use{PeakMiB: 5900, OutOfMemory: 3, WentOn: true},
			"peaked at 5900 of 6144 MiB (out of memory 3 times, and got over it); would fit an RTX 2060 or larger; cosplay fits -- COMMAND finds out whether less is enough", ""},
		{resource.Use{PeakMiB: 5900, OutOfMemory: 1, NeedMiB: 20000},
			"ran out of memory once: 6144 MiB are not enough, at least 20000 MiB are needed; cosplay fits -- COMMAND finds the card", "rtx-4000-sff-ada"},
		{resource.Use{PeakMiB: 5900, CacheMiB: 1500}, "peaked at 5900 of 6144 MiB; would fit an RTX 2060 or larger, not a GTX 1650 SUPER (4096 MiB)", ""},
		{resource.Use{PeakMiB: 5900, CacheMiB: 2500},
			"peaked at 5900 of 6144 MiB; would fit an RTX 2060 or larger, not a GTX 1060 3GB (3072 MiB); cosplay fits -- COMMAND finds out whether less is enough", ""},
		{resource.Use{PeakMiB: 5900, CacheMiB: 5900},
			"peaked at 5900 of 6144 MiB; would fit an RTX 2060 or larger; cosplay fits -- COMMAND finds out whether less is enough", ""},
		{resource.Use{PeakMiB: 5900, OutOfMemory: 1, NeedMiB: 6000}, "ran out of memory once: 6144 MiB are not enough; cosplay fits -- COMMAND finds the card", "rtx-2060-super"},
		{resource.Use{OutOfMemory: 1, NeedMiB: 300000}, "ran out of memory once: 6144 MiB are not enough, at least 300000 MiB are needed, and no GPU of the catalog has that much", ""},
	} {
		v, _ := verdict.Of(test.use, own, catalog.Targets())
		next := ""
		if v.NextLarger != nil {
			next = v.NextLarger.Key
		}
		if v.String() != test.want || next != test.next {
			t.Errorf("%+v:\n got %s, next %q\nwant %s, next %q", test.use, v, next, test.want, test.next)
		}
	}
}

// For any use of any GPU, the GPU that is said to fit has room, and the one that is said not to fit has none, in any
// order of the catalog.
func TestVerdictsAreTrue(t *testing.T) {
	all := catalog.Targets()
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	for _, own := range all {
		for peak := 1; peak <= own.MemoryMiB; peak += 1031 {
			v, _ := verdict.Of(resource.Use{PeakMiB: peak}, own, all)
			if v.Fits == nil || v.Fits.MemoryMiB < peak || v.Fits.MemoryMiB > own.MemoryMiB+1024 {
				t.Fatalf("%s with %d MiB is said to fit %+v", own.Key, peak, v.Fits)
			}
			if i := slices.IndexFunc(all, func(t resource.Target) bool { return t.MemoryMiB >= peak && t.MemoryMiB < v.Fits.MemoryMiB-1024 }); i >= 0 {
				t.Fatalf("%s with %d MiB is said to fit %s, and %s is smaller", own.Key, peak, v.Fits.Key, all[i].Key)
			}
			if v.FitsAlike != nil && (v.FitsAlike.MemoryMiB < peak || v.FitsAlike.Key == v.Fits.Key) {
				t.Fatalf("%s with %d MiB is said to fit %s, and of its kind %s", own.Key, peak, v.Fits.Key, v.FitsAlike.Key)
			}
			if v.DoesNotFit != nil && v.DoesNotFit.MemoryMiB >= peak {
				t.Fatalf("%s with %d MiB is said not to fit %s", own.Key, peak, v.DoesNotFit.Key)
			}
			if again, _ := verdict.Of(resource.Use{PeakMiB: peak}, own, backwards); again.String() != v.String() {
				t.Fatalf("%s with %d MiB: %s; and with the catalog backwards: %s", own.Key, peak, v, again)
			}
		}
	}
}
