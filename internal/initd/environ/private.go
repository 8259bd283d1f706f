package environ

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cosplay/internal/initd"
	"cosplay/internal/initd/account"
)

// Files of initd.PrivateDir beside initd.SecretsFile, in the forms in which programs read them.
const (
	secretsProfile = "profile.sh"  // login shells
	secretsPAM     = "environment" // pam_env
)

// Private returns the files of initd.PrivateDir by name, which contain sensitive values. No other file has any.
func Private(secrets Vars) (map[string][]byte, error) {
	all, err := json.Marshal(secrets)
	carried, _ := secrets.portable()
	pam, _ := PAM(nil, carried)
	return map[string][]byte{initd.SecretsFile: all, secretsProfile: Profile(carried), secretsPAM: pam}, err
}

// names is an environment without its values.
func (v Vars) names() Vars {
	bare := Vars{}
	for name := range v {
		bare[name] = ""
	}
	return bare
}

// profile is sh code for all login shells, which reads the secrets from a file that other users cannot read.
func profile(shared, hidden Vars) []byte {
	if len(hidden) == 0 {
		return Profile(shared)
	}
	return fmt.Appendf(Profile(shared), "if [ -r %s ]; then . %[1]s; fi\n", initd.PrivateDir+"/"+secretsProfile)
}

// Folders of PAM: its stacks, and those where images keep its modules.
const stacksDir = "/etc/pam.d"

var moduleDirs = []string{"/lib*/security", "/lib*/*/security", "/usr/lib*/security", "/usr/lib*/*/security"}

// installStacks makes the secrets available to cron, su and other programs that use pam_env. PAM reads files as root
// and for all users, so the stack reads the file only for the session's user.
func installStacks(root string, hidden Vars, u initd.User) (notes []string) {
	stacks, _ := filepath.Glob(filepath.Join(root, stacksDir, "*"))
	if len(hidden) == 0 || len(stacks) == 0 {
		return nil
	}
	if !hasModule(root, "pam_succeed_if.so") {
		return []string{"the image lacks pam_succeed_if.so: programs of cron and su do not see sensitive variables"}
	}
	for _, file := range stacks {
		if target, err := filepath.EvalSymlinks(file); err == nil {
			file = target
		}
		before, err := os.ReadFile(file)
		if err != nil {
			continue // a folder
		}
		after := Stack(string(before), u)
		if after == string(before) {
			continue
		}
		if err := account.Replace(file, []byte(after), 0o644); err != nil {
			notes = append(notes, fmt.Sprintf("%v; programs of %s do not see sensitive variables", err, filepath.Base(file)))
		}
	}
	return notes
}

func hasModule(root, name string) bool {
	return slices.ContainsFunc(moduleDirs, func(dir string) bool {
		found, _ := filepath.Glob(filepath.Join(root, dir, name))
		return len(found) > 0
	})
}

// Stack returns a PAM stack that reads the user's secrets after it first reads an environment.
func Stack(stack string, u initd.User) string {
	if begin := strings.Index(stack, blockBegin); begin >= 0 {
		if _, after, whole := strings.Cut(stack[begin:], blockEnd); whole {
			stack = stack[:begin] + after
		}
	}
	read := 0
	for line := range strings.Lines(stack) {
		read += len(line)
		if fields := strings.Fields(line); len(fields) > 2 && fields[0][0] != '#' && slices.Contains(fields, "pam_env.so") {
			kind := strings.TrimPrefix(fields[0], "-")
			return strings.TrimSuffix(stack[:read], "\n") + fmt.Sprintf(
				"\n%[1]s%[2]s [success=ignore default=1] pam_succeed_if.so quiet uid = %[3]d\n%[2]s optional pam_env.so readenv=1 envfile=%[4]s\n%[5]s",
				blockBegin, kind, u.UID, initd.PrivateDir+"/"+secretsPAM, blockEnd) + stack[read:]
		}
	}
	return stack
}
