package config

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// TestPieces compares files that are parsed in pieces with the same files parsed as a whole. What a line with only "}"
// ends is not always a block of the file.
func TestPieces(t *testing.T) {
	simple := []string{
		"session \"a\" {\n  target = \"2060\"\n}\n",
		"session \"b\" { count = 3 }\n",
		"\n# a comment with \"quotes and {\n",
		"locals {\n  a = \"${\"{\"}\"\n}\n",
		"session \"crlf\" {\r\n  target = \"2060\"\r\n}\r\n",
	}
	deceptive := []string{
		"host \"é\" {\n  labels = {\n    a = [1, 2,\n      3]\n}\n}\n",
		"output \"o\" {\n  value = <<E\n}\nline ${1 +\n1}\n}\nE\n}\n",
		"/* } \n}\n*/\n",
		"locals {\n  b = {\n}\n}\n",
	}
	wrong := []string{"x = 1\n", "}\n", "session \"open {\n}\n", "output \"o\" {\n  value = <<E\n}\n", "/* \n}\n", "session {\n", "\xff", "a = [\n}\n"}
	apart := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var text strings.Builder
		for size := random.IntN(4 * pieceSize); text.Len() < size; {
			text.WriteString(simple[random.IntN(len(simple))])
			if random.IntN(50) == 0 {
				text.WriteString(deceptive[random.IntN(len(deceptive))])
			}
			if seed%3 == 0 && random.IntN(200) == 0 {
				text.WriteString(wrong[random.IntN(len(wrong))])
			}
		}
		src := []byte(text.String())
		if seed%5 == 0 {
			src = src[:random.IntN(len(src)+1)]
		}
		pieces, ok := parsePieces("a.hcl", src)
		if !ok {
			continue
		}
		apart++
		whole, diags := hclsyntax.ParseConfig(src, "a.hcl", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatalf("seed %d: the file is wrong and its pieces are not: %v", seed, diags)
		}
		a, b := pieces.Body.(*hclsyntax.Body), whole.Body.(*hclsyntax.Body)
		if a.SrcRange != b.SrcRange || a.EndRange != b.EndRange || !reflect.DeepEqual(a.Blocks, b.Blocks) || len(b.Attributes) > 0 {
			t.Fatalf("seed %d: the pieces differ from the whole", seed)
		}
		for offset := 0; offset < len(src); offset += 50 {
			name := func(f *hcl.File) string {
				return f.Nav.(interface{ ContextString(int) string }).ContextString(offset)
			}
			if name(pieces) != name(whole) {
				t.Fatalf("seed %d, offset %d: in %q of the pieces, in %q of the whole", seed, offset, name(pieces), name(whole))
			}
		}
	}
	if apart < 100 {
		t.Errorf("only %d of 300 files were parsed in pieces", apart)
	}
}

// TestPiecesKeepLimits checks limits of a file that its pieces alone would not exceed, and one that a piece does.
func TestPiecesKeepLimits(t *testing.T) {
	block := "session \"a\" {\n  target = \"2060\"\n}\n"
	many := strings.Repeat("a {\n}\n", maxWords/3+1)
	deep := strings.Repeat(block, 500) + "locals {\n  a = " + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + "\n}\n"
	begin := strings.Repeat(block, pieceSize/len(block)+1)
	for name, src := range map[string]string{"many": many, "deep": deep, "a byte order mark": begin + "\ufeff" + block} {
		if _, ok := parsePieces("a.hcl", []byte(src)); ok {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, ok := parsePieces("a.hcl", []byte(strings.Repeat(block, 500))); !ok {
		t.Error("500 blocks are not parsed in pieces")
	}
}

// TestPlain checks that no source is plain that nests too deeply or has a vast number.
func TestPlain(t *testing.T) {
	for _, src := range []string{"a = " + strings.Repeat("[", maxDepth+1), "a = " + strings.Repeat("!", maxDepth) + "(1)",
		"a = \"" + strings.Repeat("%{ if a }", maxDepth) + "\"", "a = " + strings.Repeat("1 + ", maxDepth+1) + "1", "a = 1e10000", "a = 1E+010000",
		"a = " + strings.Repeat("7", 10_001), "a = " + strings.Repeat("a[0]", maxDepth+1), "a = <<E\n" + strings.Repeat("${", maxDepth) + "\nE\n"} {
		if _, plain := scan([]byte(src)); plain {
			t.Errorf("plain: %.40s", src)
		}
		if !tooDeep("a.hcl", []byte(src), hcl.InitialPos, hclsyntax.LexConfig).HasErrors() {
			t.Errorf("accepted: %.40s", src)
		}
	}
	if _, plain := scan([]byte(strings.Repeat("session \"worker_9999\" {\n  target = \"2060\"\n}\n", 60))); !plain {
		t.Error("60 blocks are not plain")
	}
}
