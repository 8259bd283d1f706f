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

	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/shared"
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

// What apply and observe ask of some runtimes: apply.Ender, apply.Stopper, apply.Images, observe.LeftoverLister.
type (
	ender interface {
		End(ctx context.Context, session, message string, grace time.Duration) error
	}
	stopper interface {
		Stop(ctx context.Context, session string) error
		Start(ctx context.Context, s resource.Session) (resource.Body, error)
	}
	imager interface {
		Ensure(ctx context.Context, image string, how plan.ImageSource, say func(string)) error
	}
	leftoverLister interface {
		Leftovers(ctx context.Context, listed []resource.Body, known []string) ([]resource.Body, error)
	}
)

// check refuses a question that lacks what it is about.
func (q question) check() error {
	lacks := false
	switch q.Op {
	case opPrepare, opCheck, opStart:
		lacks = q.Session == nil
	case opInterior, opAltered:
		lacks = q.Prior == nil
	case opReaddress:
		lacks = q.Session == nil || len(q.IDs) != 1
	case opUnprepare, opUsage, opOffer, opEnd, opStop:
		lacks = len(q.IDs) != 1
	case opProgram:
		of := len(q.IDs) == 1 && (q.Program != nil || q.Logs != nil || q.Pack != nil || q.Unpack != nil)
		lacks = !of && q.Image == "" && !q.Notify
	case opFind:
		lacks = len(q.IDs) != 1 || q.Find == nil
	case opOffered:
		lacks = q.Image == ""
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
	case opTidy:
		for _, folder := range s.Place.Sessions {
			shared.Remove(folder)
		}
		s.tidy()
		return a, nil
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
	if !a.Interior.OwnRoot {
		a.Interior.User = &s.Place.User
	}
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
		return answer{Problems: append(survey.Host, survey.Check(ctx, q.Session.Session, q.Removed)...)}, nil
	default:
		return ofMore(ctx, in, q)
	}
	return a, err
}

// ofMore asks what only some runtimes answer; of the others the answer is empty.
func ofMore(ctx context.Context, in runtime.Runtime, q question) (a answer, err error) {
	switch q.Op {
	case opConnect: // it is open
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
	case opFind:
		a.Found, err = find(ctx, in, q)
	case opReports:
		if of, can := in.(runtime.Reporter); can {
			a.Reports = maps.Collect(of.Reports(q.IDs))
		}
	default:
		return ofContainers(ctx, in, q)
	}
	return a, err
}

// ofContainers asks what only the runtime of an engine answers.
func ofContainers(ctx context.Context, in runtime.Runtime, q question) (a answer, err error) {
	engine, isEngine := in.(runtime.Engine)
	puller, pulls := in.(runtime.Puller)
	stops, canStop := in.(stopper)
	lister, lists := in.(leftoverLister)
	importer, imports := in.(runtime.Importer)
	switch {
	case q.Op == opInspect && isEngine:
		inspected, err := engine.Inspect(ctx)
		return answer{Engine: &inspected}, err
	case q.Op == opReaches && isEngine:
		return a, engine.Reaches()
	case q.Op == opOffered && pulls:
		a.Image, err = puller.Offered(ctx, q.Image)
	case q.Op == opStop && canStop:
		err = stops.Stop(ctx, q.IDs[0])
	case q.Op == opStart && canStop:
		started, err := stops.Start(ctx, q.Session.Session)
		return answer{Bodies: []body{toWire(started)}}, err
	case q.Op == opLeftovers && lists:
		all, err := lister.Leftovers(ctx, prose.Each(q.Bodies, body.body), q.IDs)
		return answer{Bodies: prose.Each(all, toWire)}, err
	case q.Op == opStranger && imports:
		found, name, lineage, host, err := importer.Stranger(ctx, q.Ref)
		if found != nil {
			a = answer{Bodies: []body{toWire(*found)}, Stranger: &stranger{name, lineage, host}}
		}
		return a, err
	default:
		err = fmt.Errorf("sessions in %q do not answer %q", q.Runtime, q.Op)
	}
	return a, err
}
