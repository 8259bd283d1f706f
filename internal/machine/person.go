package machine

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"cosplay/internal/config"
	"cosplay/internal/prose"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
)

// Person is the user who runs cosplay, with the keys with which they can log in, and their accounts on the open hosts of
// other machines. Under sudo it is the user who called it.
func (m *Machine) Person(intent *config.Intent) (resolve.Person, error) {
	account, err := Invoker()
	if err != nil {
		return resolve.Person{}, err
	}
	p := resolve.Person{User: account.User, Files: map[string]resolve.KeyFile{}, There: map[string]resource.User{}}
	for _, s := range intent.Sessions {
		for _, key := range s.Keys {
			if strings.HasPrefix(key, "/") && p.Files[key].Keys == nil {
				keys, err := publicKeys(key)
				p.Files[key] = resolve.KeyFile{Keys: keys, Err: err}
			}
		}
	}
	for name, h := range m.hosts {
		if h.remote != nil {
			p.There[name] = h.Place.User
		}
	}
	p.Keys = distinct(append(agentKeys(), ownKeys(filepath.Join(HomeDir(), ".ssh"))...))
	return p, nil
}

// ID identifies this machine in ledgers: a hash of what its system calls it, which is not for others; "" if it has none.
func ID() string {
	id := systemID()
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("cosplay\x00" + id))
	return hex.EncodeToString(sum[:8])
}

// account is a user of this machine.
type account struct {
	resource.User
	home string
}

// Invoker is the user who typed the command.
func Invoker() (account, error) {
	name := ""
	if os.Geteuid() == 0 {
		name = os.Getenv("SUDO_USER")
	}
	if known, ok := invokers.Load(name); ok {
		return known.(account), nil
	}
	found, err := invoker(name)
	if err == nil {
		invokers.Store(name, found)
	}
	return found, err
}

// invokers are those that were found: each line of the audit log has one.
var invokers sync.Map

// invoker is the user with a name; "" is that of the process.
func invoker(name string) (account, error) {
	u, err := user.Current()
	if err == nil && name != "" {
		u, err = user.Lookup(name)
	}
	if err != nil {
		return account{}, fmt.Errorf("finding out who you are, since sessions run as you: %w", err)
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	if err := cmp.Or(uidErr, gidErr); err != nil {
		return account{}, fmt.Errorf("finding out who you are: %w", err)
	}
	group := u.Username
	if g, err := user.LookupGroupId(u.Gid); err == nil {
		group = g.Name
	}
	return account{User: resource.User{Name: u.Username, UID: uid, GID: gid, Group: group}, home: u.HomeDir}, nil
}

// UserName is the name of that user, for other users to read.
func UserName() string {
	who, err := Invoker()
	if err != nil {
		return fmt.Sprintf("uid %d", os.Getuid())
	}
	return who.Name
}

// UserID is the uid of that user.
func UserID() *int {
	who, err := Invoker()
	if err != nil {
		who.UID = os.Getuid()
	}
	return &who.UID
}

// HomeDir returns the home of that user: HOME, as in a shell; or the home in passwd if HOME is not set, or sudo set it
// for root.
func HomeDir() string {
	if os.Getenv("SUDO_USER") == "" || os.Geteuid() != 0 {
		if home, err := os.UserHomeDir(); err == nil {
			return home
		}
	}
	who, _ := Invoker() // an unknown user has no home
	return who.home
}

// agentPatience limits the wait for an ssh agent: a forwarded one may not answer.
const agentPatience = 2 * time.Second

// agentKeys are the keys that the user's ssh agent holds; no agent has none.
func agentKeys() []string {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil
	}
	conn, err := net.DialTimeout("unix", socket, agentPatience)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(agentPatience)); err != nil {
		return nil
	}
	held, err := agent.NewClient(conn).List()
	if err != nil {
		return nil
	}
	return prose.Each(held, (*agent.Key).String)
}

// ownKeys returns the public keys in a folder that have their private key beside them: without it, the user could not
// log in from this machine.
func ownKeys(dir string) []string {
	var all []string
	for _, private := range privateKeys(dir) {
		if keys, err := publicKeys(private + ".pub"); err == nil {
			all = append(all, keys...)
		}
	}
	return all
}

// privateKeys are the files in a folder that have their public key beside them.
func privateKeys(dir string) []string {
	names, _ := fs.Glob(os.DirFS(dir), "*.pub")
	slices.Sort(names)
	var all []string
	for _, name := range names {
		private := filepath.Join(dir, strings.TrimSuffix(name, ".pub"))
		if _, err := os.Stat(private); err == nil {
			all = append(all, private)
		}
	}
	return all
}

// Identities are the private keys of the user for lines of authorized_keys; nil where ssh tries them by itself: those
// with the usual names in the home of the account. HOME may name another.
func Identities(authorized []string) []string {
	who, _ := Invoker()
	var all []string
	usual := true
	for _, private := range privateKeys(filepath.Join(HomeDir(), ".ssh")) {
		keys, err := publicKeys(private + ".pub")
		if err != nil || len(distinct(slices.Concat(authorized, keys))) > len(distinct(slices.Clone(authorized))) {
			continue
		}
		all = append(all, private)
		usual = usual && filepath.Dir(private) == filepath.Join(who.home, ".ssh") && slices.Contains(usualKeys, filepath.Base(private))
	}
	if usual {
		return nil
	}
	return all
}

// usualKeys are the files that ssh tries, says ssh_config(5).
var usualKeys = []string{"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"}

// publicKeys reads a file of public keys, one a line. A file without any is an
// error.
func publicKeys(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []string
	for len(bytes.TrimSpace(data)) > 0 {
		key, comment, _, rest, err := ssh.ParseAuthorizedKey(data)
		if err != nil {
			return nil, fmt.Errorf("%s holds no public key", file)
		}
		all = append(all, strings.TrimSpace(strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))+" "+comment))
		data = rest
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is empty", file)
	}
	return all, nil
}

// distinct drops keys that are there twice under whatever comment.
func distinct(keys []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(keys, func(line string) bool {
		fields := strings.Fields(line)
		if len(fields) < 2 || seen[fields[1]] {
			return true
		}
		seen[fields[1]] = true
		return false
	})
}
