package selftest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/projecttest"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// TestMissingKeys: doctor reports each file of keys that cannot be read, always in the
// same order.
func TestMissingKeys(t *testing.T) {
	files := []string{"/nowhere/a.pub", "/nowhere/b.pub", "/nowhere/c.pub", "/nowhere/d.pub", "/nowhere/e.pub"}
	p := projecttest.Open(t, projecttest.New(t, `
host "lab" { simulate = "1 x h200" }
session "worker" {
  target = "2060"
  ssh {
    authorized_keys = ["`+strings.Join(files, `", "`)+`"]
  }
}
`))
	var c checkup
	c.login(p, "lab")
	var reported []string
	for _, f := range c.found {
		if f.Thing == "ssh keys" && f.Grade == Missing {
			reported = append(reported, strings.TrimSuffix(strings.Fields(f.Found)[1], ":")) // open PATH: no such file
		}
	}
	if !slices.Equal(reported, files) {
		t.Errorf("reported: %v", reported)
	}
}

// withoutIsolation is an engine that cosplay uses without a part of its isolation.
type withoutIsolation struct{}

func (withoutIsolation) Reaches() error { return nil }
func (withoutIsolation) Inspect(context.Context) (resource.Engine, error) {
	return resource.Engine{Name: "Docker 20.10.24", Lifted: []string{"sessions run without userns-remap"}}, nil
}

func TestLiftedIsolation(t *testing.T) {
	p := projecttest.Open(t, projecttest.New(t, `host "lab" { simulate = "1 x h200" }`))
	var c checkup
	c.engine(context.Background(), p, "lab", "Docker", withoutIsolation{})
	if !slices.ContainsFunc(c.found, func(f public.Finding) bool {
		return f.Thing == "isolation" && f.Grade == Notice && strings.Contains(f.Found, "userns-remap")
	}) {
		t.Errorf("reported: %+v", c.found)
	}
}
