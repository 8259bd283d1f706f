package render

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/diff"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// JSON writes a view, or a value of package public, the same way for the same value.
func JSON(w io.Writer, v any) error { return encode(w, v, "  ") }

// JSONLine does the same on one line, for commands that write one after another.
func JSONLine(w io.Writer, v any) error { return encode(w, v, "") }

func encode(w io.Writer, v any, indent string) error {
	if view, is := v.(View); is {
		v = view.data()
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(terminal.Raw(w), terminal.JSON(text.String()))
	return err
}

// list returns an empty list for nil, so that JSON has [] and not null.
func list[T any](all []T) []T { return append([]T{}, all...) }

// figure rounds a ratio or an error to six decimals; nil for one that does not exist.
func figure(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return new(math.Round(x*1e6) / 1e6)
}

// errorText is "" for no error.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// watts turns mW into W.
func watts(mw int) float64 { return float64(mw) / 1000 }

// The functions below convert values of cosplay to those of --json. Types with the same fields are converted as a
// whole, so that a new field does not compile until it is decided whether it becomes public.

// each converts a list. The result is never nil: JSON has [] for an empty list, and not null.
func each[A, B any](all []A, one func(A) B) []B {
	out := make([]B, len(all))
	for i := range all {
		out[i] = one(all[i])
	}
	return out
}

func addresses(all []resource.Address) []string { return each(all, resource.Address.String) }

// address is null for no session.
func address(a *resource.Address) *string { return some(a, resource.Address.String) }

func sessionOf(s resource.Session) public.Session {
	return public.Session{
		Address: s.Address.String(), ID: s.ID, Target: public.Target(s.Target), Slice: sliceJSON(s.Slice), More: each(s.More, sliceJSON),
		Fit: public.Fit{Profile: s.Fit.Profile, ClockMHz: s.Fit.ClockMHz, Got: public.Envelope(s.Fit.Got), Want: public.Envelope(s.Fit.Want)},
		Request: public.Request{Host: s.Request.Host, GPU: s.Request.GPU, Target: s.Request.Target, Fit: fitOptionsOf(s.Request.Fit),
			Sharing: string(s.Request.Sharing), Fraction: s.Request.Fraction, GPUs: s.Request.GPUs},
		Runtime: s.Runtime, Device: s.Device(), Command: s.Command, Workspace: s.Workspace, Env: s.Env, Strict: s.Strict, Capability: s.ReportedCapability(),
		Compute: s.Compute, Spec: specOf(s.Spec), Sealed: s.Sealed,
		Lifetime:  public.Lifetime{TTL: int(s.Lifetime.TTL), IdleTimeout: int(s.Lifetime.IdleTimeout), StopAt: momentOf(s.Lifetime.StopAt)},
		DependsOn: s.DependsOn, PreventDestroy: s.PreventDestroy, Trigger: s.Trigger,
	}
}

func expiredOf(e resource.Expired) public.Expired {
	return public.Expired{Session: e.Address.String(), At: e.At.String(), Why: e.Why, ExtendedTo: momentOf(e.ExtendedTo)}
}

// momentOf is "" for none.
func momentOf(m resource.Moment) string {
	if m == 0 {
		return ""
	}
	return m.String()
}

func fitOptionsOf(o resource.FitOptions) public.FitOptions {
	return public.FitOptions{Prefer: string(o.Prefer), Tolerance: o.Tolerance, MaxError: o.MaxError}
}

func specOf(c resource.ContainerSpec) public.ContainerSpec {
	return public.ContainerSpec{Name: c.Name, Image: c.Image, Pull: c.Pull, Entrypoint: c.Entrypoint, Volumes: each(c.Volumes, volumeOf), Ports: each(c.Ports, portOf), Network: c.Network, SSH: public.SSH(c.SSH), Limits: public.Limits(c.Limits),
		Sudo: c.Sudo, Restart: c.Restart, User: public.User(c.User)}
}

func portOf(p resource.Port) public.Port {
	return public.Port{Bind: p.Bind, Host: p.Host, Container: p.Container, Protocol: p.Protocol()}
}

func volumeOf(v resource.Volume) public.Volume { return public.Volume(v) }

func containerOf(c resource.Body) public.Container {
	return public.Container{ID: c.ID, Session: c.Session, Host: c.Host, Runtime: c.Runtime, State: c.State, Hash: c.Hash, SliceID: c.SliceID, Image: c.Image,
		SSHPort: c.SSHPort, Damaged: c.Damaged, Foreign: c.Foreign, Serial: c.Serial, Open: c.SecretsInEnv,
		Bounds: (*public.Bounds)(c.Bounds), Outdated: each(c.Outdated, outdatedOf)}
}

func outdatedOf(o resource.Outdated) public.Outdated { return public.Outdated(o) }

// some converts what there may be none of.
func some[A, B any](a *A, convert func(A) B) *B {
	if a == nil {
		return nil
	}
	return new(convert(*a))
}

func stateSessionOf(s resource.PriorSession) public.StateSession {
	return public.StateSession{Session: sessionOf(s.Session), Handle: (*public.Handle)(s.Handle), Container: some(s.Body, containerOf), Unfinished: s.Unfinished,
		UpAt: momentOf(s.UpAt), ExtendedTo: momentOf(s.ExtendedTo)}
}

func stateGPUOf(g resource.PriorGPU) public.StateGPU {
	return public.StateGPU{Host: g.Host, UUID: g.UUID, Baseline: settingsOf(g.Baseline), Applied: settingsOf(g.Applied),
		AskedPowerMW: g.AskedPowerMW, LockBefore: g.LockBefore, ClockUnsure: g.ClockUnsure, ClockRefutedMHz: g.ClockRefutedMHz, MPS: (*public.MPS)(g.MPS),
		SliceMPS: each(g.SliceMPS, func(m resource.MPS) public.MPS { return public.MPS(m) })}
}

// settingsOf has each setting under its key. One without a field of public.Settings is an error that no value has.
func settingsOf(all resource.Settings) (out public.Settings) {
	values := map[string]any{}
	for s, value := range all.All() {
		switch {
		case s.Mode():
			values[s.Key()] = value == resource.On
		case s.Names() != nil:
			values[s.Key()] = s.Text(value)
		default:
			values[s.Key()] = value
		}
	}
	text, err := json.Marshal(values)
	if err = errors.Join(err, jsonv2.Unmarshal(text, &out, jsonv2.RejectUnknownMembers(true))); err != nil {
		panic(err)
	}
	return out
}

func holderOf(h resource.Holder) public.Holder {
	return public.Holder{Lineage: h.Lineage, User: h.User, State: h.State, Since: h.Since, Slices: len(h.Slices)}
}

func sliceJSON(s resource.Slice) public.Slice {
	return public.Slice{Host: s.Host, GPU: s.GPU, Profile: s.Profile, Start: s.Start, Size: s.Size, Sharing: string(s.Sharing), Percent: s.Percent, Oversubscribed: s.Oversubscribed, ComputeStart: s.ComputeStart}
}

// valueOf is one side of a difference.
func valueOf(v diff.Value) public.Value {
	switch v := v.(type) {
	case diff.Slice:
		return sliceJSON(resource.Slice(v))
	case diff.Taken:
		return sliceJSON(resource.Slice(v))
	case diff.Volumes:
		if v == nil {
			return nil
		}
		return each(v, volumeOf)
	case diff.Ports:
		if v == nil {
			return nil
		}
		return each(v, portOf)
	case diff.Limits:
		return public.Limits(v)
	case diff.User:
		return public.User(v)
	case diff.MIG:
		return public.MIGMode(v)
	case diff.Moment:
		return resource.Moment(v).String()
	case diff.Clock:
		return public.ClockLock{MHz: v.MHz, As: string(v.As), Read: v.Read}
	case diff.MPS:
		return public.MPS(v)
	case diff.Unanswered:
		return public.Unusable(v)
	case diff.Text, diff.EnvValue, diff.Names, diff.Command, diff.Bool, diff.Switch, diff.Power, diff.Percent, diff.Port, diff.Count, diff.Restarts, diff.CPUs, diff.Memory,
		diff.GPU, diff.UUID, diff.ID, diff.Keys, diff.Damage, diff.Seconds, diff.Condition:
	}
	return v
}

// DiagnosticsJSON writes diagnostics as data, with the source that files hold.
func DiagnosticsJSON(w io.Writer, diags hcl.Diagnostics, files map[string]*hcl.File) error {
	errors := count(diags, func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagError })
	return JSON(w, public.Diagnostics{Format: public.V1, Valid: errors == 0, Errors: errors, Warnings: len(diags) - errors, Diagnostics: diagnosticsJSON(diags, files)})
}

func diagnosticsJSON(diags hcl.Diagnostics, files map[string]*hcl.File) []public.Diagnostic {
	return each(diags, func(d *hcl.Diagnostic) public.Diagnostic {
		severity := either(d.Severity == hcl.DiagWarning, "warning", "error")
		one := public.Diagnostic{Severity: severity, Summary: d.Summary, Detail: d.Detail}
		if r := d.Subject; placed(d) {
			one.Range = &public.Range{File: r.Filename, Start: public.Pos(r.Start), End: public.Pos(r.End)}
			one.Snippet = snippet(*r, files[r.Filename])
		}
		return one
	})
}

// snippet is the line that a range begins in.
func snippet(r hcl.Range, file *hcl.File) *public.Snippet {
	if file == nil || r.Start.Byte > len(file.Bytes) {
		return nil
	}
	start, end := lineAt(file.Bytes, r.Start.Byte)
	return &public.Snippet{Context: enclosing(file, r.Start.Byte), Code: string(file.Bytes[start:end]), Line: r.Start.Line,
		Start: r.Start.Byte - start, End: min(r.End.Byte, end) - start}
}
