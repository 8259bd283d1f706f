package config_test

import (
	"bytes"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

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

// byEach returns the same fleet with for_each over a map that a local computes, with variables.
func byEach() []byte {
	return fmt.Appendf(nil, "variable \"image\" {\n  default = \"rtx-2060\"\n}\n\nlocals {\n  seeds = { for i in setproduct(range(%d), range(100)) : \"w${i[0]}-${i[1]}\" => i[1] }\n}\n\n"+
		"session \"worker\" {\n  for_each  = local.seeds\n  target    = var.image\n  command   = [\"python\", \"train.py\"]\n"+
		"  workspace = \"./exp/${each.key}\"\n  env       = { SEED = each.value }\n\n  fit {\n    tolerance = \"5%%\"\n  }\n}\n", benchmarkSessions/100)
}

func BenchmarkLoad(b *testing.B) {
	for name, src := range map[string][]byte{"blocks": byBlocks(), "count": byCount(), "each": byEach()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ourLoad(b, src)
			}
		})
	}
}

func ourLoad(b *testing.B, src []byte) {
	intent, diags := config.Load(map[string][]byte{"fleet.hcl": src}, options())
	if diags.HasErrors() || len(intent.Sessions) != benchmarkSessions {
		b.Fatal(len(intent.Sessions), diags)
	}
}

// BenchmarkRatio compares Load with the HCL library alone, in turns: Load must need less than 3 times its CPU time.
func BenchmarkRatio(b *testing.B) {
	for name, pair := range map[string]struct {
		src  []byte
		bare func(*testing.B, []byte)
	}{
		"blocks": {byBlocks(), func(b *testing.B, src []byte) { bareParse(b, src) }},
		"count":  {byCount(), bareCount},
		"each":   {byEach(), bareEach},
	} {
		b.Run(name, func(b *testing.B) {
			var ours, theirs time.Duration
			for b.Loop() {
				ours += cpu(func() { ourLoad(b, pair.src) })
				theirs += cpu(func() { pair.bare(b, pair.src) })
			}
			b.ReportMetric(float64(ours)/float64(theirs), "ratio")
		})
	}
}

// cpu returns the CPU time of a function, including its garbage collection.
func cpu(do func()) time.Duration {
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	runtime.GC()
	before := used()
	do()
	runtime.GC()
	return used() - before
}

// bareEach does the same work as byEach with the HCL library alone: the map, then the block for each element.
func bareEach(b *testing.B, src []byte) {
	body := bareParse(b, src)
	functions := config.Functions(options())
	seeds, diags := body.Blocks[1].Body.Attributes["seeds"].Expr.Value(&hcl.EvalContext{Functions: functions})
	if diags.HasErrors() {
		b.Fatal(diags)
	}
	given := cty.ObjectVal(map[string]cty.Value{"image": cty.StringVal("rtx-2060")})
	for it := seeds.ElementIterator(); it.Next(); {
		key, value := it.Element()
		scope := &hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{
			"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": value}), "var": given,
			"local": cty.ObjectVal(map[string]cty.Value{"seeds": seeds}),
		}}
		bareEvaluate(b, body.Blocks[2].Body, scope)
	}
}

// BenchmarkHCL is the reference for Load: the HCL library alone, reading the same bytes and, if one block is 10,000
// sessions, evaluating it for each.
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
			bareCount(b, src)
		}
	})
}

func bareCount(b *testing.B, src []byte) {
	block := bareParse(b, src).Blocks[0]
	for i := range benchmarkSessions {
		scope := &hcl.EvalContext{Variables: map[string]cty.Value{
			"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(int64(i))}),
		}}
		bareEvaluate(b, block.Body, scope)
	}
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
