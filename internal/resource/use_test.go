package resource_test

import (
	"testing"

	"cosplay/internal/resource"
)

// TestDiscount: of a peak, what PyTorch reserved beyond its tensors may be cache, and all of it where programs are not in
// the report.
func TestDiscount(t *testing.T) {
	const mib = 1 << 20
	program := func(allocated, reserved int) resource.ProgramReport {
		return resource.ProgramReport{Devices: []resource.DevicePeak{{Allocated: allocated * mib, Reserved: reserved * mib}}}
	}
	for name, test := range map[string]struct {
		report resource.Report
		cache  int
	}{
		"no program":            {},
		"a program":             {resource.Report{Programs: []resource.ProgramReport{program(3500, 5800)}}, 2300},
		"two programs":          {resource.Report{Programs: []resource.ProgramReport{program(3500, 5800), program(100, 300)}}, 2500},
		"one after others":      {resource.Report{Programs: []resource.ProgramReport{program(0, 5000), program(0, 5000)}}, 5900},
		"less than its tensors": {resource.Report{Programs: []resource.ProgramReport{program(300, 100)}}, 0},
		"an earlier one":        {resource.Report{Programs: []resource.ProgramReport{program(100, 300)}, Earlier: 1}, 5900},
	} {
		if got := test.report.Discount(resource.Use{PeakMiB: 5900}).CacheMiB; got != test.cache {
			t.Errorf("%s: %d MiB, want %d", name, got, test.cache)
		}
	}
}

func TestExplain(t *testing.T) {
	const mib = 1 << 20
	program := func(refusals, used, requested int, failure string) resource.ProgramReport {
		p := resource.ProgramReport{End: 1, OutOfMemory: refusals, Failure: failure}
		if requested > 0 {
			p.Error = &resource.MemoryFailure{Used: used * mib, Requested: requested * mib}
		}
		return p
	}
	for name, test := range map[string]struct {
		programs []resource.ProgramReport
		earlier  int
		wentOn   bool
		needMiB  int
	}{
		"no program":                    {},
		"caught":                        {programs: []resource.ProgramReport{program(2, 6043, 512, ""), program(0, 0, 0, "ValueError")}, wentOn: true},
		"caught, with earlier programs": {programs: []resource.ProgramReport{program(2, 6043, 512, "")}, earlier: 1},
		"another error instead":         {programs: []resource.ProgramReport{program(1, 6043, 512, "RuntimeError")}},
		"the larger need":               {programs: []resource.ProgramReport{program(3, 6043, 512, "OutOfMemoryError"), program(1, 1833, 8192, "OutOfMemoryError")}, needMiB: 10025},
		"a report without a record":     {programs: []resource.ProgramReport{program(1, 0, 0, "OutOfMemoryError")}},
	} {
		use := resource.Report{Programs: test.programs, Earlier: test.earlier}.Explain(resource.Use{OutOfMemory: 3})
		if use.WentOn != test.wentOn || use.NeedMiB != test.needMiB {
			t.Errorf("%s: went on %v, needs %d MiB", name, use.WentOn, use.NeedMiB)
		}
	}
}
