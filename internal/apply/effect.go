package apply

import (
	"cmp"
	"context"
	"strings"
	"time"

	"cosplay/internal/durable"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// Effect is an operation that a run has carried out, or tried to.
type Effect struct {
	Op    plan.Op
	Prior resource.Prior // the state before it, or the part of it that concerns it
	Live  resource.Live  // the snapshot of the plan
	Made  plan.Made
	Err   error
}

// effect carries out an operation, between two moments at which tests interrupt it, and reports it to the audit.
func (s *schedule) effect(ctx context.Context, op plan.Op, prior resource.Prior, say func(string)) (plan.Made, error) {
	durable.Moment("before effect %T", op)
	made, err := s.act(ctx, op, prior, say)
	durable.Moment("after effect %T", op)
	made.At = moment(op, time.Now())
	if s.Audit != nil {
		s.Audit(Effect{op, prior, s.live, made, err})
	}
	return made, err
}

// Change is what an operation changes, in words. It has no value of env.
type Change struct {
	Address string `json:"address,omitempty"` // of the session
	Host    string `json:"host"`
	GPU     string `json:"gpu,omitempty"`     // UUID
	Setting string `json:"setting,omitempty"` // of the GPU
	Old     string `json:"old,omitempty"`     // "" for what did not exist or is not known
	New     string `json:"new,omitempty"`     // "" for what is removed
}

// Change states what the operation changes, from which value to which.
func (e Effect) Change() Change {
	switch op := e.Op.(type) {
	case plan.TakeGPU:
		return Change{Host: op.Host, GPU: op.GPU, New: "held; baseline " + allSettings(op.Baseline)}
	case plan.LeaveGPU:
		return Change{Host: op.Host, GPU: op.GPU, Old: "held", New: "baseline is restored"}
	case plan.ReleaseGPU:
		return Change{Host: op.Host, GPU: op.GPU, Old: "held"}
	case plan.SetGPU:
		c := Change{Host: op.Host, GPU: op.GPU, Setting: op.Setting.String(), Old: e.was(op), New: op.Setting.Text(op.Value)}
		if e.Made.PowerMW != nil {
			c.New = op.Setting.Text(*e.Made.PowerMW)
		}
		return c
	case plan.RunMPS:
		return Change{Host: op.Host, GPU: op.GPU, New: "MPS control daemon in " + op.MPS.Folder}
	case plan.StopMPS:
		return Change{Host: op.Host, GPU: op.GPU, Old: "MPS control daemon in " + op.MPS.Folder}
	case plan.CreateSlice:
		c := onSlice(op.Session.Address, op.Session.Slice)
		c.New = op.Session.Slice.String()
		if e.Made.Handle != nil {
			c.New = strings.TrimSpace(c.New + " " + e.Made.Handle.UUID)
		}
		return c
	case plan.DestroySlice:
		c := onSlice(op.Address, op.Slice)
		c.Old = op.Slice.String()
		if s, _ := e.Prior.Session(op.Address); s.Handle != nil {
			c.Old += " " + s.Handle.UUID
		}
		return c
	case plan.EnsureImage:
		return Change{Host: op.Host, New: "image " + op.Image}
	case plan.Prepare:
		c := onSlice(op.Session.Address, op.Session.Slice)
		c.Old, c.New = e.body(op.Session.Address), bodyOf(op.Session, e.Made.Body)
		return c
	case plan.Unprepare:
		return Change{Address: op.Address.String(), Host: op.Host, Old: cmp.Or(e.body(op.Address), op.ID)}
	case plan.StopSession:
		return Change{Address: op.Address.String(), Host: op.Host, Old: "running", New: "stopped"}
	case plan.StartSession:
		return Change{Address: op.Address.String(), Host: op.Host, Old: "stopped", New: "running"}
	case plan.EndSession:
		return Change{Address: op.Expired.Address.String(), Host: op.Host, Old: "running", New: "expired"}
	case plan.HoldGPU, plan.DoubtClock, plan.NoteBoot, plan.JoinSlice, plan.LeaveSlice, plan.Record, plan.Adopt, plan.Forget, plan.ForgetExpired, plan.MoveSessions: // the state alone
	}
	return Change{}
}

func onSlice(a resource.Address, s resource.Slice) Change {
	return Change{Address: a.String(), Host: s.Host, GPU: s.GPU}
}

// was is the value of a setting before a change: as cosplay set it, or as the plan found it.
func (e Effect) was(op plan.SetGPU) string {
	prior, _ := e.Prior.GPU(op.Host, op.GPU)
	live, there := e.Live.GPU(op.Host, op.GPU)
	now, known := live.Now(op.Setting)
	switch {
	case op.Restore && prior.Applied.Has(op.Setting):
		return op.Setting.Text(prior.Applied.Value(op.Setting))
	case there && known:
		return op.Setting.Text(now)
	case prior.Applied.Over(prior.Baseline).Has(op.Setting):
		return op.Setting.Text(prior.Applied.Over(prior.Baseline).Value(op.Setting))
	}
	return ""
}

// body names the body that the state has for a session; "" without one.
func (e Effect) body(a resource.Address) string {
	s, _ := e.Prior.Session(a)
	if s.Body == nil {
		return ""
	}
	return bodyOf(s.Session, s.Body)
}

func bodyOf(s resource.Session, made *resource.Body) string {
	runtime := resource.RuntimeNamed(s.Runtime)
	words := runtime.Body + " " + s.ID
	if made != nil && made.ID != "" {
		words += " " + runtime.ShortID(made.ID)
	}
	if !s.Spec.IsZero() {
		words += " of " + s.Spec.Image
	}
	return words
}

func allSettings(s resource.Settings) string {
	var all []string
	for setting, value := range s.All() {
		all = append(all, setting.String()+" "+setting.Text(value))
	}
	return strings.Join(all, ", ")
}
