package inside

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/shared"
)

// hostKey is the host key of a session. It is derived, not kept: it stays the same when the container is replaced,
// and known_hosts follows from the state alone.
func (in Sessions) hostKey(session string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(in.MAC("host key", in.Name, session))
}

// HostKey is the public half of a session's host key, as in authorized_keys.
func (in Sessions) HostKey(session string) string {
	public, err := ssh.NewPublicKey(in.hostKey(session).Public())
	if err != nil {
		panic(err) // an ed25519 key is one
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

// Know writes the known_hosts file of a session and returns its path. Its line identifies the session to an ssh client
// by the name of its container (HostKeyAlias), and by address and port.
func (in Sessions) Know(session string, s resource.SSH, port int) (string, error) {
	path := filepath.Join(in.Folder(session), knownHostsFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	if there, err := os.ReadFile(path); err == nil && in.knows(string(there), session, s, port) {
		return path, nil
	}
	return path, shared.Replace(path, []byte(in.knownHosts(session, s, port)), 0o644)
}

// knownHosts is that line. Its comment is a sum that only the state's key can make.
func (in Sessions) knownHosts(session string, s resource.SSH, port int) string {
	line := hostNames(session, s, port) + " " + in.HostKey(session)
	return line + " " + in.knownSum(line) + "\n"
}

// knows reports whether a text is that line, without computing the host key, which takes a fifth of the time of
// cosplay ssh.
func (in Sessions) knows(text, session string, s resource.SSH, port int) bool {
	at := strings.LastIndexByte(text, ' ')
	return at > 0 && strings.HasPrefix(text, hostNames(session, s, port)+" ") && text[at+1:] == in.knownSum(text[:at])+"\n"
}

func hostNames(session string, s resource.SSH, port int) string {
	return fmt.Sprintf("%s,[%s]:%d", resource.BodyName(session), runtime.Reachable(s.Bind), port)
}

func (in Sessions) knownSum(line string) string {
	return hex.EncodeToString(in.MAC("known host", line)[:8])
}
