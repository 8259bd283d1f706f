package resource

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
)

// Seal records each secret as a hash that only the key can make. Without a key, before there is a state, it records
// the names alone.
func (s Session) Seal(key string) Session {
	if len(s.Secret) == 0 {
		return s
	}
	s.Sealed = maps.Collect(maps.All(s.Sealed))
	for name, value := range s.Secret {
		s.Sealed[name] = seal(key, name, value)
	}
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

// IsSecret reports whether a value is the one that was sealed.
func (s Session) IsSecret(key, name, value string) bool {
	return hmac.Equal([]byte(s.Sealed[name]), []byte(seal(key, name, value)))
}

// Environ is the whole environment of the session's programs.
func (s Session) Environ() map[string]string {
	env := maps.Collect(maps.All(s.Env))
	maps.Copy(env, s.Secret)
	return env
}
