package config_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"cosplay/internal/config"
)

func TestFormat(t *testing.T) {
	const untidy = "session   \"worker\" {\ncount=7\n    target = \"2060\" # cheap\n  env={A=1}\n}\n"
	const tidy = "session \"worker\" {\n  count  = 7\n  target = \"2060\" # cheap\n  env    = { A = 1 }\n}\n"
	laid, _, diags := config.Format("fleet.hcl", []byte(untidy))
	if len(diags) > 0 || string(laid) != tidy {
		t.Errorf("%v\n%s", diags, laid)
	}
	broken := []byte("session \"worker\" {\n  count=7\n")
	laid, _, diags = config.Format("fleet.hcl", broken)
	if !diags.HasErrors() || !bytes.Equal(laid, broken) {
		t.Errorf("a file with a syntax error: %v\n%s", diags, laid)
	}
	checkComplete(t, diags, map[string][]byte{"fleet.hcl": broken})
}

// What earlier syntaxes needed is removed as by Terraform's fmt; what means something else without it stays.
func TestFormatModernizes(t *testing.T) {
	for typed, want := range map[string]string{
		`a = "${var.x}"`:           `a = var.x`,
		`a = "${ max(1, 2) }"`:     `a = max(1, 2)`,
		`a = "${"${var.x}"}"`:      `a = var.x`,
		`a = "${~ var.x ~}"`:       `a = var.x`,
		`a = "${"text"}"`:          `a = "text"`,
		"a = \"${\n  1 + 2\n}\"":   "a = 1 + 2",
		"a = \"${\n  1 +\n 2\n}\"": "a = (1 +\n2)",
		`a = "${var.x}y"`:          `a = "${var.x}y"`,
		`a = "${var.x}${var.y}"`:   `a = "${var.x}${var.y}"`,
		`a = ["${var.x}"]`:         `a = ["${var.x}"]`,
		`a = "$${var.x}"`:          `a = "$${var.x}"`,
		`a = "${var.x /* why */}"`: `a = "${var.x /* why */}"`,
		"session worker {}":        `session "worker" {}`,
		"dynamic volume {\nfor_each = [\"${var.x}\"]\ncontent {\nsource=\"${volume.value}\"\n}\n}": "dynamic \"volume\" {\n  for_each = [\"${var.x}\"]\n  content {\n    source = volume.value\n  }\n}",
		"a \"b\" c {\n  d e {}\n}":         "a \"b\" \"c\" {\n  d \"e\" {}\n}",
		"a = \"${var.x}\" # why\nb {\n}\n": "a = var.x # why\nb {\n}\n",
	} {
		if laid, _, diags := config.Format("a.hcl", []byte(typed)); diags.HasErrors() || string(laid) != want {
			t.Errorf("%s\nbecomes\n%s\nnot\n%s\n%v", typed, laid, want, diags)
		}
	}
}

// TestExamplesAreTidy checks that the examples, which newcomers copy, are formatted.
func TestExamplesAreTidy(t *testing.T) {
	for _, path := range slices.Concat(glob(t, "../../examples/*.hcl"), glob(t, "../../examples/*/*.hcl"), glob(t, "../../examples/*/*.hclvars")) {
		src := read(t, path)
		if laid, _, diags := config.Format(path, src); len(diags) > 0 || !bytes.Equal(laid, src) {
			t.Errorf("%s: %v; Fix: cosplay fmt examples", path, diags)
		}
	}
}

// FuzzFormat checks that formatting reaches a fixed point after one pass, keeps every word in its order, and leaves
// files with syntax errors unchanged.
func FuzzFormat(f *testing.F) {
	for _, pattern := range []string{"testdata/wrong/*.hcl", "testdata/right/*.hcl", "testdata/warned/*.hcl", "../../examples/*.hcl"} {
		for _, path := range glob(f, pattern) {
			f.Add(read(f, path))
		}
	}
	f.Add([]byte("a = [ # one\n1,\n\n2]\r\nb {}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		once, _, diags := config.Format("one.hcl", src)
		if diags.HasErrors() {
			if !bytes.Equal(once, src) {
				t.Error("a file that is refused was changed")
			}
			return
		}
		twice, _, diags := config.Format("one.hcl", once)
		if diags.HasErrors() || !bytes.Equal(once, twice) {
			t.Errorf("%v\nonce:\n%s\ntwice:\n%s", diags, once, twice)
		}
		if before, after := words(t, src), words(t, once); before != after {
			t.Errorf("other words\nbefore: %s\nafter:  %s", before, after)
		}
	})
}

// words returns the tokens of a file without the blanks between them, and without those that modern syntax leaves out.
func words(t *testing.T, src []byte) string {
	tokens, _ := hclsyntax.LexConfig(src, "one.hcl", hcl.InitialPos)
	var all bytes.Buffer
	dropped := []hclsyntax.TokenType{hclsyntax.TokenOQuote, hclsyntax.TokenCQuote, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateSeqEnd,
		hclsyntax.TokenOParen, hclsyntax.TokenCParen, hclsyntax.TokenNewline}
	for _, token := range tokens {
		if slices.Contains(dropped, token.Type) {
			continue
		}
		all.Write(bytes.TrimRight(token.Bytes, " \t"))
		all.WriteByte(0)
	}
	return all.String()
}
