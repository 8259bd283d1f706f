package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"cosplay/internal/need"
)

// notRun is the exit code of scripts/check-pytorch where Debian's archive has no source of this PyTorch.
const notRun = 3

// TestTorchOwnTests runs a part of PyTorch's own tests in a session with two devices: what fails is what scripts/pytorch lists.
func TestTorchOwnTests(t *testing.T) {
	t.Parallel()
	need.Root(t, "apt-get", "unshare")
	if python := need.Torch(t); python != "/usr/bin/python3" {
		need.Lacking(t, "PyTorch is that of %s, and the tests take Debian's", python)
	}
	cosplay, err := exec.LookPath("cosplay")
	if err != nil {
		t.Fatal(err)
	}
	const script = "../../scripts/check-pytorch"
	out, err := bounded(t, script, "--versions", "machine", "--only", "../../scripts/pytorch/quick.txt", cosplay).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notRun {
		need.Lacking(t, "%s", out)
	}
	if err != nil || !strings.Contains(string(out), " passed") {
		t.Errorf("%v\n%s", err, out)
	}
}
