package environ

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cosplay/internal/initd"
	"cosplay/internal/initd/account"
)

// Files in which programs find the environment if cosplay's shells did not start them.
const (
	pamFile     = "/etc/environment"            // cron, su, sudo: pam_env
	profileDir  = "/etc/profile.d"              // login shells, whose /etc/profile replaces PATH
	profileFile = profileDir + "/zz-cosplay.sh" // the last one, so that PATH stays
	sudoConfig  = "/etc/sudoers"
	sudoDir     = "/etc/sudoers.d"
	sudoFile    = sudoDir + "/cosplay"
)

// Install writes the files under root that the image's programs read, and returns notes on variables that they cannot
// contain. Of secrets it writes only the names: the values are in the files of Private, to which these refer.
func Install(root string, image, session, secrets Vars, u initd.User) (notes []string) {
	shared, unnamed := Shared(image, session)
	hidden, more := secrets.portable()
	if unnamed = append(unnamed, more...); len(unnamed) > 0 {
		notes = append(notes, "no shell can name these variables, only ssh and exec have them: "+strings.Join(unnamed, " "))
	}
	write := func(file string, data []byte, mode os.FileMode) {
		if err := account.Replace(filepath.Join(root, file), data, mode); err != nil {
			notes = append(notes, fmt.Sprintf("%v; the environment is there over ssh and exec, but not by way of %s", err, file))
		}
	}
	before, err := os.ReadFile(filepath.Join(root, pamFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		notes = append(notes, err.Error())
	}
	for name := range secrets { // the image or an older container may have set it as well
		delete(shared, name)
	}
	pam, left := PAM(before, shared)
	_, more = PAM(nil, hidden)
	if left = append(left, more...); len(left) > 0 {
		notes = append(notes, pamFile+" cannot hold the values of "+strings.Join(left, " ")+"; programs of cron do not see them")
	}
	write(pamFile, pam, 0o644)
	if there(root, profileDir) {
		write(profileFile, profile(shared, hidden), 0o644)
	}
	notes = append(notes, installStacks(root, hidden, u)...)
	maps.Copy(shared, hidden.names())
	switch {
	case there(root, sudoConfig) && there(root, sudoDir):
		write(sudoFile, Sudoers(shared, u), 0o440)
	case u.Sudo && u.UID != 0:
		notes = append(notes, "sudo is asked for, but the image has none: add the package sudo to the image")
	}
	return notes
}

func there(root, file string) bool {
	_, err := os.Stat(filepath.Join(root, file))
	return err == nil
}

// cosplay writes the lines between these markers; the image's own lines stay above them.
const (
	blockBegin = "# cosplay: begin\n"
	blockEnd   = "# cosplay: end\n"
)

// PAM returns /etc/environment with the session's variables at the end, where they take precedence. pam_env reads
// everything between the first and the last quote literally, but ends a value at a line break and at a #: such
// variables are left out and named.
func PAM(before []byte, vars Vars) (data []byte, left []string) {
	own, block, _ := strings.Cut(string(before), blockBegin)
	_, after, _ := strings.Cut(block, blockEnd)
	own += after
	if own != "" && !strings.HasSuffix(own, "\n") {
		own += "\n"
	}
	var b strings.Builder
	b.WriteString(own + blockBegin)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if strings.ContainsAny(vars[name], "#\n\r") {
			left = append(left, name)
			continue
		}
		fmt.Fprintf(&b, "%s=\"%s\"\n", name, vars[name])
	}
	b.WriteString(blockEnd)
	return []byte(b.String()), left
}

// Profile returns sh code for login shells. It keeps variables that are set already, except PATH, which /etc/profile
// has just replaced.
func Profile(vars Vars) []byte {
	var b strings.Builder
	b.WriteString("# Written by cosplay at the start of the session.\n")
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if name != "PATH" {
			fmt.Fprintf(&b, "[ -n \"${%s+set}\" ] || ", name)
		}
		fmt.Fprintf(&b, "export %s=%s\n", name, quote(vars[name]))
	}
	return []byte(b.String())
}

// quote writes any value as one word of sh.
func quote(value string) string { return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'" }

// plainPath matches a PATH that sudoers accepts without escapes; an invalid line would break sudo completely.
var plainPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./:+@~-]+$`) })

// Sudoers keeps the variables, including PATH, through sudo, and permits the user to become root without a password
// if the Config says so. It names the user by number, so that any user name is valid. It restores LD_LIBRARY_PATH,
// which libc removes for setuid programs.
func Sudoers(vars Vars, u initd.User) []byte {
	var b strings.Builder
	b.WriteString("# Written by cosplay at the start of the session.\n")
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if name != "PATH" {
			fmt.Fprintf(&b, "Defaults env_keep += %q\n", name)
		}
	}
	fmt.Fprintf(&b, "Defaults env_file = %q\n", pamFile)
	if plainPath().MatchString(vars["PATH"]) {
		fmt.Fprintf(&b, "Defaults secure_path = %q\n", vars["PATH"])
	}
	if u.Sudo && u.UID != 0 {
		fmt.Fprintf(&b, "#%d ALL=(ALL:ALL) NOPASSWD: ALL\n", u.UID)
	}
	return []byte(b.String())
}
