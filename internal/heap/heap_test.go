package heap

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"
)

// percent reads the setting of the garbage collector.
func percent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// TestCollections checks when the collections come: the first at 48 MiB, also of a large project, the next ones at five
// times the data.
func TestCollections(t *testing.T) {
	t.Cleanup(func() { debug.SetGCPercent(100) })
	Begin()
	if percent() != 1200 {
		t.Errorf("%d %% at the start", percent())
	}
	Large()
	time.Sleep(50 * time.Millisecond) // for a cleanup that should not come
	if percent() != 1200 {
		t.Errorf("%d %% in a large project", percent())
	}
	runtime.GC()
	for deadline := time.Now().Add(10 * time.Second); percent() != 400; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d %% after the first collection", percent())
		}
	}
}

// TestLarge checks that Linux may use huge pages for what is allocated before the first collection.
func TestLarge(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("this kernel has no huge pages")
	}
	t.Cleanup(func() { debug.SetGCPercent(100) })
	Begin()
	Large()
	if huge := hugeKiB(t); huge < first>>10 {
		t.Errorf("%d KiB have the flag, less than %d", huge, first>>10)
	}
}

// hugeKiB is the size of the mappings of this process with the flag of MADV_HUGEPAGE, in KiB.
func hugeKiB(t *testing.T) (sum int) {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "Size: %d kB", &size)
		if flags, is := strings.CutPrefix(lines.Text(), "VmFlags:"); is && slices.Contains(strings.Fields(flags), "hg") {
			sum += size
		}
	}
	return sum
}
