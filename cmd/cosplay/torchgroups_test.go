package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cosplay/internal/need"
)

// TestTorchrun starts two ranks by PyTorch's launcher in a session with two devices. The program checks each exchange
// against its closed form, and that NCCL's rules hold.
func TestTorchrun(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	p := newProject(t, fmt.Sprintf(withTorch, "3060"))
	p.run("apply", "--auto-approve")
	program, err := filepath.Abs("../../scripts/torch/collectives.py")
	if err != nil {
		t.Fatal(err)
	}
	// PyTorch 1.13 with Python 3.11 only understands these values of --redirects and --tee.
	out := p.run("exec", "pair", "--", python, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "30391",
		"--redirects", "1", "--tee", "1", program)
	if !strings.Contains(out, "all_reduce torch.float32 0x1.c000000000000p+2") || !strings.Contains(out, "ring torch.int64") {
		t.Errorf("it prints\n%s", out)
	}
	p.run("destroy", "--auto-approve")
}

const inTwoSessions = `
host "lab" { simulate = "2 x l40s" }
session "left" { target = "3060" }
session "right" { target = "3060" }
`

// TestTorchSessions: ranks in two sessions of a host find each other on its loopback.
func TestTorchSessions(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	p := newProject(t, inTwoSessions)
	p.run("apply", "--auto-approve")
	program, err := filepath.Abs("../../scripts/torch/collectives.py")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var outputs [2][]byte
	for rank, session := range []string{"left", "right"} {
		group.Go(func() {
			var err error
			outputs[rank], err = p.command("exec", session, "--", "env", "USE_LIBUV=0", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=30392", "WORLD_SIZE=2",
				fmt.Sprint("RANK=", rank), python, program).CombinedOutput()
			if err != nil {
				t.Errorf("rank %d: %v: %s", rank, err, outputs[rank])
			}
		})
	}
	group.Wait()
	if out := string(outputs[0]); !strings.Contains(out, "all_reduce torch.float32 0x1.c000000000000p+2") {
		t.Errorf("rank 0 prints\n%s", out)
	}
	p.run("destroy", "--auto-approve")
}

// replicas compares nn.DataParallel on two devices with the module alone.
const replicas = `
import torch
torch.set_num_threads(1)
torch.manual_seed(4)
seen = set()
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)
    def forward(self, x):
        seen.add((x.device, self.first.weight.device, len(x)))
        return self.second(self.first(x).relu())
net = Net().cuda()
both = torch.nn.DataParallel(net)
x = torch.randn(10, 8, device="cuda")
def gradients(model):
    net.zero_grad()
    out = model(x)
    assert out.device == torch.device("cuda:0") and out.shape == (10, 3), out
    out.square().mean().backward()
    return [p.grad.clone() for p in net.parameters()]
alone, shared = gradients(net), gradients(both)
assert all(torch.allclose(a, b, atol=1e-6) and a.device == b.device for a, b in zip(alone, shared))
print(sorted((str(x), str(w), n) for x, w, n in seen), torch.cuda.max_memory_allocated(1) > 0)
`

func TestTorchDataParallel(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	p := newProject(t, fmt.Sprintf(withTorch, "3060"))
	p.run("apply", "--auto-approve")
	const want = "[('cuda:0', 'cuda:0', 5), ('cuda:0', 'cuda:0', 10), ('cuda:1', 'cuda:1', 5)] True"
	if out := strings.TrimSpace(p.run("exec", "pair", "--", python, "-W", "error", "-c", replicas)); out != want {
		t.Errorf("it prints\n%s\nwant\n%s", out, want)
	}
	p.run("destroy", "--auto-approve")
}
