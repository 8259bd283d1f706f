package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"cosplay/internal/disguise"
	"cosplay/internal/preflight"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Machine is another machine with sessions.
type Machine struct {
	Ask func(ctx context.Context, question []byte, within time.Duration) (answer []byte, err error)
	// Run is the command that runs a program over there that opProgram has kept, with a terminal or without.
	Run func(program string, terminal bool) []string
}

// Runtime is a runtime of another machine, for the sessions of an owner.
type Runtime struct {
	Machine
	Name  string // of the runtime over there
	Owner resource.Owner
}

func (m Machine) ask(ctx context.Context, q question) (a answer, err error) {
	text, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	if text, err = m.Ask(ctx, text, q.patience()); err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("an answer that is not cosplay's: %w", err)
	}
	if a.Missing {
		err = fs.ErrNotExist
	}
	return a, err
}

// Place asks what the machine is.
func (m Machine) Place(ctx context.Context) (Place, error) {
	a, err := m.ask(ctx, question{Op: opPlace})
	if err == nil && a.Place == nil {
		err = errors.New("it does not say what it is")
	}
	if err != nil {
		return Place{}, err
	}
	return *a.Place, nil
}

// Tidy removes what sessions shared from folders without a session. A run that was interrupted may have removed the last
// session, and not that.
func (m Machine) Tidy(ctx context.Context) error {
	_, err := m.ask(ctx, question{Op: opTidy})
	return err
}

func (r Runtime) ask(ctx context.Context, q question) (answer, error) {
	q.Runtime, q.Owner = r.Name, r.Owner
	return r.Machine.ask(ctx, q)
}

// Connect reports what keeps the runtime from being reached over there.
func (r Runtime) Connect(ctx context.Context) error {
	_, err := r.ask(ctx, question{Op: opConnect})
	return err
}

// Prepare creates the body of a session over there.
func (r Runtime) Prepare(ctx context.Context, s resource.Session, given resource.Handle) (resource.Body, error) {
	a, err := r.ask(ctx, question{Op: opPrepare, Session: &session{s, s.Secret}, Given: given})
	switch {
	case len(a.Bodies) > 0:
		return a.Bodies[0].body(), err
	case err == nil:
		err = errors.New("it does not say what it has created")
	}
	return resource.Body{}, err
}

// Unprepare removes the body of a session.
func (r Runtime) Unprepare(ctx context.Context, session string) (resource.Use, error) {
	a, err := r.ask(ctx, question{Op: opUnprepare, IDs: []string{session}})
	return a.Use.use(), err
}

// List reads the bodies of all sessions.
func (r Runtime) List(ctx context.Context) ([]resource.Body, error) {
	a, err := r.ask(ctx, question{Op: opList})
	return prose.Each(a.Bodies, body.body), err
}

// Remains reads what the sessions have left.
func (r Runtime) Remains(ctx context.Context) ([]resource.Remains, error) {
	a, err := r.ask(ctx, question{Op: opRemains})
	return a.Remains, err
}

// Usage is what the programs of a session use of its GPU's memory.
func (r Runtime) Usage(session string) (disguise.Usage, error) {
	a, err := r.ask(context.Background(), question{Op: opUsage, IDs: []string{session}})
	if err != nil || a.Usage == nil {
		return disguise.Usage{}, err
	}
	return *a.Usage, nil
}

// Interior is what the programs of a session should find.
func (r Runtime) Interior(s resource.PriorSession) (runtime.Interior, error) {
	a, err := r.ask(context.Background(), question{Op: opInterior, Prior: &s})
	a.Interior.Folder = "" // it is of another machine, and nothing opens it here
	return a.Interior, err
}

// Altered reads what of a session's disguise was changed since it was written.
func (r Runtime) Altered(ctx context.Context, s resource.PriorSession) (map[string]string, error) {
	a, err := r.ask(ctx, question{Op: opAltered, Prior: &s})
	return a.Altered, err
}

// Survey prepares the check of sessions that are to be created.
func (r Runtime) Survey(context.Context) (runtime.Survey, error) {
	return runtime.Survey{Check: func(ctx context.Context, s resource.Session, removed map[string]bool) []preflight.Problem {
		a, err := r.ask(ctx, question{Op: opCheck, Session: &session{s, s.Secret}, Removed: removed})
		if err != nil {
			return []preflight.Problem{{Summary: "the session cannot be checked", Advice: prose.AdviceOf(err)}}
		}
		return a.Problems
	}}, nil
}

// Entered finds the sessions among some in which a user's program runs.
func (r Runtime) Entered(ctx context.Context, sessions []string) (map[string]bool, error) {
	a, err := r.ask(ctx, question{Op: opEntered, IDs: sessions})
	return a.Entered, err
}

// Reports are what the programs of sessions did, by the index of each session whose programs report it.
func (r Runtime) Reports(sessions []string) iter.Seq2[int, resource.Report] {
	return func(yield func(int, resource.Report) bool) {
		a, err := r.ask(context.Background(), question{Op: opReports, IDs: sessions})
		if err != nil {
			return
		}
		for i := range sessions {
			if report, reports := a.Reports[i]; reports && !yield(i, report) {
				return
			}
		}
	}
}

// Readdress writes the new address of a session where Remains reads it.
func (r Runtime) Readdress(ctx context.Context, id string, to resource.Address) error {
	_, err := r.ask(ctx, question{Op: opReaddress, IDs: []string{id}, Session: &session{Session: resource.Session{Address: to}}})
	return err
}

// End ends the programs of a session: a message on their terminals, SIGTERM, and after the grace period SIGKILL.
func (r Runtime) End(ctx context.Context, session, message string, grace time.Duration) error {
	_, err := r.ask(ctx, question{Op: opEnd, IDs: []string{session}, Message: message, Grace: grace})
	return err
}

// Devices is a Runtime whose sessions are devices for the containers of others.
type Devices struct{ Runtime }

// Offer is what a session offers to containers over there.
func (d Devices) Offer(session string) (resource.Offer, error) {
	a, err := d.ask(context.Background(), question{Op: opOffer, IDs: []string{session}})
	return a.Offer, err
}

// Open opens a runtime of a machine. What it needs of this machine, like known_hosts for ssh, is in the folders of here.
func Open(m Machine, d runtime.Driver, owner resource.Owner, here runtime.Host) runtime.Runtime {
	in := Runtime{Machine: m, Name: d.Name, Owner: owner}
	switch {
	case d.Devices:
		return Devices{in}
	case d.Connect != nil:
		return Containers{in, d, here}
	}
	return in
}
