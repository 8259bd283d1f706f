package state

import (
	"errors"
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"cosplay/internal/resource"
)

// targets are the targets of all sessions, by name. A thousand sessions have a few, and each is as long as the rest of
// its session: so the file has each of them once, at its end, and sessions have its name instead.
type targets map[string]listed

// targetsListed is the first version of the format with that list.
const targetsListed = 3

// listed is a target in the list, which is written in full.
type listed resource.Target

// collect adds the targets of sessions, and returns what writes names in their place. A name is the target's key, with
// a number if another target has the same one, which a changed catalog or a fraction of a card can cause.
func (t targets) collect(sessions []resource.PriorSession) *jsonv2.Marshalers {
	for _, s := range sessions {
		t.add(s.Target)
	}
	count := len(t)
	return jsonv2.MarshalToFunc(func(to *jsontext.Encoder, target *resource.Target) error {
		name := t.add(*target)
		if len(t) > count {
			return fmt.Errorf("the target %q is no session's, so the list lacks it", target.Key)
		}
		return to.WriteToken(jsontext.String(name))
	})
}

// add adds a target unless it is there, and returns its name.
func (t targets) add(target resource.Target) string {
	name := target.Key
	for n := 2; ; n++ {
		there, taken := t[name]
		if !taken {
			t[name] = listed(target)
			return name
		}
		if reflect.DeepEqual(there, listed(target)) {
			return name
		}
		name = fmt.Sprintf("%s#%d", target.Key, n)
	}
}

// namedTargets reads the target of a session: its name, as the key, or in an older file all of it.
var namedTargets = jsonv2.UnmarshalFromFunc(func(from *jsontext.Decoder, target *resource.Target) error {
	if from.PeekKind() != '"' {
		return errors.ErrUnsupported
	}
	name, err := from.ReadToken()
	target.Key = name.String()
	return err
})

// give gives sessions the targets that they name.
func (t targets) give(sessions []resource.PriorSession) error {
	for i := range sessions {
		target, known := t[sessions[i].Target.Key]
		if !known {
			return fmt.Errorf("there is no target %q in its list", sessions[i].Target.Key)
		}
		sessions[i].Target = resource.Target(target)
	}
	return nil
}
