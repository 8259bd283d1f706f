package config_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// shown matches what a text shows after the words that ask the user to write it.
var shown = regexp.MustCompile(`\b(?:Write|[Aa]dd|Declare|like)\b[a-z ]*:(?:\n((?:    .*(?:\n|$))+)| ([^\n]+?)(?:\.? Did you mean.*)?(?:\n|$))`)

// Examples must be valid where the user pastes them: as the content of a block, as a value, or as a text.
func checkExamples(t *testing.T, detail string) (found int) {
	t.Helper()
	for _, m := range shown.FindAllStringSubmatch(detail, -1) {
		example := strings.TrimSpace(m[1] + m[2])
		_, body := hclsyntax.ParseConfig([]byte(example), "", hcl.InitialPos)
		_, value := hclsyntax.ParseExpression([]byte(example), "", hcl.InitialPos)
		_, template := hclsyntax.ParseTemplate([]byte(example), "", hcl.InitialPos)
		isText := !template.HasErrors() && strings.HasPrefix(example, "%{")
		if body.HasErrors() && value.HasErrors() && !isText {
			t.Errorf("the example %q is not valid: %v, %v\n%s", example, body, value, detail)
		}
		found++
	}
	return found
}

func TestTheAdviceIsValid(t *testing.T) {
	text, err := os.ReadFile("advice.txt")
	if err != nil {
		t.Fatal(err)
	}
	if found := checkExamples(t, string(text)); found < 10 {
		t.Errorf("only %d examples were found", found)
	}
}

// A ring of any length is drawn in a few lines.
func TestLongRingsAreShort(t *testing.T) {
	const n = 20_000
	var locals, sessions, moves strings.Builder
	locals.WriteString("locals {\n")
	for i := range n {
		fmt.Fprintf(&locals, "  l%d = local.l%d\n", i, (i+1)%n)
	}
	for i := range n / 10 {
		fmt.Fprintf(&sessions, "session \"s%d\" {\n  target     = \"2060\"\n  depends_on = [session.s%d]\n}\n", i, (i+1)%(n/10))
		fmt.Fprintf(&moves, "moved {\n  from = session.s%d\n  to   = session.s%d\n}\n", i, (i+1)%(n/10))
	}
	for what, src := range map[string]string{"locals": locals.String() + "}\n", "depends_on": sessions.String(), "moved": moves.String()} {
		_, diags := load(t, map[string]string{"a.hcl": src})
		size := 0
		for _, d := range diags {
			size += len(d.Summary) + len(d.Detail)
		}
		if len(diags) == 0 || size > 2000 {
			t.Errorf("%s: %d diagnostics of %d bytes", what, len(diags), size)
		}
	}
}
