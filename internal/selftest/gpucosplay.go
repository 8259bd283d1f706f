package selftest

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"cosplay/internal/durable"
	"cosplay/internal/gpucosplay"
	"cosplay/internal/machine"
	"cosplay/internal/prose"
	"cosplay/internal/terminal"
)

// gpuCosplay warns of an earlier tool that removes what cosplay creates.
func (c *checkup) gpuCosplay() {
	const (
		thing  = "gpu-cosplay"
		danger = "its up and down destroy every MIG slice of a GPU, and its reset also removes every container whose name begins with cosplay-, those of cosplay too"
	)
	state := filepath.Join(machine.HomeDir(), gpucosplay.Folder, gpucosplay.File)
	data, _, err := durable.ReadOwned(state, gpucosplay.MaxBytes)
	if err == nil {
		if all, err := gpucosplay.Parse(data); err != nil || len(all) > 0 {
			found := "sessions that cannot be read"
			if err == nil {
				found = prose.Count(len(all), "session")
			}
			c.add("", thing, fmt.Sprintf("its state %s has %s: %s", state, found, danger), Notice,
				fmt.Sprintf("cosplay init --from-gpu-cosplay in an empty folder imports them; if that is done: mv %[1]s %[1]s.imported", terminal.ShellWord(state)))
			return
		}
	}
	if path, err := exec.LookPath(thing); err == nil {
		c.add("", thing, fmt.Sprintf("%s is installed: %s", path, danger), Notice, "pip uninstall gpu-cosplay, once none of its sessions runs outside of cosplay")
	}
}
