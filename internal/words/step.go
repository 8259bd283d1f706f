package words

import (
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// Step says what a step does, and to what.
func Step(s plan.Step, live resource.Live) string {
	switch op := s.Do.Op.(type) {
	case plan.TakeGPU:
		return GPU(live, op.Host, op.GPU) + ": " + taking(op)
	case plan.HoldGPU:
		return GPU(live, op.Host, op.GPU) + ": record the settings that it has already"
	case plan.DoubtClock:
		return GPU(live, op.Host, op.GPU) + ": record that its clock lock is lost"
	case plan.NoteBoot:
		return op.Host + ": record this boot"
	case plan.SetGPU:
		return GPU(live, op.Host, op.GPU) + ": " + setting(op)
	case plan.RunMPS:
		return GPU(live, op.Host, op.GPU) + ": MPS control daemon" + ofSlice(op.MPS)
	case plan.StopMPS:
		return GPU(live, op.Host, op.GPU) + ": end its MPS control daemon" + ofSlice(op.MPS)
	case plan.LeaveGPU:
		return GPU(live, op.Host, op.GPU) + ": announce that it is given back"
	case plan.ReleaseGPU:
		return GPU(live, op.Host, op.GPU) + ": " + releasing(op)
	case plan.EnsureImage:
		return image(op, live)
	case plan.MoveSessions:
		return "state: record the new addresses"
	case plan.Unprepare:
		if op.Leftover {
			return resource.BodyName(op.ID) + ": remove what an interrupted run has left of it"
		}
		return op.Address.String() + ": remove its " + resource.RuntimeNamed(op.Runtime).Body
	case plan.CreateSlice:
		return op.Session.Address.String() + ": slice " + op.Session.Slice.Place().String()
	case plan.DestroySlice:
		return op.Address.String() + ": destroy slice " + op.Slice.Place().String()
	case plan.JoinSlice:
		return op.Session.Address.String() + ": share the slice of " + op.With.String()
	case plan.LeaveSlice:
		return op.Address.String() + ": leave its shared slice"
	case plan.Prepare:
		return op.Session.Address.String() + ": " + preparing(op)
	case plan.StopSession:
		return op.Address.String() + ": stop its " + resource.RuntimeNamed(op.Runtime).Body
	case plan.StartSession:
		return op.Address.String() + ": start its " + resource.RuntimeNamed(op.Runtime).Body
	case plan.Record:
		if op.Refit {
			return op.Session.Address.String() + ": record its new fit"
		}
		return op.Session.Address.String() + ": record what its block says now"
	case plan.Adopt:
		return op.Session.Address.String() + ": add it to the state"
	case plan.EndSession:
		return op.Expired.Address.String() + ": end its programs, since it has expired"
	case plan.ForgetExpired:
		return op.Address.String() + ": forget that it has expired"
	case plan.Forget:
		return op.Address.String() + ": forget"
	}
	return s.ID
}

func ofSlice(m resource.MPS) string {
	if name := diff.DaemonName(m); name != "" {
		return " of " + name
	}
	return ""
}

// Failure says which step failed, and why.
func Failure(s plan.Step, err error, live resource.Live) string {
	return Step(s, live) + ": " + err.Error()
}

func taking(op plan.TakeGPU) string {
	switch {
	case op.For != "" && op.Whole:
		return "record it as that of " + op.For
	case op.For != "":
		return "record slice " + op.Slices[0].Slice.String() + " as that of " + op.For
	case op.FromState:
		return "record its holder"
	case len(op.Others) > 0:
		return "join the project that holds it"
	}
	return "record its baseline"
}

func setting(op plan.SetGPU) string {
	name := op.Setting.Words()
	switch {
	case op.Restore && op.Setting == resource.SMClock && op.Value == 0:
		return name + " unlocked again"
	case op.Restore:
		return name + " back to " + op.Setting.Text(op.Value)
	}
	return name + " " + op.Setting.Text(op.Value)
}

func releasing(op plan.ReleaseGPU) string {
	switch {
	case op.Abandon:
		return "released"
	case op.AsItIs:
		return "left to the other project"
	}
	return "as it was found"
}

func image(op plan.EnsureImage, live resource.Live) string {
	name := "image " + op.Image + ": " + string(op.How)
	if len(live.Hosts) > 1 {
		return op.Host + " " + name
	}
	return name
}

func preparing(op plan.Prepare) string {
	body := resource.RuntimeNamed(op.Session.Runtime).Body
	switch op.How {
	case plan.Refit:
		return "bring its " + body + " up to date"
	case plan.Start:
		return "start its " + body
	}
	return body
}
