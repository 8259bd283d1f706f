// Package resource is the vocabulary that the rest of cosplay speaks: the address of a session, a GPU with its model
// and settings, a slice of it, what runs in a slice, and the three views of all of it that are compared, Desired,
// Prior and Live. It holds values only and touches nothing.
package resource

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"

	"cosplay/internal/prose"
)

// Address names one session: session.worker, session.worker[3] (count) or
// session.worker["a"] (for_each). It is comparable and can be a map key.
type Address struct {
	Name string // the block's label
	Key  Key
}

// Key distinguishes the instances of one session block.
type Key struct {
	Kind  KeyKind
	Index int    // with ByCount
	Each  string // with ByEach
}

// KeyKind says how a session block is multiplied.
type KeyKind uint8

const (
	Single KeyKind = iota
	ByCount
	ByEach
)

// One returns the address of a session without count or for_each.
func One(name string) Address { return Address{Name: name} }

// Nth returns the address of instance i of a session with count.
func Nth(name string, i int) Address {
	return Address{Name: name, Key: Key{Kind: ByCount, Index: i}}
}

// Each returns the address of the instance with a key of for_each.
func Each(name, key string) Address {
	return Address{Name: name, Key: Key{Kind: ByEach, Each: key}}
}

// String is the full address: session.worker[3].
func (a Address) String() string {
	switch a.Key.Kind {
	case ByCount:
		return "session." + a.Name + "[" + strconv.Itoa(a.Key.Index) + "]"
	case ByEach:
		return "session." + a.Name + "[" + strconv.Quote(a.Key.Each) + "]"
	default:
		return "session." + a.Name
	}
}

// Short is the address as people type it: worker-3.
func (a Address) Short() string {
	switch a.Key.Kind {
	case ByCount:
		return a.Name + "-" + strconv.Itoa(a.Key.Index)
	case ByEach:
		return a.Name + "-" + a.Key.Each
	default:
		return a.Name
	}
}

// Compare orders addresses by name, then by key, indexes as numbers.
func (a Address) Compare(b Address) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Key.Kind, b.Key.Kind),
		cmp.Compare(a.Key.Index, b.Key.Index), strings.Compare(a.Key.Each, b.Key.Each))
}

// MarshalText writes the full address, so that JSON and maps show it.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads a full address back.
func (a *Address) UnmarshalText(text []byte) error {
	parsed, err := ParseAddress(string(text))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// ParseAddress reads a full address as String writes it.
func ParseAddress(text string) (Address, error) {
	rest, session := strings.CutPrefix(text, "session.")
	name, key, keyed := strings.Cut(rest, "[")
	key, closed := strings.CutSuffix(key, "]")
	quoted := strings.HasPrefix(key, `"`)
	switch {
	case !session, !isName(name), closed != keyed, keyed && !quoted && !isNumber(key):
		return Address{}, fmt.Errorf("%q is not the address of a session; write it like session.worker, session.worker[3] or session.worker[\"a\"]", text)
	case !keyed:
		return One(name), nil
	case quoted:
		each, err := strconv.Unquote(key)
		if err != nil {
			return Address{}, fmt.Errorf("the key in %q is not a quoted string", text)
		}
		return Each(name, each), nil
	}
	index, err := strconv.Atoi(key)
	if err != nil {
		return Address{}, fmt.Errorf("the index in %q is too large", text)
	}
	return Nth(name, index), nil
}

func isName(s string) bool {
	for i, c := range s {
		if c != '_' && !unicode.IsLetter(c) && (i == 0 || c != '-' && !unicode.IsNumber(c)) {
			return false
		}
	}
	return s != ""
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// BodyName is the name of the body of a session to which the configuration gives none, in runtimes where bodies have
// names.
func BodyName(session string) string { return "cosplay-" + session }

// Match finds the address that a person means among those that exist: worker-3, worker[3] and session.worker[3] are
// the same, and with a single session its name may be left out. The error lists the sessions.
func Match(typed string, known []Address) (Address, error) {
	if typed == "" && len(known) == 1 {
		return known[0], nil
	}
	for _, a := range known {
		if typed == a.Short() || typed == BodyName(SessionID(a)) || typed == a.String() || typed == strings.TrimPrefix(a.String(), "session.") {
			return a, nil
		}
	}
	names := strings.Join(prose.Each(known, Address.Short), ", ")
	switch {
	case len(known) == 0:
		return Address{}, fmt.Errorf("there is no session yet; run cosplay apply first")
	case typed == "":
		return Address{}, fmt.Errorf("there are %d sessions; name one of %s", len(known), names)
	}
	for _, a := range known {
		if levenshtein.Distance(typed, a.Short(), nil) <= len(typed)/3 {
			return Address{}, fmt.Errorf("there is no session %q; did you mean %s? There are %s", typed, a.Short(), names)
		}
	}
	return Address{}, fmt.Errorf("there is no session %q; there are %s", typed, names)
}
