package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// made is a running session in a container that listens on a port.
func made(s config.Session, port int) config.LiveSession {
	spec := s.Spec
	spec.User.Name = "ada"
	return config.LiveSession{
		Session: resource.Session{Address: s.Address, Target: s.Target, Runtime: "docker", Spec: spec,
			Slice: resource.Slice{Host: "local", GPU: "GPU-1", Profile: "1g.18gb", Start: 3},
			Fit:   resource.Fit{Got: resource.Envelope{FP32TFLOPS: 6.8, BandwidthGBs: 600}, Want: s.Target.Envelope()}},
		SliceUUID: "MIG-1", State: resource.Running, SSHPort: port,
	}
}

func lives(of map[resource.Address]config.LiveSession) config.Lives {
	return func(a resource.Address) (config.LiveSession, bool) {
		s, known := of[a]
		return s, known
	}
}

func outputs(t *testing.T, intent *config.Intent, live map[resource.Address]config.LiveSession) map[string]string {
	t.Helper()
	all, diags := intent.EvalOutputs(lives(live))
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	got := map[string]string{}
	for _, o := range all {
		got[o.Name] = "(unknown)"
		if o.Value.IsWhollyKnown() {
			text, err := json.Marshal(ctyjson.SimpleJSONValue{Value: o.Value})
			if err != nil {
				t.Fatal(err)
			}
			got[o.Name] = string(text)
		}
	}
	return got
}

func TestOutputs(t *testing.T) {
	intent, diags, _ := loadCase(t, "testdata/right/outputs.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	live := map[resource.Address]config.LiveSession{}
	if d := cmp.Diff(map[string]string{"ssh": "(unknown)", "gpus": "(unknown)", "first": "(unknown)", "token": `"x-hunter2"`, "mixed": "(unknown)"}, outputs(t, intent, live)); d != "" {
		t.Errorf("before anything is made: want -, got +:\n%s", d)
	}
	if warnings := intent.EvalChecks(lives(live)); len(warnings) != 1 || !strings.Contains(warnings[0].Detail, "not shown") {
		t.Errorf("before anything is made: %v, want a warning of the token alone", warnings)
	}
	for i, s := range intent.Sessions {
		live[s.Address] = made(s, 2200+i)
	}
	want := map[string]string{
		"ssh":   `["ssh -p 2203 ada@127.0.0.1","ssh -p 2204 ada@127.0.0.1"]`,
		"gpus":  `{"a":"GPU-1/1g.18gb","b":"GPU-1/1g.18gb"}`,
		"first": "0.0528424813",
		"token": `"x-hunter2"`,
		"mixed": `["single",0,null,[2203,2204]]`,
	}
	got := outputs(t, intent, live)
	got["first"] = got["first"][:min(12, len(got["first"]))]
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
	if intent.State != "/project/fleet.state.json" {
		t.Errorf("the state is at %q", intent.State)
	}
	if all, _ := intent.EvalOutputs(lives(live)); !all[4].Sensitive || all[0].Sensitive || all[3].Description != "how to log in" {
		t.Errorf("outputs are %+v", all)
	}
}

func TestChecks(t *testing.T) {
	src := "session \"a\" {\n  target = \"2060\"\n}\ncheck \"fast\" {\n  condition     = session.a.fit.fp32_error < 0.1\n  error_message = \"${session.a.name} is ${session.a.state}\"\n}\n"
	intent, diags := load(t, map[string]string{"a.hcl": src})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	live := map[resource.Address]config.LiveSession{}
	if warnings := intent.EvalChecks(lives(live)); len(warnings) > 0 {
		t.Errorf("a value that is not known yet is reported as wrong: %v", warnings)
	}
	s := made(intent.Sessions[0], 0)
	live[s.Address] = s
	if warnings := intent.EvalChecks(lives(live)); len(warnings) > 0 {
		t.Errorf("a correct value is reported as wrong: %v", warnings)
	}
	s.Fit.Got.FP32TFLOPS = 3
	live[s.Address] = s
	for range 2 { // evaluating twice gives the same result
		warnings := intent.EvalChecks(lives(live))
		if len(warnings) != 1 || warnings[0].Severity != hcl.DiagWarning || warnings[0].Summary != `check "fast" failed` || warnings[0].Detail != "a is running." {
			t.Fatalf("got %v", warnings)
		}
		if at := string(warnings[0].Subject.SliceBytes([]byte(src))); at != "session.a.fit.fp32_error < 0.1" {
			t.Errorf("it points at %s", at)
		}
	}
}

// Each attribute has a value of its type, whether or not it is known, in a container or not, in a slice or on a whole
// GPU.
func TestLiveAttributes(t *testing.T) {
	var mentions []string
	for _, a := range config.LiveAttributes() {
		mentions = append(mentions, "session.a."+a.Name)
	}
	intent, diags := load(t, map[string]string{"a.hcl": "session \"a\" {\n  target = \"2060\"\n}\noutput \"all\" {\n  value = [" + strings.Join(mentions, ", ") + "]\n}\n"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	boxed := made(intent.Sessions[0], 2200)
	index := 0
	boxed.GPUIndex = &index
	bare := boxed
	bare.Spec, bare.Slice.Profile = resource.ContainerSpec{}, ""
	for _, s := range []config.LiveSession{{}, boxed, bare} {
		all, diags := intent.EvalOutputs(lives(map[resource.Address]config.LiveSession{intent.Sessions[0].Address: s}))
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for i, a := range config.LiveAttributes() {
			v := all[0].Value.Index(cty.NumberIntVal(int64(i)))
			if want := map[string]cty.Type{"text": cty.String, "number": cty.Number}[a.Type]; v.Type() != want || a.Description == "" {
				t.Errorf("%s is %#v, and has the type %s: %q", a.Name, v, a.Type, a.Description)
			}
		}
	}
}

// TestCostOfOutputs compares the memory that fleets allocate of which each session has an output and a check: a fleet
// of four times as many sessions takes about four times as much, and not sixteen times.
func TestCostOfOutputs(t *testing.T) {
	allocated := func(n int) uint64 {
		var src bytes.Buffer
		for i := range n {
			fmt.Fprintf(&src, "session \"w%[1]d\" {\n  target = \"2060\"\n}\noutput \"o%[1]d\" {\n  value = session.w%[1]d.name\n}\n"+
				"check \"c%[1]d\" {\n  condition     = session.w%[1]d.fit.fp32_error < 0.1\n  error_message = \"slow\"\n}\n", i)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		intent, diags := config.Load(map[string][]byte{"fleet.hcl": src.Bytes()}, options())
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		live := map[resource.Address]config.LiveSession{}
		for _, s := range intent.Sessions {
			live[s.Address] = made(s, 0)
		}
		all, diags := intent.EvalOutputs(lives(live))
		if diags = append(diags, intent.EvalChecks(lives(live))...); len(all) != n || len(diags) > 0 {
			t.Fatal(len(all), diags)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(10)
	if few, many := allocated(200), allocated(800); many > 6*few {
		t.Errorf("200 sessions with an output each allocate %d bytes, 800 of them %d", few, many)
	}
}

// TestOutputsOfAll evaluates outputs about all sessions of the largest block, before and after they exist: the limits of
// an evaluation have room for it.
func TestOutputsOfAll(t *testing.T) {
	const n = 10_000
	src := fmt.Sprintf("session \"w\" {\n  count  = %d\n  target = \"2060\"\n}\n", n)
	values := map[string]string{"count": "length(session.w)", "names": "session.w[*].name", "errors": "{ for s in session.w : s.address => s.fit.fp32_error if s.vram_mib > 1 }",
		"logins": `formatlist("ssh -p %d %s # %-20s", session.w[*].gpus, session.w[*].host, session.w[*].name)`, "most": "max([for s in session.w : s.gpus]...)", "all": "session.w"}
	for name, value := range values {
		src += fmt.Sprintf("output %q {\n  value = %s\n}\n", name, value)
	}
	intent, diags := config.Load(map[string][]byte{"fleet.hcl": []byte(src)}, options())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	all, diags := intent.EvalOutputs(func(a resource.Address) (config.LiveSession, bool) {
		return config.LiveSession{Session: resource.Session{Address: a, Runtime: "process", Target: resource.Target{MemoryMiB: 6144}}, State: resource.Running}, true
	})
	if len(diags) > 0 || len(all) != len(values) {
		t.Fatal(diags)
	}
	for _, o := range all {
		switch {
		case !o.Value.IsKnown():
			t.Errorf("%s is unknown", o.Name)
		case o.Value.CanIterateElements() && o.Value.LengthInt() != n:
			t.Errorf("%s has %d elements", o.Name, o.Value.LengthInt())
		case o.Name == "count" && !o.Value.RawEquals(cty.NumberIntVal(n)):
			t.Errorf("%#v sessions", o.Value)
		}
	}
}
