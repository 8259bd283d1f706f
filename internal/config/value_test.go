package config

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// No file can produce an unknown value yet, so the test inserts one.
func TestUnknownValuesAreRefused(t *testing.T) {
	read := map[string]func(value) bool{
		"text":     func(v value) bool { _, ok := v.text(); return ok },
		"word":     func(v value) bool { _, ok := v.word(); return ok },
		"flag":     func(v value) bool { _, ok := v.flag(); return ok },
		"whole":    func(v value) bool { _, ok := v.whole(0, 1, "a number"); return ok },
		"share":    func(v value) bool { _, ok := v.share(); return ok },
		"elements": func(v value) bool { _, ok := v.elements("[]"); return ok },
		"pairs":    func(v value) bool { _, ok := v.pairs("{}"); return ok },
		"size":     func(v value) bool { _, ok := v.size(1); return ok },
		"key":      func(v value) bool { _, ok := v.publicKey(); return ok },
		"port": func(v value) bool {
			var s Session
			sshPort(&s, v)
			return s.Spec.SSH.Port != 0
		},
		"selector": func(v value) bool { _, ok := v.selector(); return ok },
		"path":     func(v value) bool { _, ok := v.path(); return ok },
	}
	at := hcl.Range{Filename: "a.hcl", Start: hcl.InitialPos, End: hcl.InitialPos}
	for name, read := range read {
		for _, unknown := range []cty.Value{cty.DynamicVal, cty.UnknownVal(cty.String), cty.UnknownVal(cty.Map(cty.String))} {
			l := newLoader(Options{Dir: "/project"})
			v := value{Value: unknown, l: l, attribute: attribute{path: "target", whole: at}, expr: hcl.StaticExpr(unknown, at)}
			if read(v) {
				t.Errorf("%s took %#v", name, unknown)
			}
			if len(l.diags) != 1 || !strings.Contains(l.diags[0].Summary, "not known") {
				t.Errorf("%s said of %#v: %v", name, unknown, l.diags)
			}
		}
	}
}

func TestHomeIsNeeded(t *testing.T) {
	l := newLoader(Options{Dir: "/project"})
	typed := cty.StringVal("~/exp")
	v := value{Value: typed, l: l, attribute: attribute{path: "workspace"}, expr: hcl.StaticExpr(typed, hcl.Range{})}
	if dir, ok := v.path(); ok {
		t.Errorf("without a home, ~/exp is %q", dir)
	}
}
