package resource_test

import (
	"testing"

	"cosplay/internal/resource"
)

// The texts are PyTorch's.
const (
	refused113 = "CUDA out of memory. Tried to allocate 8.00 GiB (GPU 0; 6.00 GiB total capacity; 1.50 GiB already allocated; 4.21 GiB free; 1.50 GiB reserved in total by PyTorch) If reserved memory"
	refused26  = "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 6.00 GiB of which 101.00 MiB is free. Including non-PyTorch memory, this process has 5.90 GiB memory in use. Of the"
)

func TestExplain(t *testing.T) {
	program := func(refusals int, refusal, failure string) resource.ProgramReport {
		return resource.ProgramReport{End: 1, OutOfMemory: refusals, Refusal: refusal, Failure: failure}
	}
	for name, test := range map[string]struct {
		programs []resource.ProgramReport
		earlier  int
		wentOn   bool
		needMiB  int
	}{
		"no program":                    {},
		"caught":                        {programs: []resource.ProgramReport{program(2, refused26, ""), program(0, "", "ValueError")}, wentOn: true},
		"caught, with earlier programs": {programs: []resource.ProgramReport{program(2, refused26, "")}, earlier: 1},
		"another error instead":         {programs: []resource.ProgramReport{program(1, refused26, "RuntimeError")}},
		"PyTorch 1.13":                  {programs: []resource.ProgramReport{program(1, refused113, "OutOfMemoryError")}, needMiB: 10009},
		"PyTorch 2.6":                   {programs: []resource.ProgramReport{program(3, refused26, "OutOfMemoryError")}, needMiB: 6548},
		"the larger need":               {programs: []resource.ProgramReport{program(1, refused26, "OutOfMemoryError"), program(1, refused113, "OutOfMemoryError")}, needMiB: 10009},
		"without numbers":               {programs: []resource.ProgramReport{program(1, "CUDA out of memory. Tried to allocate more than 1EB memory.", "OutOfMemoryError")}},
	} {
		use := resource.Report{Programs: test.programs, Earlier: test.earlier}.Explain(resource.Use{OutOfMemory: 3})
		if use.WentOn != test.wentOn || use.NeedMiB != test.needMiB {
			t.Errorf("%s: went on %v, needs %d MiB", name, use.WentOn, use.NeedMiB)
		}
	}
}
