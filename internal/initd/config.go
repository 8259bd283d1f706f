// Package initd defines the configuration of a session's container: the file that the Docker runtime writes and
// cosplay-init, pid 1 in the container, reads. The packages below it are cosplay-init itself.
package initd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Paths in the container. The runtime mounts them read-only.
const (
	Dir         = "/run/cosplay"
	Program     = Dir + "/cosplay-init" // the program itself, mode 0755
	ConfigPath  = Dir + "/init.json"    // a Config, mode 0600: it holds the user's environment
	HostKeyPath = Dir + "/host_key"     // the session's ed25519 private key in PEM, mode 0600
	PrivateDir  = Dir + "/private"      // sensitive values, readable only by the session's user
	ReadyPath   = Dir + "/ready"        // a named pipe for Ready, while cosplay waits for it
	WorkDir     = "/workspace"          // the working folder if the Config names no other
	defaultPort = 22                    // TCP, inside the container
)

// SecretsFile is in PrivateDir: sensitive variables in JSON, by name.
const SecretsFile = "secrets.json"

// Config is the configuration of cosplay-init.
type Config struct {
	User           User              `json:"user"`
	AuthorizedKeys []string          `json:"authorized_keys,omitempty"` // lines as in ~/.ssh/authorized_keys, without options
	SSH            SSH               `json:"ssh"`
	Env            map[string]string `json:"env,omitempty"`       // overrides the image's
	Secrets        map[string]string `json:"-"`                   // sensitive, from PrivateDir; overrides Env
	Command        []string          `json:"command,omitempty"`   // runs as the user; without one the container stays up, idle
	Workspace      string            `json:"workspace,omitempty"` // absolute; "" is WorkDir
	Volumes        []string          `json:"volumes,omitempty"`   // absolute; the user gets those that are new
}

// User is the user of the session: the invoking user of the host.
type User struct {
	Name  string `json:"name"`
	UID   uint32 `json:"uid"`
	GID   uint32 `json:"gid"`
	Group string `json:"group,omitempty"` // "" is a group of the user's name
	Home  string `json:"home,omitempty"`  // "" is /home/NAME, /root for root
	Shell string `json:"shell,omitempty"` // tried first; then bash, then sh
	Sudo  bool   `json:"sudo,omitempty"`  // without a password, where the image has sudo
}

// SSH is how clients reach the session.
type SSH struct {
	Enabled bool   `json:"enabled"`
	Port    int    `json:"port,omitempty"`     // TCP, inside the container; 0 is 22
	HostKey string `json:"host_key,omitempty"` // a path; "" is HostKeyPath
}

// Entrypoint is the container's entrypoint; its command is empty.
func Entrypoint() []string { return []string{Program} }

// How is how `docker exec` runs a program. Each field has the session's own value where it is empty.
type How struct {
	User string   // NAME or UID, with :GROUP or :GID
	Dir  string   // where it is relative, below the workspace
	Env  []string // the variables of the engine's that override the session's

	// Rows and Columns are the size of the terminal. Engines set it only after the program has started, which is too
	// late for programs that read it immediately.
	Rows, Columns int
}

// Exec is the command for `docker exec`, as root, that runs argv as the session's user, in the user's workspace and
// environment. Without argv it runs a login shell.
func Exec(how How, argv ...string) []string {
	all := []string{Program, "exec"}
	if how.Rows > 0 {
		all = append(all, fmt.Sprintf("--size=%dx%d", how.Rows, how.Columns))
	}
	for _, name := range how.Env {
		all = append(all, "--env="+name)
	}
	if how.User != "" {
		all = append(all, "--user="+how.User)
	}
	if how.Dir != "" {
		all = append(all, "--workdir="+how.Dir)
	}
	return append(append(all, "--"), argv...)
}

// Tell is the command for `docker exec`, as root, that writes a message to each terminal of the container. An older
// cosplay-init does not know it and fails.
func Tell(message string) []string { return []string{Program, "tell", message} }

// Load reads a Config, sets defaults and validates it. The error states the fix.
func Load(file string) (Config, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrPermission) {
		return Config{}, fmt.Errorf("%w; run cosplay-init as root (docker exec --user 0)", err)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%w; cosplay mounts this file, so start the container by cosplay apply", err)
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, fmt.Errorf("%s is not what this cosplay-init reads (%w); replace the session by the cosplay that made it", file, err)
	}
	c.fill()
	if c.Secrets, err = loadSecrets(filepath.Join(filepath.Dir(file), filepath.Base(PrivateDir), SecretsFile)); err != nil {
		return Config{}, err
	}
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// loadSecrets reads the sensitive variables; a session without them has no file.
func loadSecrets(file string) (secrets map[string]string, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; the session's user and root can read this file", err)
	}
	if json.Unmarshal(data, &secrets) != nil { // the parser's error could contain a value
		return nil, fmt.Errorf("%s is damaged; replace the session", file)
	}
	return secrets, nil
}

func (c *Config) fill() {
	home := "/home/" + c.User.Name
	if c.User.Name == "root" {
		home = "/root"
	}
	c.User.Group, c.User.Home = cmp.Or(c.User.Group, c.User.Name), cmp.Or(c.User.Home, home)
	c.SSH.Port, c.SSH.HostKey = cmp.Or(c.SSH.Port, defaultPort), cmp.Or(c.SSH.HostKey, HostKeyPath)
	c.Workspace = cmp.Or(c.Workspace, WorkDir)
}

// Validate rejects invalid values: a name that would break /etc/passwd, a root user whose uid is not 0, a relative
// path.
func (c Config) Validate() error {
	u := c.User
	switch {
	case !fitsLine(u.Name):
		return fmt.Errorf("user name %q cannot be an account's name; give a name without colons, slashes and spaces", u.Name)
	case u.Group != "" && !fitsLine(u.Group):
		return fmt.Errorf("group name %q cannot be a group's name; leave it out to use the user's name", u.Group)
	case u.Name == "root" && u.UID != 0:
		return fmt.Errorf("the user is root with uid %d; root is uid 0, so give another name", u.UID)
	case u.Group == "root" && u.GID != 0:
		return fmt.Errorf("the group is root with gid %d; root is gid 0, so leave the group's name out", u.GID)
	case len(c.Command) > 0 && c.Command[0] == "":
		return errors.New("the command begins with an empty word; give a program, or no command at all")
	case c.SSH.Port < 0 || c.SSH.Port > 65535:
		return fmt.Errorf("ssh port %d is none; give 1 to 65535", c.SSH.Port)
	}
	for what, p := range map[string]string{"home": u.Home, "shell": u.Shell, "workspace": c.Workspace, "host key": c.SSH.HostKey} {
		if p != "" && (!path.IsAbs(p) || strings.ContainsAny(p, ":\n\x00")) {
			return fmt.Errorf("the %s %q is no path of the container; it begins with / and has no colon", what, p)
		}
	}
	for _, env := range []map[string]string{c.Env, c.Secrets} {
		for name, value := range env {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
				return fmt.Errorf("%q cannot be an environment variable: its name has a = or it has a zero byte", name)
			}
		}
	}
	return nil
}

func fitsLine(name string) bool {
	return name != "" && !strings.ContainsAny(name, ":/, \t\n\r\x00") && !strings.ContainsAny(name[:1], "-+#")
}

// Ready reports through a named pipe that the session runs. Without the pipe or its reader it does nothing: the engine
// has restarted the container.
func Ready(path string) {
	pipe, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	_, _ = pipe.Write([]byte{'\n'}) // the reader may have ended meanwhile
	_ = pipe.Close()
}
