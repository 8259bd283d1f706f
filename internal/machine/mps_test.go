package machine

import (
	"slices"
	"testing"

	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// TestMPSSearch: the daemons of the state are found wherever they are, for example after XDG_STATE_HOME was changed; those
// of other hosts are not searched for.
func TestMPSSearch(t *testing.T) {
	daemon := func(host, folder string) resource.PriorGPU {
		return resource.PriorGPU{Host: host, Daemons: resource.Daemons{MPS: &resource.MPS{Folder: folder}}}
	}
	h := &Host{Config: config.Host{Name: "lab"}, Folders: "/project/.cosplay/sessions/default/lab"}
	search := h.MPS(resource.Prior{GPUs: []resource.PriorGPU{daemon("lab", "/before/cosplay/mps/1/2"), daemon("rack", "/other")}})
	if !slices.Equal(search.Known, []string{"/before/cosplay/mps/1/2"}) || search.Key != h.Folders || search.Uses {
		t.Errorf("%+v", search)
	}
}
