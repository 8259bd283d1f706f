package resource

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
)

// Seal notes of each secret what may be kept of it: a hash that only the key can
// make. Without a key, before there is a state, the names alone are noted.
func (s Session) Seal(key string) Session {
	if len(s.Secret) == 0 {
		return s
	}
	sealed := maps.Clone(s.Sealed)
	if sealed == nil {
		sealed = map[string]string{}
	}
	for name, value := range s.Secret {
		sealed[name] = seal(key, name, value)
	}
	s.Sealed = sealed
	return s
}

func seal(key, name, value string) string {
	if key == "" {
		return ""
	}
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte("env\x00" + name + "\x00" + value))
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// IsSecret tells whether a value is the one that was sealed.
func (s Session) IsSecret(key, name, value string) bool {
	return hmac.Equal([]byte(s.Sealed[name]), []byte(seal(key, name, value)))
}

// Environ is the whole environment that the session's programs are given.
func (s Session) Environ() map[string]string {
	env := maps.Clone(s.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, s.Secret)
	return env
}
