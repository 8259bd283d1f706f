package render

import (
	"io"

	"cosplay/internal/disguise/verify"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// tested is a session with so many passed checks of each class, those of Python
// skipped for want of PyTorch.
func tested(a resource.Address, changes ...func(*verify.Result)) VerifiedSession {
	s := VerifiedSession{Session: resource.Session{Address: a}}
	for _, way := range []verify.Way{verify.Exec, verify.SSH} {
		for _, c := range []struct {
			class verify.Class
			name  string
		}{{verify.Entry, "entry"}, {verify.Environment, "environment"}, {verify.Environment, "identity"}, {verify.SMI, "smi.list"}, {verify.SMI, "smi.memory"},
			{verify.NVML, "nvml.name"}, {verify.NVML, "nvml.memory"}, {verify.CUDA, "cuda.below"}, {verify.CUDA, "cuda.above"}, {verify.Slice, "slice.inside"}} {
			s.Results = append(s.Results, verify.Result{Check: c.name, Class: c.class, Way: way, Outcome: verify.Passed, Expected: "as it is", Got: prose.Advice{What: "as it is"}})
		}
		s.Results = append(s.Results, verify.Result{Check: "torch.name", Class: verify.Python, Way: way, Outcome: verify.Skipped, Expected: "NVIDIA GeForce RTX 2060",
			Why: "there is no Python module torch in the session"})
	}
	for _, name := range []string{"settings.power", "settings.clock"} {
		s.Results = append(s.Results, verify.Result{Check: name, Class: verify.Settings, Way: verify.Outside, Outcome: verify.Passed, Expected: "700 W", Got: prose.Advice{What: "700 W"}})
	}
	for _, name := range []string{verify.FacadesCheck, verify.FiguresCheck} {
		s.Results = append(s.Results, verify.Result{Check: name, Class: verify.Files, Way: verify.Outside, Outcome: verify.Passed, Expected: "as written", Got: prose.Advice{What: "as written"}})
	}
	for i := range s.Results {
		for _, change := range changes {
			change(&s.Results[i])
		}
	}
	return s
}

func fails(check, expected, found, fix string) func(*verify.Result) {
	return func(r *verify.Result) {
		if r.Check == check {
			r.Outcome, r.Expected, r.Got = verify.Failed, expected, prose.Advice{What: found, Fix: fix}
		}
	}
}

func verifiedViews() (holds, broken VerifyView) {
	memory := fails("nvml.memory", "6144 MiB by both layouts", "143771 MiB by both layouts", "a library in the session bypasses the disguise: libnvidia-ml.so.1 must be the session's own (ldd, LD_LIBRARY_PATH)")
	figures := fails(verify.FiguresCheck, "as when the session was prepared", "figures was changed", "cosplay apply writes the session's files again")
	nth := func(i int) resource.Address { return resource.Nth("worker", i) }
	holds.Sessions = []VerifiedSession{tested(nth(0)), tested(nth(1)), tested(resource.One("big"))}
	broken.Sessions = []VerifiedSession{tested(nth(0), memory), tested(nth(1), memory), tested(nth(2)), tested(resource.One("big"), figures)}
	return holds, broken
}

func verifyScreens() []screen {
	holds, broken := verifiedViews()
	single := VerifyView{Sessions: broken.Sessions[:1]}
	applied := run(one(), no, no)
	applied.Verify = &single
	return []screen{
		{"verify-holds", func(w io.Writer, s Style) { Show(w, s, holds) }},
		{"verify-broken", func(w io.Writer, s Style) { Show(w, s, broken) }},
		{"verify-none", func(w io.Writer, s Style) { Show(w, s, VerifyView{}) }},
		{"verify-verbose", func(w io.Writer, s Style) { s.Verbose = true; Show(w, s, single) }},
		{"applied-verify", func(w io.Writer, s Style) { Show(w, s, applied) }},
	}
}
