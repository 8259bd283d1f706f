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

	"cosplay/internal/initd"
	"cosplay/internal/initd/account"
)

// Where programs that nobody started from a shell of ours find the environment.
const (
	pamFile     = "/etc/environment"            // cron, su, sudo: pam_env
	profileDir  = "/etc/profile.d"              // login shells, whose /etc/profile sets PATH anew
	profileFile = profileDir + "/zz-cosplay.sh" // the last one, so that PATH stays
	sudoConfig  = "/etc/sudoers"
	sudoDir     = "/etc/sudoers.d"
	sudoFile    = sudoDir + "/cosplay"
)

// Install writes the files under root that the image's programs read, and says
// what could not be had. Of secrets it writes the names: the values stay in the
// files of Private, to which these lead.
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
	for name := range secrets { // which the image or an older container may have as well
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

// The lines between these are ours; the image's own lines stay above them.
const (
	blockBegin = "# cosplay: begin\n"
	blockEnd   = "# cosplay: end\n"
)

// PAM is /etc/environment with our variables, which win, being the last. pam_env
// takes everything between the first and the last quote as it is, but ends a
// value at a line's end and at a #: those variables are left out and named.
func PAM(before []byte, vars Vars) (data []byte, left []string) {
	own := string(before)
	if begin := strings.Index(own, blockBegin); begin >= 0 {
		_, after, _ := strings.Cut(own[begin:], blockEnd)
		own = own[:begin] + after
	}
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

// Profile is a piece of sh for login shells. What is set already stays, but
// PATH, which /etc/profile has just thrown away.
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

// quote makes one word of sh of any value.
func quote(value string) string { return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'" }

// plainPath is a PATH that sudoers takes without escapes; a wrong line there
// would break sudo as a whole.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./:+@~-]+$`)

// Sudoers keeps the variables through sudo, PATH too, and lets the user be root
// without a password if he may. He is named by number: any name is right then.
// The file brings back LD_LIBRARY_PATH, which libc takes from setuid programs.
func Sudoers(vars Vars, u initd.User) []byte {
	var b strings.Builder
	b.WriteString("# Written by cosplay at the start of the session.\n")
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if name != "PATH" {
			fmt.Fprintf(&b, "Defaults env_keep += %q\n", name)
		}
	}
	fmt.Fprintf(&b, "Defaults env_file = %q\n", pamFile)
	if plainPath.MatchString(vars["PATH"]) {
		fmt.Fprintf(&b, "Defaults secure_path = %q\n", vars["PATH"])
	}
	if u.Sudo && u.UID != 0 {
		fmt.Fprintf(&b, "#%d ALL=(ALL:ALL) NOPASSWD: ALL\n", u.UID)
	}
	return []byte(b.String())
}
