package state

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"cosplay/internal/resource"
)

// lists are the targets and the fits of all sessions, by name. A thousand sessions have a few, and each is as long as
// much of the rest of its session: so the file has each of them once, at its end, and sessions have its name instead.
type lists struct {
	Targets map[string]wholeTarget `json:"targets,omitempty"`
	Fits    map[string]wholeFit    `json:"fits,omitempty"`

	names map[resource.Fit]string
}

// In the lists they are written in full.
type (
	wholeTarget resource.Target
	wholeFit    resource.Fit
)

// The first versions of the format with these lists.
const (
	targetsListed = 3
	fitsListed    = 4
)

// collecting returns what writes names, and adds what they stand for to the lists, which are written last.
func (l *lists) collecting() *jsonv2.Marshalers {
	l.Targets, l.Fits, l.names = map[string]wholeTarget{}, map[string]wholeFit{}, map[resource.Fit]string{}
	return jsonv2.JoinMarshalers(
		jsonv2.MarshalToFunc(func(to *jsontext.Encoder, t *resource.Target) error {
			return to.WriteToken(jsontext.String(l.target(*t)))
		}),
		jsonv2.MarshalToFunc(func(to *jsontext.Encoder, f *resource.Fit) error { return to.WriteToken(jsontext.String(l.fit(*f))) }),
	)
}

// target returns the name of a target, which is its key, with a number if another target has the same one, which a
// changed catalog or a fraction of a card can cause.
func (l *lists) target(t resource.Target) string {
	return nameIn(l.Targets, t.Key, wholeTarget(t))
}

// fit returns the name of a fit, which is its profile and clock, with a number as well.
func (l *lists) fit(f resource.Fit) string {
	name, known := l.names[f]
	if !known {
		name = nameIn(l.Fits, fmt.Sprintf("%s at %d MHz", cmp.Or(f.Profile, "GPU"), f.ClockMHz), wholeFit(f))
		l.names[f] = name
	}
	return name
}

// nameIn adds a value to a list unless it is there, and returns its name.
func nameIn[T any](all map[string]T, of string, value T) string {
	name := of
	for n := 2; ; n++ {
		there, taken := all[name]
		if !taken {
			all[name] = value
			return name
		}
		if reflect.DeepEqual(there, value) {
			return name
		}
		name = fmt.Sprintf("%s#%d", of, n)
	}
}

// named read a target or a fit of a session: its name, which stands in its first field until give replaces it, or in an
// older file all of it.
var named = jsonv2.JoinUnmarshalers(
	nameInto(func(t *resource.Target) *string { return &t.Key }),
	nameInto(func(f *resource.Fit) *string { return &f.Profile }),
)

func nameInto[T any](field func(*T) *string) *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFromFunc(func(from *jsontext.Decoder, value *T) error {
		if from.PeekKind() != '"' {
			return errors.ErrUnsupported
		}
		name, err := from.ReadToken()
		*field(value) = name.String()
		return err
	})
}

// give gives sessions what they name, in a file of a version.
func (l *lists) give(sessions []resource.PriorSession, version int) error {
	for i := range sessions {
		s := &sessions[i]
		target, known := l.Targets[s.Target.Key]
		if !known {
			return fmt.Errorf("there is no target %q in its list", s.Target.Key)
		}
		s.Target = resource.Target(target)
		if version < fitsListed {
			continue
		}
		fit, known := l.Fits[s.Fit.Profile]
		if !known {
			return fmt.Errorf("there is no fit %q in its list", s.Fit.Profile)
		}
		s.Fit = resource.Fit(fit)
	}
	return nil
}
