package diff

import "cosplay/internal/resource"

// containerFields adds what differs of the attributes that only a session in a container has.
func (all *fields) containerFields(was, want resource.ContainerSpec) {
	if was.IsZero() || want.IsZero() {
		return // the runtime differs, and that is a difference already
	}
	all.add(FieldImage, Text(was.Image), Text(want.Image))
	all.add(FieldPull, Text(was.Pull), Text(want.Pull))
	all.add(FieldVolumes, listed(Volumes(was.Volumes)), listed(Volumes(want.Volumes)))
	all.add(FieldSSH, Switch(was.SSH.Enabled), Switch(want.SSH.Enabled))
	all.add(FieldSSHPort, Port(was.SSH.Port), Port(want.SSH.Port))
	all.add(FieldSSHBind, Text(was.SSH.Bind), Text(want.SSH.Bind))
	if was.SSH.Enabled && want.SSH.Enabled {
		all.add(FieldSSHAuthorizedKeys, listed(Keys(was.SSH.AuthorizedKeys)), listed(Keys(want.SSH.AuthorizedKeys)))
	}
	all.add(FieldLimits, Limits(was.Limits), Limits(want.Limits))
	all.add(FieldSudo, Switch(was.Sudo), Switch(want.Sudo))
	all.add(FieldRestart, Text(was.Restart), Text(want.Restart))
	all.add(FieldUser, User(was.User), User(want.User))
}

// listed is a list as a value; an empty one is none.
func listed[T interface {
	~[]E
	Value
}, E any](all T) Value {
	if len(all) == 0 {
		return nil
	}
	return all
}
