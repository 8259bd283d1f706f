package config_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/config"
)

const benchmarkSessions = 10_000

// byBlocks is a fleet with a block for every session.
func byBlocks() []byte {
	var out bytes.Buffer
	for i := range benchmarkSessions {
		fmt.Fprintf(&out, "session \"worker-%d\" {\n  target    = \"rtx-2060\"\n  command   = [\"python\", \"train.py\"]\n"+
			"  workspace = \"./exp/%d\"\n  env       = { SEED = %d }\n\n  fit {\n    tolerance = \"5%%\"\n  }\n}\n\n", i, i, i)
	}
	return out.Bytes()
}

// byCount is the same fleet in one block.
func byCount() []byte {
	return fmt.Appendf(nil, "session \"worker\" {\n  count     = %d\n  target    = \"rtx-2060\"\n  command   = [\"python\", \"train.py\"]\n"+
		"  workspace = \"./exp/${count.index}\"\n  env       = { SEED = count.index }\n\n  fit {\n    tolerance = \"5%%\"\n  }\n}\n", benchmarkSessions)
}

func BenchmarkLoad(b *testing.B) {
	for name, src := range map[string][]byte{"blocks": byBlocks(), "count": byCount()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				intent, diags := config.Load(map[string][]byte{"fleet.hcl": src}, options())
				if diags.HasErrors() || len(intent.Sessions) != benchmarkSessions {
					b.Fatal(len(intent.Sessions), diags)
				}
			}
		})
	}
}

// BenchmarkHCL is what Load is measured against: the HCL library alone, reading
// the same bytes and, where one block is 10,000 sessions, evaluating it for each.
func BenchmarkHCL(b *testing.B) {
	b.Run("blocks", func(b *testing.B) {
		src := byBlocks()
		b.ReportAllocs()
		for b.Loop() {
			bareParse(b, src)
		}
	})
	b.Run("count", func(b *testing.B) {
		src := byCount()
		b.ReportAllocs()
		for b.Loop() {
			block := bareParse(b, src).Blocks[0]
			for i := range benchmarkSessions {
				scope := &hcl.EvalContext{Variables: map[string]cty.Value{
					"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(int64(i))}),
				}}
				bareEvaluate(b, block.Body, scope)
			}
		}
	})
}

func bareParse(b *testing.B, src []byte) *hclsyntax.Body {
	file, diags := hclsyntax.ParseConfig(src, "fleet.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		b.Fatal(diags)
	}
	return file.Body.(*hclsyntax.Body)
}

func bareEvaluate(b *testing.B, body *hclsyntax.Body, scope *hcl.EvalContext) {
	for _, a := range body.Attributes {
		if _, diags := a.Expr.Value(scope); diags.HasErrors() {
			b.Fatal(diags)
		}
	}
	for _, inner := range body.Blocks {
		bareEvaluate(b, inner.Body, scope)
	}
}
