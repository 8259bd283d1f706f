package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"syscall"
	"time"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Server answers the questions of a client on another machine, about one host of its configuration.
type Server struct {
	Place Place
	Open  func(runtime string, owner resource.Owner) (runtime.Runtime, error)
	// Readdress writes the new address of a session where Remains reads it.
	Readdress func(runtime, session string, owner resource.Owner, to resource.Address) error

	Root     string // folder of the projects of other machines: a project's own is removed with its last session
	Programs string // folder of programs that are to run
}

// Answer answers a question.
func (s Server) Answer(text []byte) ([]byte, error) {
	var q question
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, fmt.Errorf("a question that is not cosplay's: %w", err)
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.Session != nil {
		q.Session.Session.Secret = q.Session.Secret
	}
	a, err := s.answer(context.Background(), q)
	if errors.Is(err, fs.ErrNotExist) && q.Op == opUsage {
		a.Missing, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

// ender is apply.Ender.
type ender interface {
	End(ctx context.Context, session, message string, grace time.Duration) error
}

// check refuses a question that lacks what it is about.
func (q question) check() error {
	lacks := false
	switch q.Op {
	case opPrepare, opCheck:
		lacks = q.Session == nil
	case opInterior, opAltered:
		lacks = q.Prior == nil
	case opReaddress:
		lacks = q.Session == nil || len(q.IDs) != 1
	case opUnprepare, opUsage, opOffer, opEnd:
		lacks = len(q.IDs) != 1
	case opProgram:
		lacks = len(q.IDs) != 1 || q.Program == nil
	case opSignal, opOutcome:
		lacks = len(q.IDs) != 1 || !programName().MatchString(q.IDs[0])
	}
	if lacks {
		return fmt.Errorf("the question %q does not say about what", q.Op)
	}
	return nil
}

func (s Server) answer(ctx context.Context, q question) (a answer, err error) {
	switch q.Op {
	case opPlace:
		return answer{Place: &s.Place}, nil
	case opReaddress:
		return a, s.Readdress(q.Runtime, q.IDs[0], q.Owner, q.Session.Address)
	case opProgram:
		a.Program, err = s.keep(q)
		return a, err
	case opSignal:
		return a, s.signal(q.IDs[0], syscall.Signal(q.Signal))
	case opOutcome:
		a.Outcome, err = s.outcome(q.IDs[0])
		return a, err
	}
	in, err := s.Open(q.Runtime, q.Owner)
	if err != nil {
		return a, err
	}
	a, err = ofRuntime(ctx, in, q)
	a.Interior.User = &s.Place.User
	if q.Op == opUnprepare {
		s.tidy()
	}
	return a, err
}

// ofRuntime asks what every runtime answers.
func ofRuntime(ctx context.Context, in runtime.Runtime, q question) (a answer, err error) {
	switch q.Op {
	case opPrepare:
		made, err := in.Prepare(ctx, q.Session.Session, q.Given)
		return answer{Bodies: []body{toWire(made)}}, err
	case opUnprepare:
		used, err := in.Unprepare(ctx, q.IDs[0])
		return answer{Use: useToWire(used)}, err
	case opList:
		all, err := in.List(ctx)
		return answer{Bodies: prose.Each(all, toWire)}, err
	case opRemains:
		a.Remains, err = in.Remains(ctx)
	case opUsage:
		usage, err := in.Usage(q.IDs[0])
		return answer{Usage: &usage}, err
	case opInterior:
		a.Interior, err = in.Interior(*q.Prior)
	case opAltered:
		a.Altered, err = in.Altered(ctx, *q.Prior)
	case opCheck:
		survey, err := in.Survey(ctx)
		if err != nil {
			return a, err
		}
		return answer{Problems: append(survey.Host, survey.Check(ctx, q.Session.Session, nil)...)}, nil
	default:
		return ofMore(ctx, in, q)
	}
	return a, err
}

// ofMore asks what only some runtimes answer; of the others the answer is empty.
func ofMore(ctx context.Context, in runtime.Runtime, q question) (a answer, err error) {
	switch q.Op {
	case opEnd:
		if of, can := in.(ender); can {
			err = of.End(ctx, q.IDs[0], q.Message, q.Grace)
		}
	case opOffer:
		if of, can := in.(runtime.Offerer); can {
			a.Offer, err = of.Offer(q.IDs[0])
		}
	case opEntered:
		if of, can := in.(runtime.Entered); can {
			a.Entered, err = of.Entered(ctx, q.IDs)
		}
	case opReports:
		if of, can := in.(runtime.Reporter); can {
			a.Reports = maps.Collect(of.Reports(q.IDs))
		}
	default:
		err = fmt.Errorf("there is no question %q", q.Op)
	}
	return a, err
}
