package project

import (
	"fmt"
	"maps"
	"slices"

	"cosplay/internal/config"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// unseal sets the sensitive values of a plan's sessions from the configuration: a saved
// plan has only their hashes. The hashes are made with the state's key, or before the
// first apply with the key that the state will have.
func (p *Project) unseal(planned *plan.Plan, key string) (*plan.Plan, error) {
	return planned.WithSessions(func(s resource.Session) (resource.Session, error) {
		if len(s.Sealed) == 0 {
			return s, nil
		}
		if len(s.Secret) > 0 {
			return s.Seal(key), nil
		}
		i := slices.IndexFunc(p.Intent.Sessions, func(c config.Session) bool { return c.Address == s.Address })
		if i < 0 {
			return s, &StaleError{fmt.Sprintf("%s and its sensitive values are not in the configuration any more", s.Address)}
		}
		s.Secret = map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(s.Sealed)) {
			value, there := p.Intent.Sessions[i].Secret[name]
			if !there {
				return s, &StaleError{fmt.Sprintf("the sensitive env.%s of %s is not in the configuration any more", name, s.Address)}
			}
			s.Secret[name] = value
		}
		now := s.Seal(key)
		for name, seal := range s.Sealed {
			if seal != "" && seal != now.Sealed[name] {
				return s, &StaleError{fmt.Sprintf("the sensitive env.%s of %s has another value now; a saved plan is applied with the values that it was made with", name, s.Address)}
			}
		}
		return now, nil
	})
}
