package project

import (
	"fmt"
	"maps"
	"slices"

	"cosplay/internal/config"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// unseal gives the sessions of a plan their sensitive values: a plan that was
// saved has only what is kept of them, so that they are taken from the
// configuration. They are sealed with the state's key, and before the first apply
// with the one that the state will have.
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
			return s, &StaleError{fmt.Sprintf("%s is not in the configuration any more, and its sensitive values with it", s.Address)}
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
