package inside

import (
	"maps"

	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
	"cosplay/internal/initd"
	"cosplay/internal/resource"
)

// Give writes a session's folder for the containers of others, and returns what the session's device adds to them.
func (in Sessions) Give(device cdi.Device, s resource.Session, given resource.Handle) (e cdi.Edits, err error) {
	cuda := true // hardware has the driver
	if in.SimDir != "" {
		var g Grant
		g, err = in.Libraries(s.ID, true)
		e.Mounts, cuda = append(g.Mounts, in.Driver.Tools()...), g.CUDA
	} else {
		e, err = in.access(s, given, true)
	}
	if err == nil {
		err = in.dress(s, given, cuda)
	}
	if err == nil {
		err = in.WriteManifest(s.ID, cuda)
	}
	e.Mounts, e.Env = append(e.Mounts, in.own(s, cuda)...), in.Given(device, s, given.UUID)
	return e, err
}

// Given are the variables of a device. What the image sets for them is not known, and has no effect.
func (in Sessions) Given(device cdi.Device, s resource.Session, slice string) map[string]string {
	env := disguise.Environment(s, slice, true)
	maps.Copy(env, disguise.MPS(s, pipes))
	maps.Copy(env, disguise.PythonPath(s, initd.Dir, ""))
	env[resource.DeviceVariable] = device.Qualified()
	delete(env, "NVIDIA_VISIBLE_DEVICES")    // of NVIDIA's runtime
	delete(env, "PIP_BREAK_SYSTEM_PACKAGES") // the image is not cosplay's
	return env
}
