package config

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/pattern"
)

func sshEnabled(s *Session, v value) {
	s.Spec.SSH.Enabled, _ = v.flag()
}

func sshPort(s *Session, v value) {
	if !v.RawEquals(cty.StringVal("auto")) {
		s.Spec.SSH.Port, _ = v.whole(1, 65_535, `"auto" or a port`)
	}
}

func sshBind(s *Session, v value) {
	typed, ok := v.text()
	if !ok {
		return
	}
	ip, err := netip.ParseAddr(typed)
	if err != nil || ip.Zone() != "" {
		v.wrong(fmt.Sprintf("%q is not an IP address", typed),
			"Write the address that ssh listens at, without a port: \"127.0.0.1\" for this machine only, \"0.0.0.0\" for all its networks.")
		return
	}
	s.Spec.SSH.Bind = ip.Unmap().String()
}

const keyAdvice = `Write the path of a .pub file, like "~/.ssh/id_ed25519.pub", or the line that is in it, like "ssh-ed25519 AAAA...".`

var keyType = pattern.Of(`^(?:ssh|ecdsa|sk)-[a-z0-9@.-]+$`)

// publicKey reads the path of a public key, or the key itself: one line, as in the files of ssh.
func (v value) publicKey() (string, bool) {
	typed, ok := v.text()
	if !ok {
		return "", false
	}
	typed = strings.TrimSpace(typed)
	fields := strings.Fields(typed)
	switch {
	case strings.Contains(typed, "PRIVATE KEY"):
		v.wrong("a private key does not belong here", "Every reader of this file could log in with it. Make a new key. %s", keyAdvice)
	case strings.ContainsAny(typed, "\r\n"):
		v.wrong("a public key has one line", "The text has several lines. Write each key as a separate element of the list, like [\"ssh-ed25519 AAAA...\", \"~/.ssh/id_ed25519.pub\"].")
	case len(fields) > 1 && keyType().MatchString(fields[0]):
		if isKey(fields[0], fields[1]) {
			return typed, true
		}
		v.wrong("the public key is damaged", "The part after %s is mistyped or incomplete. Copy the whole line of the .pub file, or write the file's path.", fields[0])
	case strings.HasSuffix(typed, ".pub"):
		return v.path()
	default:
		suggestion := ""
		if strings.Contains(typed, "/") && !strings.Contains(typed, " ") {
			suggestion = meant(typed + ".pub") // the public key beside a private one
		}
		v.wrong(fmt.Sprintf("%q is not a public key", typed), "%s%s", keyAdvice, suggestion)
	}
	return "", false
}

// isKey reports whether the text is a public key of a kind: base64 of fields with their lengths, the first of which
// is the kind.
func isKey(kind, text string) bool {
	rest, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	var fields []string
	for len(rest) >= 4 {
		length := uint64(binary.BigEndian.Uint32(rest))
		if rest = rest[4:]; length > uint64(len(rest)) {
			return false
		}
		fields = append(fields, string(rest[:length]))
		rest = rest[length:]
	}
	return len(rest) == 0 && len(fields) > 1 && fields[0] == kind
}
