package config_test

import (
	"fmt"
	"net/netip"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// FuzzLoad passes two arbitrary files to Load. Load must not panic, must not return an Intent that breaks its
// promises, and must make each diagnostic complete.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/wrong/*.hcl", "testdata/right/*.hcl", "testdata/warned/*.hcl", "../../examples/*.hcl"} {
		for _, path := range glob(f, pattern) {
			f.Add(read(f, path), []byte("host \"lab\" {\n}\n"))
		}
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		files := map[string][]byte{"one.hcl": one, "two.hcl": two}
		intent, diags := config.Load(files, options())
		checkComplete(t, diags, files)
		if diags.HasErrors() {
			if intent.Hosts != nil || intent.Sessions != nil {
				t.Error("a wrong configuration still gave hosts or sessions")
			}
			return
		}
		checkIntent(t, intent)
		o := options()
		o.MayMiss, o.HostsMayMiss = true, true
		if _, diags := config.Load(files, o); diags.HasErrors() {
			t.Errorf("valid with all values, and not where some may miss: %v", diags)
		}
	})
}

// The HCL library's parser recurses for each bracket, and Go cannot recover from a full stack.
func TestBracketsWithoutEnd(t *testing.T) {
	for _, bracket := range []string{"(", "[", "{ a = "} {
		src := "locals {\n  a = " + strings.Repeat(bracket, 100_000)
		_, diags := load(t, map[string]string{"a.hcl": src})
		if len(diags) != 1 || !strings.Contains(diags[0].Summary, "nested too deeply") {
			t.Errorf("%q: %v", bracket, diags)
		}
		if _, _, diags := config.Format("a.hcl", []byte(src)); !diags.HasErrors() {
			t.Errorf("%q was laid out", bracket)
		}
		intent, _ := load(t, map[string]string{"a.hcl": "locals {\n  a = 1\n}\n"})
		if _, _, diags := intent.Eval(src, nil); len(diags) != 1 || !strings.Contains(diags[0].Summary, "nested too deeply") {
			t.Errorf("%q in the console: %v", bracket, diags)
		}
	}
}

// A mistake in 10,000 instances must be explained once: searching suggestions for each of them took minutes.
func TestOneMistakeOfManyInstances(t *testing.T) {
	src := "locals {\n  m = { for i in setproduct(range(100), range(100)) : \"k${i[0]}-${i[1]}\" => i }\n}\n" +
		"session \"w\" {\n  count  = 10000\n  target = local.m[\"x${count.index}\"]\n}\n"
	began := time.Now()
	_, diags := load(t, map[string]string{"a.hcl": src})
	if took := time.Since(began); len(diags) != 1 || took > 20*time.Second {
		t.Errorf("%d mistakes, in %s", len(diags), took)
	}
}

// A text that is made of a reference counts each time.
func TestTextsMadeOfReferences(t *testing.T) {
	src := "locals {\n  big = format(\"%999s%999s%999s%999s\", 1, 2, 3, 4)\n  n = length([for i in range(1000) : [for j in range(20) : \"${local.big}x\"]])\n}\n"
	_, diags := load(t, map[string]string{"a.hcl": src})
	if len(diags) != 1 || !strings.Contains(diags[0].Detail, "The total of all texts and lists exceeds") {
		t.Error(diags)
	}
}

// checkIntent checks what Load promises about a valid configuration.
func checkIntent(t *testing.T, intent *config.Intent) {
	hosts, names, ports := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, h := range intent.Hosts {
		hosts[h.Name] = h.Runtime == config.RuntimeAuto || resource.RuntimeNamed(h.Runtime).Uses("ssh")
	}
	for i, s := range intent.Sessions {
		boxed, there := hosts[s.Host]
		if there = there || s.Host == "" && len(s.Hosts) > 0; s.Hosts != nil { // of which cosplay chooses one
			for _, host := range s.Hosts {
				_, is := hosts[host]
				there = there && is
			}
		}
		port := fmt.Sprintf("%s:%d", s.Host, s.Spec.SSH.Port)
		switch {
		case !there:
			t.Errorf("%s is on a host %q that is not there", s.Address, s.Host)
		case names[s.Address.Short()]:
			t.Errorf("%s shares its container's name with another", s.Address)
		case s.Target.Key == "":
			t.Errorf("%s has no target", s.Address)
		case s.Workspace == "" || s.Workspace[0] != '/':
			t.Errorf("%s has the workspace %q", s.Address, s.Workspace)
		case s.Fit.Tolerance < 0 || s.Fit.MaxError != nil && *s.Fit.MaxError < 0:
			t.Errorf("%s has a fit below zero: %+v", s.Address, s.Fit)
		case i > 0 && intent.Sessions[i-1].Address.Compare(s.Address) >= 0:
			t.Errorf("%s is out of order", s.Address)
		case boxed && s.Spec.SSH.Enabled && s.Spec.SSH.Port != 0 && ports[port]:
			t.Errorf("%s shares the port %s with another", s.Address, port)
		}
		names[s.Address.Short()] = true
		ports[port] = ports[port] || s.Spec.SSH.Enabled
		checkBox(t, s)
	}
}

// checkBox checks what Load promises about a container.
func checkBox(t *testing.T, s config.Session) {
	bind, err := netip.ParseAddr(s.Spec.SSH.Bind)
	limits := s.Spec.Limits
	switch {
	case s.Spec.Image == "" || s.Spec.Pull == "" || s.Spec.Restart == "":
		t.Errorf("%s lacks an image or a policy: %+v", s.Address, s.Spec)
	case err != nil || s.Spec.SSH.Port < 0 || s.Spec.SSH.Port > 65_535:
		t.Errorf("%s cannot listen there: %+v", s.Address, s.Spec.SSH)
	case s.Spec.Sudo && s.Spec.SSH.Enabled && !bind.IsLoopback():
		t.Errorf("%s has sudo and listens at %s", s.Address, bind)
	case limits.CPUs < 0 || limits.MemoryMiB < 0 || limits.ShmMiB < 0 || limits.PIDs < 0:
		t.Errorf("%s has limits below zero: %+v", s.Address, limits)
	}
	targets := map[string]bool{"/": true, "/workspace": true, "/run/cosplay": true}
	for _, v := range s.Spec.Volumes {
		if v.Source == "" || !path.IsAbs(v.Target) || targets[v.Target] {
			t.Errorf("%s has the volume %+v", s.Address, v)
		}
		targets[v.Target] = true
	}
	for _, key := range s.Keys {
		if strings.ContainsAny(key, "\r\n\x00") || !path.IsAbs(key) && !strings.Contains(key, " ") {
			t.Errorf("%s has the key %q", s.Address, key)
		}
	}
}

// FuzzValues passes a file in either syntax and values for its variables to Load, and evaluates the outputs and
// checks that result.
func FuzzValues(f *testing.F) {
	for _, pattern := range []string{"testdata/wrong/*.hcl", "testdata/right/*.hcl", "testdata/*/*.hcl.json"} {
		for _, path := range glob(f, pattern) {
			values, _ := os.ReadFile(strings.TrimSuffix(path, ".hcl") + ".hclvars")
			f.Add(read(f, path), values, "image", "[1, {}]")
		}
	}
	f.Fuzz(func(t *testing.T, src, values []byte, name, typed string) {
		o := options()
		o.Inputs = []config.Input{{From: "a.hclvars", File: values}, {From: "--var", Name: name, Text: typed, MayBeUnknown: name == ""}}
		sources := map[string][]byte{"standard input": src}
		intent, diags := config.Load(sources, o)
		sources["a.hclvars"] = values
		for _, d := range diags {
			if d.Subject.Filename == "--var" {
				sources["--var"] = intent.Files["--var"].Bytes
			}
		}
		checkComplete(t, diags, sources)
		if diags.HasErrors() {
			return
		}
		checkIntent(t, intent)
		live := map[resource.Address]config.LiveSession{}
		for range 2 {
			if _, diags := intent.EvalOutputs(lives(live)); len(live) == 0 && diags.HasErrors() {
				t.Errorf("an output that validates cannot be evaluated: %v", diags)
			}
			for _, d := range intent.EvalChecks(lives(live)) {
				if d.Severity != hcl.DiagWarning {
					t.Errorf("a check is more than a warning: %v", d)
				}
			}
			for i, s := range intent.Sessions {
				live[s.Address] = made(s, i)
			}
		}
	})
}
