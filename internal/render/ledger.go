package render

import (
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// others are the holders of a GPU but for this project.
func (v StatusView) others(g resource.GPU) []resource.Holder {
	page, _ := v.Live.Held(g.Host, g.UUID)
	return page.Others(v.Prior.Lineage)
}

// holders lists the other projects that have a GPU in hand. One that is gone can be released.
func (p *page) holders(v fleet, g resource.GPU) {
	for _, h := range v.others(g) {
		if folder, killed := v.KilledRuns[h.Lineage]; killed {
			p.flow(4, 6, join(text("held by a cosplay run of "+h.User+" "), inked(drifted, "that was killed")))
			p.flow(6, 8, text("to take it down: "+suggest("reset", []string{"--chdir", folder})))
			continue
		}
		words := "held by a project of " + h.User
		if n := len(h.Slices); n > 0 {
			words += " with " + prose.Count(n, "slice")
		}
		words += ", state " + h.State
		if !v.Gone[h.Lineage] {
			p.flow(4, 6, text(words))
			continue
		}
		p.flow(4, 6, join(text(words+" "), inked(drifted, "(gone)")))
		p.flow(6, 8, text("to release it: "+suggest("reset", []string{"--holder", resource.ShortLineage(h.Lineage)})))
	}
}

func (f fleet) holdersJSON(g resource.GPU) []public.GPUHolder {
	return list(each(f.others(g), func(h resource.Holder) public.GPUHolder {
		return public.GPUHolder{Holder: holderOf(h), Gone: f.Gone[h.Lineage]}
	}))
}
