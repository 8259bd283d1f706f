package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const entryName = "entry"

// enter reports whether programs could run in a session at all.
func enter(w Wanted, in Inside) Result {
	const expected = "programs can be run"
	c := check[Inside]{name: entryName, class: Entry,
		expected: always(expected),
		found: func(w Wanted, in Inside) answer {
			if in.Vacant != "" {
				return skip(in.Vacant)
			}
			if in.Barred != "" {
				return found(in.Barred)
			}
			if _, printed := in.who().first("uid"); !printed {
				return found(in.Answers[askWho].ended())
			}
			return found(expected)
		},
		fix: "cosplay status shows whether the session runs, cosplay logs why it ended; cosplay apply restarts it",
	}
	if in.Way == SSH {
		c.fix = "your ssh agent (ssh-add -l) or you must have the private key of an authorized key; cosplay ssh prints details, --no-ssh skips this way"
	}
	return c.run(w, in, in.Way)
}

// who is the output of the program that reports user and environment.
func (in Inside) who() records { return parse(in.Answers[askWho].Text) }

// environ is the environment of that program.
func (in Inside) environ() map[string]string {
	all := map[string]string{}
	for _, variable := range in.who()["env"] {
		name, value, _ := strings.Cut(variable, "=")
		all[name] = value
	}
	return all
}

var environmentChecks = []check[Inside]{
	{name: "environment", class: Environment, expected: variables, found: foundVariables,
		fix: "something in the image or in the user's shell files sets them; cosplay apply puts the session's own right where its files were changed"},
	{name: "identity", class: Environment, applies: func(w Wanted) bool { return w.User != nil },
		expected: func(w Wanted) string { return identityWords(w, w.User.Name, w.User.UID, w.User.GID) },
		found:    foundIdentity,
		fix:      "an account was changed in the container; to recreate the container: docker rm -f it, then cosplay apply"},
}

func variables(w Wanted) string {
	return fmt.Sprintf("%d variables as applied", len(w.Env)+len(w.Secret))
}

func foundVariables(w Wanted, in Inside) answer {
	has := in.environ()
	var wrong []string
	for _, name := range append(slices.Sorted(maps.Keys(w.Env)), slices.Sorted(maps.Keys(w.Secret))...) {
		value, set := has[name]
		isSecret, secret := w.Secret[name]
		switch {
		case name == visibleDevices: // has its own check
		case !set:
			wrong = append(wrong, name+" is not set")
		case secret && isSecret(value), !secret && value == w.Env[name]:
		case secret, w.Private[name]:
			wrong = append(wrong, name+" is another")
		default:
			wrong = append(wrong, fmt.Sprintf("%s is %q, not %q", name, value, w.Env[name]))
		}
	}
	if len(wrong) > 0 {
		return found(strings.Join(wrong, "; "))
	}
	return found(variables(w))
}

// identityWords describes the user. The home counts only in a container; a process session does not set it.
func identityWords[N int | string](w Wanted, name string, uid, gid N) string {
	words := fmt.Sprintf("%s, uid %v, gid %v", name, uid, gid)
	if w.Container {
		words += ", HOME as in the account"
	}
	return words
}

func foundIdentity(w Wanted, in Inside) answer {
	said := in.who()
	name, listed := said.first("name")
	if !listed && !w.Container {
		name = w.User.Name // an account that /etc/passwd does not list
	}
	uid, _ := said.first("uid")
	gid, _ := said.first("gid")
	home, _ := said.first("home")
	words := identityWords(w, name, uid, gid)
	if value, set := in.environ()["HOME"]; set && w.Container && value != home {
		return found(fmt.Sprintf("%s, uid %s, gid %s, HOME %s and %s in the account", name, uid, gid, value, home))
	}
	return found(words)
}
