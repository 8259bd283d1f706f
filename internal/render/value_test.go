package render

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// A value is shown so that it can be copied into a configuration.
func TestValueText(t *testing.T) {
	for src, want := range map[string]string{
		`null`:           `null`,
		`"a\nb ${"$"}{"`: `"a\nb $${"`,
		`[]`:             `[]`,
		`{}`:             `{}`,
		`["a", 1, null]`: `["a", 1, null]`,
		`{ a = 1, "b c" = [true], list = [] }`: `{
  a     = 1
  "b c" = [true]
  list  = []
}`,
		`{ a = 1, bcd = { e = 1, fgh = 2 }, ij = 3, klmno = 4 }`: `{
  a = 1
  bcd = {
    e   = 1
    fgh = 2
  }
  ij    = 3
  klmno = 4
}`,
		`["a", [{ b = 1 }], {}]`: `[
  "a",
  [
    {
      b = 1
    },
  ],
  {},
]`,
		`["aaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccc"]`: `[
  "aaaaaaaaaaaaaaaaaaaaaaaaa",
  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
  "cccccccccccccccccccccccc",
]`,
	} {
		v := evaluated(t, src)
		got := valueText(v)
		if got != want {
			t.Errorf("%s is shown as\n%s\nwant\n%s", src, got, want)
		}
		if written := "v = " + got + "\n"; string(hclwrite.Format([]byte(written))) != written {
			t.Errorf("fmt lays it out otherwise:\n%s", hclwrite.Format([]byte(written)))
		}
		if again := evaluated(t, got); !again.RawEquals(v) {
			t.Errorf("%s is another value when it is read again: %#v", got, again)
		}
	}
	if got := valueText(cty.SetVal([]cty.Value{cty.StringVal("b"), cty.StringVal("a")})); got != `["a", "b"]` {
		t.Error(got)
	}
}

func evaluated(t *testing.T, src string) cty.Value {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(src), "x", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", src, diags)
	}
	v, diags := expr.Value(nil)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", src, diags)
	}
	return v
}
