package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

const catalogName = "cosplay.catalog"

// declareCatalog makes the catalog available to expressions: all GPUs by key, including those of target blocks.
func (l *loader) declareCatalog() {
	l.nodes[catalogName] = &node{name: catalogName, work: func() (cty.Value, bool) {
		all := map[string]cty.Value{}
		if l.Catalog != nil {
			for _, t := range l.Catalog() {
				all[t.Key] = targetValue(t)
			}
		}
		for _, key := range sortedKeys(l.own) {
			own := l.own[key]
			if !l.settle(own.node) {
				return cty.DynamicVal, false
			}
			all[own.name] = own.node.value
		}
		if len(all) == 0 {
			return cty.MapValEmpty(targetValue(resource.Target{}).Type()), true
		}
		return cty.MapVal(all), true
	}}
}

// targetValue converts a GPU to a value for expressions.
func targetValue(t resource.Target) cty.Value {
	types := cty.ListValEmpty(cty.String)
	if len(t.TensorTypes) > 0 {
		types = cty.ListVal(prose.Each(t.TensorTypes, cty.StringVal))
	}
	return cty.ObjectVal(map[string]cty.Value{
		"key": cty.StringVal(t.Key), "name": cty.StringVal(t.Name), "short_name": cty.StringVal(t.ShortName()),
		"architecture": cty.StringVal(t.Architecture), "compute_capability": cty.StringVal(t.ComputeCapability),
		"sms": number(t.SMs), "boost_mhz": number(t.BoostMHz), "vram_mib": number(t.MemoryMiB), "bus_bits": number(t.BusBits),
		"bandwidth_gbs": cty.NumberFloatVal(t.BandwidthGBs), "l2_mib": cty.NumberFloatVal(t.L2MiB), "power_w": number(t.PowerW),
		"pcie_generation": number(t.PCIeGeneration), "year": number(t.Year),
		"fp32_tflops":        cty.NumberFloatVal(t.FP32TFLOPS),
		"tensor_fp16_tflops": cty.NumberFloatVal(t.TensorFP16TFLOPS), "tensor_bf16_tflops": cty.NumberFloatVal(t.TensorBF16TFLOPS),
		"tensor_fp8_tflops": cty.NumberFloatVal(t.TensorFP8TFLOPS), "tensor_int8_tops": cty.NumberFloatVal(t.TensorINT8TOPS),
		"tensor_types": types,
	})
}

// withSpellings adds to a scope what the catalog has under other spellings, where an expression indexes it literally.
func (l *loader) withSpellings(mentions []hcl.Traversal, scope *hcl.EvalContext) (*hcl.EvalContext, hcl.Diagnostics) {
	var all map[string]cty.Value
	var diags hcl.Diagnostics
	for _, mention := range mentions {
		if len(mention) < 3 || variableName(mention) != catalogName {
			continue
		}
		index, is := mention[2].(hcl.TraverseIndex)
		if !is || index.Key.Type() != cty.String {
			continue
		}
		name := index.Key.AsString()
		if all == nil {
			all = l.nodes[catalogName].value.AsValueMap()
		}
		if _, there := all[name]; there || all == nil {
			continue
		}
		answer, ok := l.find(name)
		switch {
		case answer.unknown():
			diags = append(diags, mistake(index.SrcRange, answer.summary, "%s", answer.detail))
			all[name] = cty.UnknownVal(targetValue(resource.Target{}).Type()) // the rest may be wrong, too
		case ok:
			all[name] = targetValue(answer.target)
		}
	}
	if all == nil {
		return scope, nil
	}
	inner := scope.NewChild()
	inner.Variables = map[string]cty.Value{"cosplay": cty.ObjectVal(map[string]cty.Value{"catalog": cty.MapVal(all)})}
	return inner, diags
}

// catalogKey is an index of the catalog that is not a literal text. It evaluates to any spelling of a GPU's name, in
// a for expression to a different one for each element, and becomes the key that the catalog has.
type catalogKey struct {
	hclsyntax.Expression
	l *loader
}

// Value implements hcl.Expression.
func (e catalogKey) Value(scope *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	key, diags := e.Expression.Value(scope)
	if diags.HasErrors() || key.IsMarked() || key.Type() != cty.String || !key.IsKnown() || key.IsNull() {
		return key, diags
	}
	answer, ok := e.l.find(key.AsString())
	switch {
	case answer.unknown():
		return cty.DynamicVal, append(diags, mistake(e.Range(), answer.summary, "%s", answer.detail))
	case !ok:
		return cty.UnknownVal(cty.String).Mark(reported), diags
	}
	return cty.StringVal(answer.target.Key), diags
}

// askable lets an expression index the catalog by any spelling that it computes.
func (l *loader) askable(expr hcl.Expression) {
	written, native := expr.(hclsyntax.Node)
	if !native {
		return
	}
	_ = hclsyntax.VisitAll(written, func(n hclsyntax.Node) hcl.Diagnostics {
		if index, ok := n.(*hclsyntax.IndexExpr); ok {
			of, named := index.Collection.(*hclsyntax.ScopeTraversalExpr)
			if _, already := index.Key.(catalogKey); named && !already && variableName(of.Traversal) == catalogName {
				index.Key = catalogKey{index.Key, l}
			}
		}
		return nil
	})
}
