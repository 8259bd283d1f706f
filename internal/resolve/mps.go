package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// longestPipes is how long the path of an MPS daemon's pipe folder may be, in bytes: that of a Unix socket in it has at
// most 107.
const longestPipes = 107 - len("/control_privileged")

// daemons gives each GPU and each MIG slice whose sessions use MPS its control daemon, and tells the sessions where it
// is.
func (r *resolver) daemons(d resource.Desired) resource.Desired {
	refused := map[string]bool{}
	on := map[resource.GPUKey][]*resource.Session{}
	for n := range d.Sessions {
		s := &d.Sessions[n]
		for _, gpu := range s.On() {
			if s.Slice.Sharing == resource.SharingMPS && s.HasDaemonOf(gpu) {
				on[gpu] = append(on[gpu], s)
			}
		}
	}
	for i := range d.GPUs {
		gpu := &d.GPUs[i]
		for _, s := range on[gpu.Key()] {
			if refused[gpu.Host] {
				continue
			}
			daemon, there := gpu.Of(s.Slice)
			if !there {
				if daemon, there = r.daemon(*s, gpu.Key()); !there {
					refused[gpu.Host] = true
					continue
				}
			}
			s.MPS = daemon.Folder
			r.warnOfShm(*s)
			gpu.Daemons = gpu.With(daemon.For(*s))
		}
	}
	return d
}

// daemon is the control daemon of a slice or a whole GPU: that of the state, or a new one. There is none where none can
// run, which is an error on hardware.
func (r *resolver) daemon(s resource.Session, gpu resource.GPUKey) (daemon resource.MPS, can bool) {
	slice, of := s.Slice.Place(), s.Address
	slice.GPU = gpu.UUID
	host, _ := r.live.Host(gpu.Host)
	at := r.attribute(of, "sharing")
	held, _ := r.prior.GPU(gpu.Host, gpu.UUID)
	daemon = resource.MPS{Folder: host.MPS.Folder(slice), Profile: slice.Profile, Start: slice.Start}
	had, kept := held.Of(slice)
	if kept {
		daemon.Folder = had.Folder
	}
	if host.MPS.Dir == "" { // cosplay validate reads no host
		return daemon, false
	}
	g, foreign, serves := r.foreignDaemon(host, s)
	now, _ := host.MPS.Daemon(daemon.Folder)
	switch {
	case kept && now.Unasked:
		r.report(hcl.DiagWarning, at, fmt.Sprintf("the MPS daemon of GPU %d of host %q was not checked: there is no nvidia-cuda-mps-control", g.Index, gpu.Host),
			prose.Stop("It runs, and is left as it is. Fix: "+resource.InstallMPS+", or correct PATH"))
	case host.MPS.Program == "" && host.Simulated != "":
		r.report(hcl.DiagWarning, at, fmt.Sprintf("host %q runs no MPS daemon: there is no nvidia-cuda-mps-control", gpu.Host),
			"Sessions of this simulated host work without it; cosplay's own accounting holds their memory. To run NVIDIA's daemon, "+resource.InstallMPS+".")
		return daemon, false
	case host.MPS.Program == "":
		r.report(hcl.DiagError, at, fmt.Sprintf("host %q cannot run MPS: there is no nvidia-cuda-mps-control", gpu.Host),
			prose.Stop("Fix: "+resource.InstallMPS+r.orTimeSlices(gpu.Host)))
		return daemon, false
	case serves && kept: // the sessions have cosplay's daemon already
		r.report(hcl.DiagWarning, at, fmt.Sprintf("GPU %d of host %q has a second MPS daemon, of %s: process %d", g.Index, gpu.Host, foreign.User, foreign.PID),
			prose.Stop(foreign.Advice().Error()))
	case serves:
		r.report(hcl.DiagError, at, fmt.Sprintf("GPU %d of host %q has an MPS daemon of %s: process %d", g.Index, gpu.Host, foreign.User, foreign.PID),
			prose.Stop(foreign.Advice().Error()+", or use another GPU"+r.orTimeSlices(gpu.Host)))
		return daemon, false
	case len(daemon.Pipes()) > longestPipes:
		r.report(hcl.DiagError, at, "the folder of the MPS daemon has too long a path", fmt.Sprintf("%s has %d characters, and a Unix socket in it needs %d at most. Fix: set XDG_STATE_HOME to a shorter path.", daemon.Pipes(), len(daemon.Pipes()), longestPipes))
		return daemon, false
	}
	return daemon, true
}

// warnOfShm says that a limit of a container has no effect: programs share memory with the MPS server.
func (r *resolver) warnOfShm(s resource.Session) {
	if s.Spec.Limits.ShmMiB == 0 || s.Spec.IsZero() {
		return
	}
	r.report(hcl.DiagWarning, r.attribute(s.Address, "limits.shm_size"), "limits.shm_size has no effect with MPS",
		"Programs share memory with the MPS server of this machine, so the container has the machine's IPC namespace and its /dev/shm.")
}

// attribute is where the block of a session has an attribute.
func (r *resolver) attribute(a resource.Address, name string) *hcl.Range {
	if s := r.intent.Session(a); s != nil {
		return s.Ranges.Of(name)
	}
	return nil
}

// foreignDaemon finds a control daemon that is not the project's and serves a GPU of a session.
func (r *resolver) foreignDaemon(host resource.Host, s resource.Session) (g resource.GPU, d resource.ForeignDaemon, serves bool) {
	for _, at := range s.On() {
		g, _ = r.live.GPU(at.Host, at.UUID)
		if d := foreignMPS(host, g); d != nil {
			return g, *d, true
		}
	}
	return g, d, false
}

// foreignMPS is a control daemon that is not the project's and serves a GPU; nil for none. Simulated GPUs of several
// projects have one UUID: the daemons of cosplay do not serve each other's.
func foreignMPS(host resource.Host, g resource.GPU) *resource.ForeignDaemon {
	hardware := host.Simulated == ""
	for i, d := range host.MPS.Foreign {
		if d.Serves(g, hardware) && (hardware || !strings.Contains(d.Pipe, "/cosplay/mps/")) {
			return &host.MPS.Foreign[i]
		}
	}
	return nil
}

// orTimeSlices offers another kind of sharing, if the host permits it.
func (r *resolver) orTimeSlices(host string) string {
	if may := r.intent.Host(host).Sharing; len(may) > 0 && !slices.Contains(may, resource.SharingTime) {
		return ""
	}
	return ", or write sharing = \"time-slice\""
}
