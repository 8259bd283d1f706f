package project

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
)

// Saved is a plan for a file, with what its configuration was read from, and the flags that make it again.
func (p *Project) Saved(o Outlook, flags []string) plan.Saved {
	saved := o.Plan.Saved(p.Store.Version)
	saved.Flags = flags
	hides := saved.Secrets || slices.ContainsFunc(saved.Outputs, func(c diff.OutputChange) bool { return c.Sensitive })
	for _, v := range p.Intent.Variables {
		if hides && v.Sensitive && v.Given {
			saved.Again = append(saved.Again, v.Name)
		}
	}
	saved.Basis.Config = map[string]string{}
	key := cmp.Or(o.Prior.Key, saved.Key)
	for _, r := range p.Intent.Reads() {
		saved.Basis.Config[sealed(key, "read", r.Of)] = sealed(key, "read", string(r.Sum[:]))
	}
	return saved
}

// sameConfig checks that what the configuration was read from is as it was when a plan was saved. It leaves out what has
// not been read, which has no effect.
func (l *Fleet) sameConfig(basis plan.Basis, key string) error {
	if basis.Config == nil {
		return nil
	}
	for _, r := range l.Intent.Reads() {
		was, read := basis.Config[sealed(key, "read", r.Of)]
		switch {
		case read && was == sealed(key, "read", string(r.Sum[:])):
		case read, r.Text:
			return &StaleError{What: fmt.Sprintf("%s has changed since it was made", r.Of)}
		}
	}
	return nil
}

// otherValue refuses a saved plan where a value differs from the planned one. All else that it depends on is as it was, so
// that a sensitive variable has another value: a saved plan has none.
func (l *Fleet) otherValue(what string) error {
	stale := &StaleError{What: what + " has another value now"}
	if names := l.Intent.Secrets(); len(names) > 0 {
		stale.Fix = "give apply " + config.GiveAgain(names)
	}
	return stale
}

// sealed is a hash of a text of some kind that does not reveal a short one: an output, a file or the environment may have
// secrets.
func sealed(key, kind, text string) string {
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte(kind + "\x00" + text))
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
