package config_test

import (
	"testing"

	"cosplay/internal/config"
)

// FuzzLoad feeds Load any two files: it must neither panic nor give an Intent
// that breaks its promises, and each of its complaints must be complete.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/wrong/*.hcl", "testdata/right/*.hcl", "../../examples/*.hcl"} {
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
	})
}

// checkIntent makes sure of what Load promises about a valid configuration.
func checkIntent(t *testing.T, intent *config.Intent) {
	hosts, names := map[string]bool{}, map[string]bool{}
	for _, h := range intent.Hosts {
		hosts[h.Name] = true
	}
	for i, s := range intent.Sessions {
		switch {
		case !hosts[s.Host]:
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
		}
		names[s.Address.Short()] = true
	}
}
