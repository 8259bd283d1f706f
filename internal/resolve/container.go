package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Person is the user who runs cosplay. Sessions in containers run as this user and accept the user's keys.
type Person struct {
	User resource.User
	Keys []string // public keys, one line each, for sessions that name none

	There map[string]resource.User // the user's accounts on other machines, by host

	// Files are the public keys that the configuration names by their paths.
	Files map[string]KeyFile
}

// KeyFile is a file of public keys as read.
type KeyFile struct {
	Keys []string
	Err  error
}

// on is who the user is on a host.
func (p Person) on(host string) resource.User {
	if there, is := p.There[host]; is {
		return there
	}
	return p.User
}

// containerSpec chooses what only a session in a container has. Its user and its keys
// stay until the session is replaced for another reason: otherwise a plan that cron runs
// would replace the sessions that a user created in a terminal.
func (r *resolver) containerSpec(s config.Session, session *resource.Session) {
	runtime := resource.RuntimeNamed(session.Runtime)
	r.warnOfUnused(s, runtime)
	if len(runtime.Attributes) == 0 {
		return
	}
	was, made := r.prior.Session(s.Address)
	fresh := s.Spec
	fresh.User = r.person.on(s.Host)
	fresh.Volumes = slices.Clone(fresh.Volumes)
	for i, v := range fresh.Volumes {
		if !v.Named() {
			fresh.Volumes[i].Source = r.there(s.Host, v.Source)
		}
	}
	fresh.SSH.Kept = was.Spec.SSH.Kept // also if it is replaced: users have the port in their configuration of ssh
	if fresh.SSH.Enabled {
		fresh.SSH.AuthorizedKeys = r.keys(s)
	}
	session.Spec = fresh
	if made && !was.Spec.IsZero() && !r.scope.Replace[s.Address] {
		fresh = r.spelled(fresh, was.Spec)
		kept := fresh
		kept.User = was.Spec.User
		if kept.SSH.Enabled && len(s.Keys) == 0 {
			kept.SSH.AuthorizedKeys = was.Spec.SSH.AuthorizedKeys
		}
		session.Spec = kept
		if session.Hash(r.prior.Key) != was.Hash(r.prior.Key) {
			session.Spec = fresh
		}
	}
	r.checkKeys(s, session.Spec.SSH)
	r.checkImage(s, *session)
}

// keys are the lines of authorized_keys.
func (r *resolver) keys(s config.Session) []string {
	if len(s.Keys) == 0 {
		return r.person.Keys
	}
	var all []string
	for _, key := range s.Keys {
		if !strings.HasPrefix(key, "/") {
			all = append(all, key)
			continue
		}
		file := r.person.Files[key]
		if file.Err != nil {
			r.report(hcl.DiagError, s.Ranges.Of("ssh.authorized_keys"), fmt.Sprintf("the public key %s cannot be used", key),
				prose.Stop(file.Err.Error())+" Name the .pub file of a key that you have. Create one: ssh-keygen -t ed25519.")
		}
		all = append(all, file.Keys...)
	}
	return all
}

// checkKeys refuses a session with ssh and without a key.
func (r *resolver) checkKeys(s config.Session, ssh resource.SSH) {
	if !ssh.Enabled || len(ssh.AuthorizedKeys) > 0 || len(s.Keys) > 0 {
		return
	}
	r.report(hcl.DiagError, s.Ranges.Of("ssh"), "there is no key to log in with",
		fmt.Sprintf("%s has no public key in ~/.ssh beside its private key, and no key in an ssh agent. Create one: ssh-keygen -t ed25519; "+
			"or name one: ssh { authorized_keys = [\"...\"] }; or disable ssh: ssh { enabled = false }", r.person.User.Name))
}

// checkImage refuses a session whose image does not exist and must not be pulled.
func (r *resolver) checkImage(s config.Session, session resource.Session) {
	host, _ := r.live.Host(s.Host)
	if host.Engine == nil || session.Spec.Pull != resource.PullNever || session.Spec.Image == resource.DefaultImage || host.Engine.Images[session.Spec.Image] != "" {
		return
	}
	if was, ok := r.prior.Session(s.Address); ok {
		if c, there := r.live.Body(s.Host, was.Runtime, was.ID); there && session.HasHash(r.keyOn(s.Host), c.Hash) {
			return // it runs already
		}
	}
	r.report(hcl.DiagError, s.Ranges.Of("image"), fmt.Sprintf("there is no image %s on host %q", session.Spec.Image, s.Host),
		fmt.Sprintf("pull = \"never\" forbids pulling it. Load it (docker load, docker build -t %s), or write pull = \"missing\".", session.Spec.Image))
}

// warnOfUnused warns of attributes that the runtime does not use, if cosplay chose the
// runtime. If the host's block names it, config has warned already.
func (r *resolver) warnOfUnused(s config.Session, runtime resource.Runtime) {
	if r.intent.Host(s.Host).Runtime != config.RuntimeAuto {
		return
	}
	for _, d := range s.Unused(runtime) {
		r.add(d)
	}
}
