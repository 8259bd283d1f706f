package render

import (
	"fmt"
	"slices"

	"cosplay/internal/apply"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// unoffered are NVML's codes for a call that the driver does not offer.
var unoffered = []int{3, 4, 13, 999}

// byHand says what the user can do about a step that was to restore a GPU, where the driver does not offer the call;
// nothing for any other failure.
func (v AppliedView) byHand(f apply.Failure) (none prose.Advice) {
	if v.NVMLCode == nil || !slices.Contains(unoffered, v.NVMLCode(f.Err)) {
		return none
	}
	again, abandon := suggest("destroy", v.Flags), suggest("destroy", v.Flags)+" --abandon-baseline"
	const reboot = ", or reboot the machine"
	var command string
	switch op := f.Step.Do.Op.(type) {
	case plan.DestroySlice:
		s, _ := v.Result.Prior.Session(op.Address)
		if s.Handle == nil || s.Handle.GPUInstance < 0 {
			return none
		}
		smi := fmt.Sprintf("sudo nvidia-smi mig -i %s -gi %d ", op.Slice.GPU, s.Handle.GPUInstance)
		return prose.Advice{What: "Without this call cosplay cannot destroy the slice", Fix: "run " + together(smi+"-dci") + " and " + together(smi+"-dgi") + reboot + ". Then run " + together(again) + " again"}
	case plan.SetGPU:
		command = "sudo nvidia-smi -i " + op.GPU + " " + words.SMI(op.Setting, op.Value)
		if op.Setting == resource.SMClock && v.givesBack(op.GPU) {
			// NVML cannot read a lock: only a reboot proves that there is none.
			return prose.Advice{What: "Without this call cosplay cannot restore the SM clock", Fix: "reboot the machine, which lifts the lock, then run " + together(again) +
				" again. Without a reboot: run " + together(command) + ", then " + together(abandon)}
		}
	default: // a user cannot repeat it
	}
	if command == "" || !v.givesBack(f.Step.Group) {
		return none
	}
	return prose.Advice{What: "Without this call cosplay cannot restore the setting", Fix: "run " + together(command) + reboot + ". Then run " + together(again) +
		" again. To release the GPU as it is: " + together(abandon)}
}

// givesBack reports whether the plan restores a GPU.
func (v AppliedView) givesBack(gpu string) bool {
	return slices.ContainsFunc(v.Plan.Diff.GPUs, func(c diff.GPUChange) bool { return c.UUID == gpu && c.GiveBack })
}

// released reports whether the run released a GPU though a step of it failed.
func (v AppliedView) released(gpu string) bool {
	return v.givesBack(gpu) && slices.Contains(v.Result.Done, gpu+"/release")
}
