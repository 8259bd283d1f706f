package config

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// No file can produce an unknown value yet, so the test inserts one.
func TestUnknownValuesAreRefused(t *testing.T) {
	read := map[string]func(*loader, value) bool{
		"text":     func(l *loader, v value) bool { _, ok := l.text(v); return ok },
		"word":     func(l *loader, v value) bool { _, ok := l.word(v); return ok },
		"flag":     func(l *loader, v value) bool { _, ok := l.flag(v); return ok },
		"whole":    func(l *loader, v value) bool { _, ok := l.whole(v, 0, 1, "a number"); return ok },
		"share":    func(l *loader, v value) bool { _, ok := l.share(v); return ok },
		"elements": func(l *loader, v value) bool { _, ok := l.elements(v, "[]"); return ok },
		"pairs":    func(l *loader, v value) bool { _, ok := l.pairs(v, "{}"); return ok },
		"size":     func(l *loader, v value) bool { _, ok := l.size(v, 1); return ok },
		"key":      func(l *loader, v value) bool { _, ok := l.publicKey(v); return ok },
		"port": func(l *loader, v value) bool {
			var s Session
			l.sshPort(&s, v)
			return s.Spec.SSH.Port != 0
		},
		"selector": func(l *loader, v value) bool { _, ok := l.selector(v); return ok },
		"path":     func(l *loader, v value) bool { _, ok := l.path(v); return ok },
	}
	at := hcl.Range{Filename: "a.hcl", Start: hcl.InitialPos, End: hcl.InitialPos}
	for name, read := range read {
		for _, unknown := range []cty.Value{cty.DynamicVal, cty.UnknownVal(cty.String), cty.UnknownVal(cty.Map(cty.String))} {
			l := newLoader(Options{Dir: "/project"})
			v := value{Value: unknown, attribute: attribute{path: "target", whole: at}, expr: hcl.StaticExpr(unknown, at)}
			if read(l, v) {
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
	v := value{Value: typed, attribute: attribute{path: "workspace"}, expr: hcl.StaticExpr(typed, hcl.Range{})}
	if dir, ok := l.path(v); ok {
		t.Errorf("without a home, ~/exp is %q", dir)
	}
}
