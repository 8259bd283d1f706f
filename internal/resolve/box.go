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

// Person is who runs cosplay. Sessions in containers take after him: he is their
// user, and with his keys one logs in.
type Person struct {
	User resource.User
	Keys []string // public keys, one line each, for sessions that name none

	// Files are the public keys that the configuration names by their paths.
	Files map[string]KeyFile
}

// KeyFile is a file of public keys as read.
type KeyFile struct {
	Keys []string
	Err  error
}

// box settles what only a session in a container has. Who its user is and who
// may log in is decided once: it stays until the session is replaced for
// another reason, so that cron sees what a terminal did.
func (r *resolver) box(s config.Session, session *resource.Session) {
	runtime := resource.RuntimeNamed(session.Runtime)
	r.warnOfUnused(s, runtime)
	if len(runtime.Attributes) == 0 {
		return
	}
	was, made := r.prior.Session(s.Address)
	made = made && !was.Spec.IsZero() && !r.scope.Replace[s.Address]
	fresh := s.Spec
	fresh.User = r.person.User
	if made {
		fresh.SSH.Kept = was.Spec.SSH.Kept
	}
	if fresh.SSH.Enabled {
		fresh.SSH.AuthorizedKeys = r.keys(s)
	}
	session.Spec = fresh
	if made {
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
			at := s.Ranges.At("ssh.authorized_keys")
			r.complainOnce(&hcl.Diagnostic{
				Severity: hcl.DiagError,
				Summary:  fmt.Sprintf("the public key %s cannot be used", key),
				Detail:   prose.Stop(file.Err.Error()) + " Name the .pub file of a key that you have: ssh-keygen -t ed25519 makes one.",
				Subject:  &at,
			})
		}
		all = append(all, file.Keys...)
	}
	return all
}

// checkKeys refuses a session that nobody could log into.
func (r *resolver) checkKeys(s config.Session, ssh resource.SSH) {
	if !ssh.Enabled || len(ssh.AuthorizedKeys) > 0 || len(s.Keys) > 0 {
		return
	}
	at := s.Ranges.At("ssh")
	r.complainOnce(&hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  "there is no key to log in with",
		Detail: fmt.Sprintf("%s has no public key in ~/.ssh beside its private one, and no ssh agent holds any. Make one: ssh-keygen -t ed25519; or name one: ssh { authorized_keys = [\"...\"] }; or do without: ssh { enabled = false }",
			r.person.User.Name),
		Subject: &at,
	})
}

// checkImage refuses a session whose image is neither there nor to be had.
func (r *resolver) checkImage(s config.Session, session resource.Session) {
	host, _ := r.live.Host(s.Host)
	if host.Engine == nil || session.Spec.Pull != resource.PullNever || session.Spec.Image == resource.DefaultImage || host.Engine.Images[session.Spec.Image] != "" {
		return
	}
	if was, ok := r.prior.Session(s.Address); ok {
		if c, there := r.live.Container(s.Host, was.Runtime, was.ID); there && c.Hash == session.Hash(r.prior.Key) {
			return // it runs already
		}
	}
	at := s.Ranges.At("image")
	r.complainOnce(&hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  fmt.Sprintf("there is no image %s on host %q", session.Spec.Image, s.Host),
		Detail:   fmt.Sprintf("pull = \"never\" forbids to get it. Load it (docker load, docker build -t %s), or write pull = \"missing\".", session.Spec.Image),
		Subject:  &at,
	})
}

// warnOfUnused warns of what the runtime does not use that was chosen for a host. Where
// the host's block chooses it, the configuration has warned already.
func (r *resolver) warnOfUnused(s config.Session, runtime resource.Runtime) {
	i := slices.IndexFunc(r.intent.Hosts, func(h config.Host) bool { return h.Name == s.Host })
	if r.intent.Hosts[i].Runtime != config.RuntimeAuto {
		return
	}
	for _, d := range s.Unused(runtime) {
		r.complainOnce(d)
	}
}

// complainOnce tells what is the same for all instances of a block only once.
func (r *resolver) complainOnce(d *hcl.Diagnostic) {
	told := slices.ContainsFunc(r.diags, func(o *hcl.Diagnostic) bool {
		return o.Summary == d.Summary && o.Subject != nil && *o.Subject == *d.Subject
	})
	if !told {
		r.diags = append(r.diags, d)
	}
}
