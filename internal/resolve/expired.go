package resolve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// Down are the sessions of an intent that have expired and stay down: their blocks are as they were then, and the user
// has not extended them.
func Down(intent *config.Intent, prior resource.Prior) map[resource.Address]bool {
	down := map[resource.Address]bool{}
	for _, s := range intent.Sessions {
		expired, is := prior.HasExpired(s.Address)
		if is && expired.ExtendedTo == 0 && (expired.Block == "" || expired.Block == blockHash(s, prior.Key)) {
			down[s.Address] = true
		}
	}
	return down
}

// WithoutDown is the intent without those sessions.
func WithoutDown(intent *config.Intent, down map[resource.Address]bool) *config.Intent {
	if len(down) == 0 {
		return intent
	}
	rest := *intent
	rest.Sessions = slices.DeleteFunc(slices.Clone(intent.Sessions), func(s config.Session) bool { return down[s.Address] })
	return &rest
}

// Expired is the record of a session whose lifetime has ended, with the hash of what its block says.
func Expired(intent *config.Intent, prior resource.Prior, a resource.Address, end resource.End) resource.Expired {
	record := resource.Expired{Address: a, At: end.At, Why: end.Why}
	if s := intent.Session(a); s != nil {
		record.Block = blockHash(*s, prior.Key)
	}
	return record
}

// Past warns of sessions that a plan creates or changes although their stop_at has passed: they expire at once.
func Past(intent *config.Intent, changes []diff.SessionChange, prior resource.Prior, now resource.Moment) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, c := range changes {
		if c.After == nil || c.Action == diff.NoOp {
			continue
		}
		next := resource.PriorSession{Session: *c.After}
		if c.Before != nil {
			next.ExtendedTo = c.Before.ExtendedTo
		}
		if expired, is := prior.HasExpired(c.Address); is {
			next.ExtendedTo = expired.ExtendedTo
		}
		next.Lifetime.TTL, next.Lifetime.IdleTimeout = 0, 0
		if !next.End(0).Expired(now) {
			continue
		}
		if s := intent.Session(c.Address); s != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Subject: s.Ranges.Of("stop_at"),
				Summary: fmt.Sprintf("the stop_at of %s has passed", c.Address),
				Detail:  "The session expires as soon as it is up, and cosplay expire ends it. Write a later time, or remove stop_at."})
		}
	}
	return diags
}

// blockHash is a hash of what the user wrote about a session, wherever it is in the files. Only the state's key can make
// it, since it covers sensitive values.
func blockHash(s config.Session, key string) string {
	s.Address = resource.Address{}
	if s.Hosts != nil { // cosplay chooses
		s.Host, s.Hosts = "", nil
	}
	gpu := ""
	if s.GPU != nil {
		gpu, s.GPU = s.GPU.String(), nil
	}
	target := s.Target.Key // the catalog's figures are not the user's
	s.Target = resource.Target{}
	content, err := json.Marshal(struct {
		Target, GPU, Trigger string
		Session              config.Session
		Secret               map[string]string
	}{target, gpu, s.Lifecycle.Digest, s, s.Secret})
	if err != nil {
		panic(err) // strings and numbers only: it cannot fail
	}
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
