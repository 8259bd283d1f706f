// Package environ builds the environment of a session from the image's, the user's and the
// session's. It is the same over ssh, exec, a login shell, cron and sudo.
package environ

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cosplay/internal/initd/account"
)

// DefaultPath is the PATH of an image that names none.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Vars is an environment.
type Vars map[string]string

// Parse reads an environment as a process has it.
func Parse(list []string) Vars {
	v := Vars{}
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			v[name] = value
		}
	}
	return v
}

// List is the environment in the form of a process, sorted.
func (v Vars) List() []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		list = append(list, name+"="+v[name])
	}
	return list
}

// Build lays environments over each other: the image's, the ssh client's, the variables that name the user, the
// session's, and those of one connection, such as SSH_TTY (nil for none).
func Build(image, client Vars, a account.Account, session, connection Vars) Vars {
	who := Vars{"HOME": a.Home, "USER": a.Name, "LOGNAME": a.Name}
	if a.Shell != "" {
		who["SHELL"] = a.Shell
	}
	base := Merge(Vars{"PATH": DefaultPath}, image)
	delete(base, "SHELL") // that of the user who started the container
	return Merge(base, client, who, session, connection)
}

// personal are variables of one process or one user, which files for all users of the container must not contain.
var personal = []string{"HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "TERM", "MAIL", "_"}

var shellName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// Merge lays environments over each other, the last on top.
func Merge(all ...Vars) Vars {
	merged := Vars{}
	for _, v := range all {
		maps.Copy(merged, v)
	}
	return merged
}

// Shared is the portable part of image and session.
func Shared(image, session Vars) (shared Vars, unnamed []string) {
	return Merge(Vars{"PATH": DefaultPath}, image, session).portable()
}

// portable is the part of an environment that files can carry to every program, and
// the other names, which no shell accepts.
func (v Vars) portable() (carried Vars, unnamed []string) {
	carried = maps.Clone(v)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		switch {
		case slices.Contains(personal, name):
			delete(carried, name)
		case !shellName().MatchString(name):
			delete(carried, name)
			unnamed = append(unnamed, name)
		}
	}
	return carried, unnamed
}
