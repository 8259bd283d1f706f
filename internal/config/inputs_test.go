package config_test

import (
	"strings"
	"testing"

	"cosplay/internal/config"
)

// If an input matches no variable, the message suggests the one that the user may have meant.
func TestValuesForNothing(t *testing.T) {
	const src = "variable \"a\" {\n  default = 1\n}\nvariable \"image\" {}\nsession \"s\" {\n  target = \"2060\"\n}\n"
	for _, c := range []struct {
		in   config.Input
		want string
	}{
		{config.Input{From: "--var aa", Name: "aa", Text: "1"}, `Did you mean "a"?`},
		{config.Input{From: "--var imgae", Name: "imgae", Text: "1"}, `Did you mean "image"?`},
		{config.Input{From: "--var workers", Name: "workers", Text: "1"}, "Declared: a and image."},
		{config.Input{From: "x.hclvars", File: []byte("aa = 1\n")}, `Did you mean "a"?`},
		{config.Input{From: "COSPLAY_VAR_imge", Name: "imge", Text: "1", MayBeUnknown: true}, "COSPLAY_VAR_imge is in the environment"},
	} {
		o := options()
		o.Inputs = []config.Input{c.in}
		_, diags := config.Load(map[string][]byte{"a.hcl": []byte(src)}, o)
		if reported := strings.Join(allWords(diags), "\n"); !strings.Contains(reported, c.want) {
			t.Errorf("%s: nothing like %q in: %s", c.in.From, c.want, reported)
		}
	}
}
