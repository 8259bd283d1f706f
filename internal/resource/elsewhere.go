package resource

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"cosplay/internal/prose"
)

// KeyOn is the key by which a state owns what is on a host.
func (l Live) KeyOn(host, key string) string {
	if !l.host(host).Elsewhere {
		return key
	}
	return KeyElsewhere(host, key)
}

// KeyElsewhere is the key that a state has on another machine. It is derived from the state's own, so that no machine can forge
// what is on others.
func KeyElsewhere(host, key string) string {
	if key == "" {
		return ""
	}
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte("host\x00" + host))
	return hex.EncodeToString(sum.Sum(nil))
}

// Unreachable reports whether nothing of a host could be read.
func (l Live) Unreachable(host string) bool { return l.host(host).Unreachable != "" }

// Unread reports whether the sessions of a host could not be read, or nothing of it.
func (l Live) Unread(host string) bool {
	h := l.host(host)
	return h.Silent != "" || h.Unreachable != ""
}

// NotRead is the error of a host of which nothing could be read.
func (l Live) NotRead(host string) error {
	h := l.host(host)
	return prose.Advice{What: fmt.Sprintf("host %s cannot be read: %s", host, h.Unreachable), Fix: h.Remedy}
}

// Unreached are the errors of all hosts of which nothing could be read; nil without any.
func (l Live) Unreached() (err error) {
	for _, h := range l.Hosts {
		if h.Unreachable != "" {
			err = errors.Join(err, l.NotRead(h.Name))
		}
	}
	return err
}

// AllReached reports whether something of each host could be read.
func (l Live) AllReached() bool {
	return !slices.ContainsFunc(l.Hosts, func(h Host) bool { return h.Unreachable != "" })
}
