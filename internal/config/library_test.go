package config_test

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
)

// wrongExpressions make the HCL library report each of its diagnostics.
var wrongExpressions = []string{
	// Errors of the parser.
	`"a" "b"`, `a.`, `a.[0]`, `a.*.b[*]c`, `a[`, `a[]`, `a[0`, `a[*`, `[1, 2`, `[1 2]`, `[1,,2]`, `{ a = 1`, `{ a = 1 b = 2 }`, `{ a }`, `{ a = }`, `{ = 1 }`,
	`{ a = 1, , }`, `(1`, `1)`, `f(1`, `f(1 2)`, `f(,)`, `f(a...`, `f(a..., b)`, `1 +`, `+ 1`, `1 ++ 2`, `1 & 2`, `1 | 2`, `1 ~ 2`, `!`, `a ? b`, `a ? b :`, `a ? : c`,
	`a ?? b`, `a === b`, `a = b`, `a and b`, `not a`, `not(true)`, `"${"`, `"${a"`, `"${}"`, `"${a b}"`, `"%{"`, `"%{if}"`, `"%{if a}"`, `"%{if a}x%{else}"`,
	`"%{else}"`, `"%{endif}"`, `"%{for}"`, `"%{for x}"`, `"%{for x in [1]}"`, `"%{for x in [1]}x%{endif}"`, `"%{endfor}"`, `"%{foo}"`, `"%{if a b}x%{endif}"`,
	`"\q"`, `"\u12"`, `"\U0011ffffff"`, `[for]`, `[for x]`, `[for x in]`, `[for x in []]`, `[for x in [] :]`, `[for x in [] : x`, `[for x, y, z in [] : x]`,
	`[for 1 in [] : x]`, `[for x of [] : x]`, `[for x in [] : x if]`, `{ for x in [] : x }`, `{ for x in [] : x => }`, `{ for x in [] : => x }`, `[for x in [] : x => x]`,
	`{ for x in [] : x => x`, `[for x in [] : x...]`, `[for x in [] : x if true false]`, `0x1F`, `1.2.3`, `1e`, `.5`, `5.`, `#`, `/* a`, `<<EOT`, "<<EOT\nx", "<<\nx\n",
	`@a`, `$a`, `${a}`, `%{a}`, `?`, `:`, `=>`, `...`, `a..b`, `a::b`, `a::b(1)`, `a->b`, `1 < 2 < `, `a!`, `\a`, `;`,
	// Errors of the evaluation.
	`1 + "a"`, `"a" * 2`, `!"a"`, `-"a"`, `-[1]`, `1 && true`, `true || "x"`, `1 < "a"`, `[1] < [2]`, `null + 1`, `1 ? 2 : 3`, `null ? 1 : 2`, `"x" ? 1 : 2`,
	`true ? [1] : "a"`, `true ? { a = 1 } : [1]`, `[1][2]`, `[1][-1]`, `[1]["a"]`, `[1].a`, `{ a = 1 }.b`, `{ a = 1 }["b"]`, `{ a = 1 }[0]`, `{ a = 1 }[null]`, `[1][null]`,
	`null.a`, `null[0]`, `null[*].a`, `"a".b`, `"a"[0]`, `1.a`, `1[0]`, `true.x`, `toset(["a"])[0]`, `[1][*].a`, `"a"[*].b`, `{ a = 1 }[*].b`, `[{ a = 1 }, { b = 2 }][*].a`,
	`tomap({ a = 1 })["b"]`, `tomap({ a = 1 }).b`, `tolist([1])[3]`, `tolist([1]).a`, `[for x in 1 : x]`, `[for x in "a" : x]`, `[for x in null : x]`, `{ for x in ["a", "a"] : x => 1 }`,
	`{ for x in [null] : x => 1 }`, `{ for x in [[]] : x => 1 }`, `[for x in [1] : x if "a"]`, `[for x in [1] : x if null]`, `{ (null) = 1 }`, `{ ([]) = 1 }`, `{ ({}) = 1 }`,
	`"${[1]}x"`, `"${{}}x"`, `"${null}x"`, `"x%{if 1}x%{endif}"`, `"x%{if null}x%{endif}"`, `"x%{for x in 1}x%{endfor}"`, `"x%{for x in ["a"]}${x.y}%{endfor}"`,
	`max()`, `max("a")`, `max([1]...)[0]`, `max(1...)`, `max(null...)`, `max([null]...)`, `upper()`, `upper("a", "b")`, `upper([])`, `upper(null)`, `nope()`, `nope(1 + "a")`, `element([], 0)`,
	`lookup({}, "a")`, `regex("[", "a")`, `regex("z", "a")`, `jsondecode("{")`, `yamldecode("a: [")`, `csvdecode("a,b\n1")`, `parseint("z", 10)`, `tonumber("a")`, `tobool("yes")`,
	`tolist(1)`, `toset({})`, `tomap([])`, `tostring([])`, `formatdate("q", "2020-01-01T00:00:00Z")`, `formatdate("YYYY", "today")`, `timeadd("x", "1h")`, `format("%d", "a")`,
	`format("%s")`, `format("%z", 1)`, `format("%1000d", 1)`, `format("%99999999999999999999d", 1)`, `formatlist("%.1000f", [1])`,
	`formatlist("%999s%999s%999s%999s%999s", range(1000), 1, 1, 1, 1)[0]`, `join(",", 1)`, `split(",")`, `merge([1])`, `zipmap(["a"], [])`, `slice([1], 2, 1)`, `substr("a", 0)`, `range(0, 1, 0)`, `range(1, 5000)`,
	`setproduct()`, `keys(1)`, `values([1])`, `flatten(1)`, `sort([{}])`, `base64decode("?")`, `file("nowhere")`, `file("")`, `templatefile("nowhere", {})`, `one([1, 2])`, `sum([])`,
	`sum(["a"])`, `index([1], 2)`, `coalesce()`, `coalesce(null)`, `coalescelist([])`, `chunklist([1], -1)`, `log(-1, 2)`, `pow("a", 2)`, `indent("a", "b")`, `replace("a", "/[/", "")`,
	`transpose({ a = 1 })`, `matchkeys([1], [], [])`, `cidrsubnet("10.0.0.0/30", 8, 1)`, `try()`, `try(nope)`, `can()`, `alltrue(["x"])`, `contains(1, 1)`, `compact([[]])`,
	`99999999999999999999999999999e999999999`, `1 / 0`, `0 / 0`,
}

// The HCL library states what is wrong, and seldom what to do.
func TestTheLibrarysMistakesHaveANextStep(t *testing.T) {
	for _, expr := range wrongExpressions {
		t.Run(expr, func(t *testing.T) {
			files := map[string]string{"cosplay.hcl": "session \"worker\" {\n  target = \"2060\"\n  env = {\n    A = " + expr + "\n  }\n}\n"}
			_, diags := load(t, files)
			if len(diags) == 0 {
				t.Fatal("nothing is wrong with it")
			}
			checkComplete(t, diags, map[string][]byte{"cosplay.hcl": []byte(files["cosplay.hcl"])})
			for _, d := range diags {
				if !nextStep.MatchString(d.Detail) {
					t.Errorf("line %d: %q does not say what to do: %s", d.Subject.Start.Line, d.Summary, d.Detail)
				}
				checkSentences(t, d)
			}
		})
	}
}

func checkSentences(t *testing.T, d *hcl.Diagnostic) {
	t.Helper()
	if badEnd.MatchString(d.Detail) {
		t.Errorf("%q is badly put: %s", d.Summary, d.Detail)
	}
}
