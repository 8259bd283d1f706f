package disguise_test

import (
	"os"
	"path/filepath"
	"testing"

	"cosplay/internal/resource"
)

// known has allocations of known sizes, each on another line, and ends by the error of one that does not fit.
const known = `import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(64 << 20))          # 256 MiB of parameters
        self.register_buffer("mask", torch.zeros(16 << 20))              # 64 MiB of them
    def forward(self, x):
        return self.weight * x                                            # 256 MiB of activations, in a range
net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
x = torch.ones(64 << 20).cuda()                                           # 256 MiB of inputs
for step in range(2):
    with torch.autograd.profiler.record_function("predict"):
        y = net(x)
    loss = y.sum()
    del y
    loss.backward()
    optimizer.step()                                                      # 256 MiB of optimizer state
    optimizer.zero_grad(set_to_none=True)
kept = torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
more = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
`

// The report names the lines that had the memory at the peak and at the error, and what it was for.
func TestTorchMemory(t *testing.T) {
	s := newTorchSession(t, "rtx-2060", "cpu")
	program := filepath.Join(t.TempDir(), "known.py")
	check(t, os.WriteFile(program, []byte(known), 0o644))
	out, r := s.reports(t, program)
	p := r.Programs[0]
	if p.Error == nil || p.Fullest == nil || p.Step == nil {
		t.Fatalf("the report has %+v; the program printed %s", p, out)
	}
	if p.Error.Requested != 1<<30 || p.Error.At.Line != 21 || filepath.Base(p.Error.At.File) != "known.py" || p.Error.Stage != "forward" {
		t.Errorf("the error is %+v", p.Error)
	}
	want := []resource.MemoryLine{{CodeLine: resource.CodeLine{Line: 20}, Kind: "inputs", Bytes: 4096 * mib}, {CodeLine: resource.CodeLine{Line: 9}, Kind: "parameters", Bytes: 320 * mib},
		{CodeLine: resource.CodeLine{Line: 11}, Kind: "inputs", Bytes: 256 * mib}, {CodeLine: resource.CodeLine{Line: 18}, Kind: "optimizer_state", Bytes: 256 * mib}}
	for i, line := range want {
		if i >= len(p.Error.Lines) {
			t.Fatalf("the lines are %+v", p.Error.Lines)
		}
		if got := p.Error.Lines[i]; got.Line != line.Line || got.Kind != line.Kind || got.Bytes != line.Bytes {
			t.Errorf("line %d of the error is %+v, want %+v", i, got, line)
		}
	}
	stages := map[string]int{}
	for _, stage := range p.Fullest.Stages {
		stages[stage.Name] = stage.Bytes / mib
	}
	// The first forward pass is in the load stage, since it has no matrix product. In the second step there is the momentum, too.
	for stage, want := range map[string]int{"load": 832, "backward": 1088, "step": 1088, "forward": 832 + 4096} {
		if got := stages[stage]; got < want || got > want+1 {
			t.Errorf("the peak of stage %s is %d MiB, want %d; all are %v", stage, got, want, stages)
		}
	}
	if len(p.Fullest.Ranges) != 1 || p.Fullest.Ranges[0].Name != "predict" || p.Fullest.Ranges[0].Bytes < 1088*mib {
		t.Errorf("the ranges are %+v", p.Fullest.Ranges)
	}
	if p.Step.Count != 2 {
		t.Errorf("the steps are %+v", p.Step)
	}
}
