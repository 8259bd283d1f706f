package resource_test

import (
	"testing"

	"cosplay/internal/resource"
)

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
