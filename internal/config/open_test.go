package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
)

// open are options that permit variables without a value.
func open() config.Options {
	o := options()
	o.MayMiss, o.HostsMayMiss = true, true
	return o
}

var defaultLine = regexp.MustCompile(`(?m)^  default +=.*(\n    .*|\n  [\])}].*)*$`)

// A configuration that is valid with values is valid without them.
func TestRightWithoutValues(t *testing.T) {
	missed := 0
	for _, path := range append(glob(t, "testdata/right/*.hcl"), glob(t, "../../examples/*.hcl")...) {
		src := read(t, path)
		if filepath.Base(path) == "variables.hcl" {
			src = defaultLine.ReplaceAll(src, nil)
		}
		intent, diags := config.Load(map[string][]byte{"a.hcl": src}, open())
		if len(diags) > 0 {
			t.Errorf("%s:\n%s", path, describe(t, intent.Files, diags))
		}
		missed += len(intent.Missed)
	}
	if missed < 3 {
		t.Errorf("only %d variables were without a value", missed)
	}
}

// If no variable lacks a value, the permission makes no difference.
func TestWrongIsWrongWhereValuesMayMiss(t *testing.T) {
	for _, path := range glob(t, "testdata/wrong/*.hcl") {
		_, want, _ := loadCase(t, path)
		if slices.ContainsFunc(want, func(d *hcl.Diagnostic) bool { return strings.Contains(d.Summary, "has no value") }) || strings.Contains(path, "open-") {
			continue
		}
		o := open()
		values := strings.TrimSuffix(path, ".hcl") + ".hclvars"
		if data, err := os.ReadFile(values); err == nil {
			o.Inputs = []config.Input{{From: filepath.Base(values), File: data}}
		}
		_, got := config.Load(map[string][]byte{filepath.Base(path): read(t, path)}, o)
		if d := cmp.Diff(allWords(want), allWords(got)); d != "" {
			t.Errorf("%s: values have to be there -, may miss +:\n%s", path, d)
		}
	}
}

// Each session and host lists the attributes that depend on a variable without a value.
func TestWhatIsOpenIsSaid(t *testing.T) {
	src := `
variable "n" { type = number }
variable "spec" { type = string }
variable "image" { type = string }
host "lab" { simulate = var.spec }
session "many" {
  count  = var.n
  target = "2060"
}
session "one" {
  target = "2060"
  image  = try(var.image, "x")
}
`
	intent, diags := config.Load(map[string][]byte{"a.hcl": []byte(src)}, open())
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	got := map[string][]string{"lab": intent.Hosts[0].Open, "missed": intent.Missed}
	for _, s := range intent.Sessions {
		got[s.Address.Name] = s.Open
	}
	want := map[string][]string{"lab": {"simulate"}, "missed": {"image", "n", "spec"}, "many": {"count"}, "one": {"image"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
	o := open()
	o.HostsMayMiss = false
	if _, diags := config.Load(map[string][]byte{"a.hcl": []byte(src)}, o); !diags.HasErrors() {
		t.Error("a host may do without what it needs")
	}
}

func allWords(diags hcl.Diagnostics) []string {
	var all []string
	for _, d := range diags {
		all = append(all, d.Subject.String()+" "+d.Summary+": "+d.Detail)
	}
	return all
}

// An expression that could be valid with some value is not reported as wrong.
func TestWhatMayBeRightIsNotTold(t *testing.T) {
	src := `
variable "n" {
  type = number
  validation {
    condition     = var.n > 3
    error_message = "too few"
  }
}
variable "a" { type = string }
variable "b" { type = string }
host "four" {}
host "one" { nvml = var.a }
host "two" { nvml = var.b }
host "three" { nvml = "/opt/libnvidia-ml.so.1" }
session "many" {
  count  = var.n
  host   = "one"
  target = "2060"
}
session "other" {
  count  = var.n
  host   = var.n > 4 ? "two" : null
  target = try(var.a, var.b)
  gpu    = var.n
  image  = var.a
  sudo   = true
  ssh {
    enabled = var.n > 3
    bind    = "0.0.0.0"
  }
  limits {
    memory = var.b
    cpus   = var.n
  }
  fit { tolerance = "${var.n}%" }
  lifecycle { replace_triggered_by = [session.many[7], var.b] }
}
moved {
  from = session.many[0]
  to   = session.one
}
session "one" {
  host   = "three"
  target = "2060"
}
import {
  to = session.many[5]
  id = var.a
}
import {
  to = session.many[6]
  id = var.b
}
output "names" { value = [for s in session.many : s.name if s.fit.fp32_error < var.n] }
check "c" {
  condition     = length(session.many) > var.n
  error_message = "it is ${var.n}"
}
`
	intent, diags := config.Load(map[string][]byte{"a.hcl": []byte(src)}, open())
	if len(diags) > 0 {
		t.Errorf("%s", describe(t, intent.Files, diags))
	}
	if len(intent.Imports) > 0 {
		t.Errorf("an import of what is not known: %v", intent.Imports)
	}
}
