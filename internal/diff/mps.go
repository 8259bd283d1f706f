package diff

import "cosplay/internal/resource"

// setUpMPS starts, changes or ends the control daemon of MPS of a GPU.
func (c *GPUChange) setUpMPS(want, held *resource.MPS, live resource.Live) {
	if held != nil && (want == nil || want.Folder != held.Folder) {
		c.StopMPS = held
		c.Fields = append(c.Fields, Field{Kind: FieldMPS, From: mpsNow(*held, live, c.Host), To: IsStopped, Reason: resource.Reason{Kind: resource.NoMoreMPS}})
	}
	if want == nil {
		return
	}
	now := mpsNow(*want, live, c.Host)
	if held == nil && now == IsMissing {
		now = nil // and not lost
	}
	if to := MPS(*want); now != to || held == nil || *held != *want {
		c.RunMPS = want
		c.Fields = append(c.Fields, Field{Kind: FieldMPS, From: now, To: to, Reason: resource.Reason{Kind: resource.OneProgram}})
	}
}

// mpsNow is a daemon as it is: the wanted one if it runs with the wanted defaults.
func mpsNow(want resource.MPS, live resource.Live, host string) Value {
	h, _ := live.Host(host)
	now, there := h.MPS.Daemon(want.Folder)
	switch {
	case there && now.Silent != "":
		return IsSilent
	case !there || !now.Running:
		return IsMissing
	case now.Has(want):
		return MPS(want)
	}
	return MPS(now.MPS)
}
