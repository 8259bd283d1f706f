package agent

import (
	"cmp"
	"fmt"

	"cosplay/internal/resource"
)

// TTL is what the rules of a host say about the ttl of a session. cosplay keeps it as the user: the agent of root knows
// GPUs and slices, and no sessions.
type TTL struct {
	Max     resource.Seconds // the longest; 0 is any, and none
	Default resource.Seconds // of a session without one; 0 is none
	Rule    string           // that says so
}

// limit reads a word about the ttl of sessions.
func (r *rule) limit(key, value string) error {
	length, ok := resource.ParseSeconds(value)
	if !ok {
		return fmt.Errorf("%q is not a length of time, like %s=8h", key+"="+value, key)
	}
	if key == "max-ttl" {
		r.maxTTL = length
	} else {
		r.defaultTTL = length
	}
	return nil
}

// TTL is what applies to a session of a user on some GPUs: of several, the rule with the shortest times.
func (p Policy) TTL(who Subject, gpus []string) (ttl TTL, err error) {
	for _, gpu := range gpus {
		r, found, err := p.governs(who, gpu)
		if err != nil {
			return ttl, err
		}
		if before := ttl; found {
			ttl.Max, ttl.Default = shorter(ttl.Max, r.maxTTL), shorter(ttl.Default, cmp.Or(r.defaultTTL, r.maxTTL))
			if ttl != before {
				ttl.Rule = p.at(r)
			}
		}
	}
	return ttl, nil
}

// shorter is the shorter of two lengths of time, of which 0 is none.
func shorter(a, b resource.Seconds) resource.Seconds {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
