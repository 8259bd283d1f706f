package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// selected reports whether the host's block permits cosplay to use a GPU.
func selected(host config.Host, g resource.GPU) bool {
	return len(host.GPUs) == 0 || slices.ContainsFunc(host.GPUs, func(s config.GPUSelector) bool { return s.Matches(g) })
}

// barred is the reason why cosplay places no session on a GPU that answers; "" if it may.
func (r *resolver) barred(g resource.GPU) string {
	if missing, unfit := g.Unfit(); unfit {
		why := "the driver does not report it"
		if lacks, known := g.Degradation(missing); known {
			why = lacks.String()
		}
		return fmt.Sprintf("cosplay does not know %s of the GPU (%s), and the catalog does not have it", missing.Words(), why)
	}
	if !g.Unread(resource.FeatureMIG) {
		return ""
	}
	lacks, _ := g.Degradation(resource.FeatureMIG)
	book, _ := r.live.Page(g.Host, g.UUID)
	inSlices := slices.ContainsFunc(r.placements.On(g), func(s *resource.PriorSession) bool { return s.Handle != nil }) ||
		slices.ContainsFunc(book.Holders, func(h resource.Holder) bool { return len(h.Slices) > 0 })
	held, _ := r.prior.GPU(g.Host, g.UUID)
	if inSlices || g.MIG && !ownMode(held, g) {
		return fmt.Sprintf("it has slices that cosplay cannot read (%s)", lacks)
	}
	return ""
}

// ownMode reports whether cosplay switched MIG mode on. Then it may switch it off as
// well: the driver refuses that while slices exist.
func ownMode(held resource.PriorGPU, g resource.GPU) bool {
	return g.MIG && held.Baseline.Is(resource.MIGMode, resource.Off) && held.Applied.Is(resource.MIGMode, resource.On)
}

// readable reports whether cosplay can read enough of the slices of a session, or of its whole GPUs, to plan with them.
// It does not change other sessions.
func (r *resolver) readable(s resource.Session) bool { return r.unreadable(s) == nil }

// unreadable is the first slice of a session that cannot be read; nil without any.
func (r *resolver) unreadable(s resource.Session) *resource.Slice {
	all := s.Slices()
	for i, at := range all {
		g, there := r.live.GPU(at.Host, at.GPU)
		if _, unfit := g.Unfit(); !there || unfit || !at.Whole() && g.Unread(resource.FeatureMIG) {
			return &all[i]
		}
	}
	return nil
}

// refuseReplace refuses to replace a session whose slice cannot be read.
func (r *resolver) refuseReplace(was resource.PriorSession) {
	at := r.unreadable(was.Session)
	missing := r.live.NoGPU(at.Host, at.GPU)
	why, fix := "its GPU is "+missing.What, missing.Fix
	if g, there := r.live.GPU(at.Host, at.GPU); there {
		why, fix = r.barred(g), "install a driver that offers the call"
	}
	advice := prose.Advice{What: "cosplay leaves the session as it is", Fix: fix + ", then run the same command again"}
	r.report(hcl.DiagError, r.sessionRange(was.Address), fmt.Sprintf("%s cannot be replaced: %s", was.Address, why), prose.Sentence(advice.Error()))
}

// warnOfUnusable warns of GPUs that do not answer, or that no session can use.
func (r *resolver) warnOfUnusable() {
	for _, host := range r.intent.Hosts {
		shown, _ := r.live.Host(host.Name)
		for _, u := range shown.Unusable {
			if selected(host, resource.GPU{Index: u.Index, UUID: u.UUID}) {
				r.warnGPU(host, fmt.Sprintf("GPU %d of host %q is %s", u.Index, host.Name, u.Advice().What), prose.Sentence(prose.Advice{What: unused, Fix: u.Advice().Fix}.Error()))
			}
		}
		for _, g := range shown.GPUs {
			if why := r.barred(g); why != "" && selected(host, g) {
				r.warnGPU(host, fmt.Sprintf("GPU %d of host %q is not used: %s", g.Index, host.Name, why), prose.Sentence(unused))
			}
		}
	}
}

const unused = "cosplay places no session on it and does not change it"

func (r *resolver) warnGPU(host config.Host, summary, detail string) {
	r.report(hcl.DiagWarning, host.Ranges.Of("gpus"), summary, detail)
}

// warnOfUsed warns of what is found of the GPUs of sessions. It names GPUs of a host with the same text together.
func (r *resolver) warnOfUsed(desired []resource.DesiredGPU, find func(resource.GPU) (what, detail string)) {
	used := map[resource.GPUKey]bool{}
	for _, d := range desired {
		used[d.Key()] = true
	}
	for _, host := range r.intent.Hosts {
		var gpus prose.Groups[string]
		whats := map[string]string{}
		shown, _ := r.live.Host(host.Name)
		for _, g := range shown.GPUs {
			if what, detail := find(g); used[resource.GPUKey{Host: host.Name, UUID: g.UUID}] && detail != "" {
				whats[detail] = what
				gpus.Add(detail, fmt.Sprint(g.Index))
			}
		}
		for _, detail := range gpus.Texts {
			numbers := gpus.Of[detail]
			r.warnGPU(host, fmt.Sprintf("%s %s of host %q: %s", prose.Choose(len(numbers), "GPU", "GPUs"), strings.Join(numbers, ", "), host.Name, whats[detail]), detail)
		}
	}
}

// degraded finds the features that cosplay gives up on a GPU.
func degraded(g resource.GPU) (what, detail string) {
	return "the driver does not offer every call", losses(g)
}

// unlisted finds a GPU that the catalog lacks.
func unlisted(g resource.GPU) (what, detail string) {
	if catalog.Listed(g.Model) {
		return "", ""
	}
	return "the catalog lacks " + g.Model.Name, catalog.Unlisted(g)
}

// losses lists the features that cosplay gives up on a GPU and that matter to a plan.
func losses(g resource.GPU) string {
	var lines []string
	for _, d := range g.Degraded {
		switch {
		case d.Feature == resource.FeatureMIG:
			lines = append(lines, fmt.Sprintf("MIG is not managed, sessions get whole GPUs (%s).", d))
		case d.Feature.Managed():
			lines = append(lines, fmt.Sprintf("cosplay does not manage %s (%s).", d.Feature.Words(), d))
		case d.Feature.Figure() && !catalog.Listed(g.Model):
			lines = append(lines, fmt.Sprintf("Neither the driver (%s) nor the catalog has %s.", d, d.Feature.Words()))
		case d.Feature.Figure():
			lines = append(lines, fmt.Sprintf("%s is the catalog's (%s).", prose.Capital(d.Feature.Words()), d))
		case d.Feature == resource.ReadingProcesses:
			lines = append(lines, fmt.Sprintf("cosplay cannot see which processes use the GPU (%s), so it leaves the SM clock and the power limit as they are. slow_neighbours = true in the host block lets it change them.", d))
		}
	}
	return strings.Join(lines, "\n")
}
