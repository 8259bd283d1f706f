package observe

import (
	"testing"

	"cosplay/internal/resource"
)

// TestResolveMarks: of the processes on a whole GPU, those of sessions are known by their marks, and a server of the
// project's MPS daemon is none.
func TestResolveMarks(t *testing.T) {
	instance := 1
	daemon := resource.MPSDaemon{MPS: resource.MPS{Folder: "/mps/gpu"}}
	live := resource.Live{Hosts: []resource.Host{{Name: "lab", MPS: resource.MPSService{Own: []resource.MPSDaemon{daemon}}, GPUs: []resource.GPU{{UUID: "GPU-0", Processes: []resource.Process{
		{PID: 1, Marks: []string{"body"}}, {PID: 2, Marks: []string{"other"}}, {PID: 3, GPUInstance: &instance}, {PID: 4, Marks: []string{resource.PipeVariable + "=" + daemon.Pipes()}},
	}}}}}}
	prior := resource.Prior{Sessions: []resource.PriorSession{{Session: resource.Session{ID: "one", Slice: resource.Slice{Host: "lab", GPU: "GPU-0"}}, Body: &resource.Body{ID: "body"}}}}
	ResolveMarks(live, prior, func(_ string, p resource.Process, c resource.Body) bool { return p.Marked(c.ID) })
	got := live.Hosts[0].GPUs[0].Processes
	if len(got) != 3 || got[0].Session != "one" || got[1].Session != "" || got[2].Session != "" {
		t.Errorf("%+v", got)
	}
	for _, p := range got {
		if p.Marks != nil {
			t.Errorf("marks stay: %+v", p)
		}
	}
}
