package config

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"cosplay/internal/prose"
)

// The limits of one evaluation. They keep the memory of the process below 1 GiB, whatever the files contain, and are
// far above what a configuration of 10,000 sessions needs.
const (
	maxText     = 4 << 20  // bytes of all texts in a value, and of a file that is read
	maxElements = 400_000  // of a value, also of nested ones: 10,000 sessions have 330,000
	maxParts    = 100_000  // elements of what a function makes of a text, and of a product
	maxList     = 10_000   // elements of one list, since the HCL library compares the types of all with each other
	maxDigits   = 1 << 16  // binary digits of a number
	maxNested   = 200      // values within each other
	maxMade     = 64 << 20 // bytes of all texts and lists that an evaluation makes
	perElement  = 32       // bytes that an element of a list counts for
	maxLooked   = 100_000  // files and folders that fileset visits
	maxDecoded  = 1 << 20  // bytes of a text that a function takes apart
	maxTrimmed  = 10_000   // bytes of the characters that trim removes, since it compares each with all
)

// limitError reports which limit a value exceeds, and what to do.
type limitError struct{ what, limit, instead string }

func (e limitError) Error() string {
	return fmt.Sprintf("%s exceeds %s, the limit of cosplay. %s", e.what, e.limit, e.instead)
}

func mebi(n int) string { return fmt.Sprintf("%d MiB", n>>20) }

func tooLong(what string) error {
	return limitError{what, mebi(maxText), "Make it shorter, or keep it in a file that the session reads"}
}

func tooMany(what string, most int) error {
	return limitError{what, fmt.Sprintf("%d elements", most), "Make it smaller"}
}

func tooLate() limitError {
	return limitError{"the evaluation", "the time", "Make loops shorter and values smaller"}
}

// budget is what an evaluation may still use.
type budget struct {
	stop  <-chan struct{} // closed when the time is over; nil if there is no limit
	made  atomic.Int64    // bytes of texts made so far
	spent atomic.Pointer[limitError]
	place *hcl.Range // where the evaluation exceeded the budget, if an expression did

	templates map[hcl.Expression][]hclsyntax.Expression // in JSON expressions that have been evaluated
}

func newBudget() *budget { return &budget{templates: map[hcl.Expression][]hclsyntax.Expression{}} }

// begin gives an evaluation the whole budget.
func (b *budget) begin(o Options) {
	if o.Begin != nil {
		b.stop = o.Begin()
	}
	b.made.Store(0)
	b.spent.Store(nil)
	b.place = nil
}

// use counts bytes of a text that the evaluation makes. It fails once the evaluation has exceeded a limit.
func (b *budget) use(bytes int) error {
	if err := b.spent.Load(); err != nil {
		return err
	}
	select {
	case <-b.stop:
		return b.end(tooLate())
	default:
	}
	if b.made.Add(int64(bytes)) > maxMade {
		return b.end(limitError{"the total of all texts and lists", mebi(maxMade), "Make texts and loops shorter, or keep texts in files that the sessions read"})
	}
	return nil
}

// end makes every later use fail.
func (b *budget) end(err limitError) error {
	b.spent.CompareAndSwap(nil, &err)
	return err
}

// await waits for a function until the time is over. The function then continues until the process ends.
func (b *budget) await(do func() (cty.Value, error)) (cty.Value, error) {
	type result struct {
		value cty.Value
		err   error
	}
	if b.stop == nil {
		return do()
	}
	done := make(chan result, 1)
	go func() {
		v, err := do()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-b.stop:
		return cty.NilVal, b.end(tooLate())
	}
}

// size is how large values are together.
type size struct{ text, elements, longest int }

// measure returns the size of values, and fails if they exceed a limit.
func measure(values ...cty.Value) (s size, err error) {
	for _, v := range values {
		if err := s.add(v, 0); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *size) add(v cty.Value, nested int) error {
	v, _ = v.Unmark()
	switch {
	case v == cty.NilVal || !v.IsKnown() || v.IsNull():
	case v.Type() == cty.String:
		s.text += len(v.AsString())
		s.longest = max(s.longest, len(v.AsString()))
	case v.Type() == cty.Number && isVast(v.AsBigFloat()):
		return limitError{"the number", fmt.Sprintf("%d binary digits", maxDigits), "Write one with fewer digits"}
	case v.CanIterateElements():
		if v.Type().IsTupleType() && v.LengthInt() > maxList {
			return limitError{"the list", fmt.Sprintf("%d elements", maxList), "Make it shorter"}
		}
		for it := v.ElementIterator(); it.Next(); {
			key, element := it.Element()
			if key.Type() == cty.String && !v.Type().IsSetType() {
				s.text += len(key.AsString())
			}
			if s.elements++; s.elements > maxElements {
				return tooMany("the value", maxElements)
			}
			if err := s.add(element, nested+1); err != nil {
				return err
			}
		}
	}
	switch {
	case s.text > maxText:
		return tooLong("the value")
	case nested > maxNested:
		return limitError{"the nesting of the value", fmt.Sprintf("%d levels", maxNested), "Make it flatter"}
	}
	return nil
}

// isVast reports whether a finite number has so many digits that to write them takes long.
func isVast(n *big.Float) bool {
	exponent := n.MantExp(nil)
	return exponent > maxDigits || exponent < -maxDigits
}

// limited returns a function that uses up the budget, and fails where arguments or result exceed a limit.
func (b *budget) limited(name string, f function.Function) function.Function {
	params, variadic := f.Params(), f.VarParam()
	evaluates := func(p function.Parameter) bool { return p.Type.IsCapsuleType() } // as try and can do
	if slices.ContainsFunc(params, evaluates) || variadic != nil && evaluates(*variadic) {
		return f
	}
	return function.New(&function.Spec{Params: params, VarParam: variadic,
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := b.use(0); err != nil {
				return cty.NilType, err
			}
			result, err := b.await(func() (cty.Value, error) {
				if err := guarded(name, args); err != nil {
					return cty.NilVal, err
				}
				t, err := f.ReturnTypeForValues(args)
				return cty.UnknownVal(t), err
			})
			return result.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			result, err := b.await(func() (cty.Value, error) { return f.Call(args) })
			if err != nil {
				return result, err
			}
			s, err := measure(result)
			switch {
			case err != nil:
			case takesApart[name] && s.elements > maxParts:
				err = tooMany("the result", maxParts)
			default:
				err = b.use(s.text)
			}
			return result, err
		}})
}

// guarded applies the guard of a function to arguments that are known.
func guarded(name string, args []cty.Value) error {
	guard := guards[name]
	if guard == nil && !takesApart[name] {
		return nil
	}
	s, err := measure(args...)
	if err == nil && takesApart[name] {
		err = apart(s)
	}
	if err != nil || guard == nil {
		return err
	}
	bare := make([]cty.Value, len(args))
	for i, a := range args {
		bare[i], _ = a.UnmarkDeep()
		if !bare[i].IsWhollyKnown() || bare[i].IsNull() {
			return nil
		}
	}
	return guard(bare, s)
}

// meter is an expression whose values use up the budget. The parentheses make the expression in it visible to those
// who walk the syntax tree.
type meter struct {
	*hclsyntax.ParenthesesExpr
	budget *budget
	whole  bool // the value is iterated over, or an argument
	copies bool // the value becomes a part of a text
	each   bool // the value becomes an element of a list
}

// Value implements hcl.Expression.
func (m meter) Value(scope *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if m.budget.spent.Load() != nil {
		return m.instead(), nil // the reason has been reported
	}
	v, diags := m.Expression.Value(scope)
	if diags.HasErrors() {
		return v, diags
	}
	bytes := 0
	_, refers := m.Expression.(*hclsyntax.ScopeTraversalExpr) // to what was measured when it was made, or to sessions
	if m.copies || m.whole && !refers {
		made, err := measure(v)
		if err != nil {
			return m.instead(), hcl.Diagnostics{overLimit(m.SrcRange, err)}
		}
		if m.copies {
			bytes = made.text
		}
	}
	if m.each {
		bytes = perElement
	}
	if err := m.budget.use(bytes); err != nil {
		if m.budget.place == nil {
			m.budget.place = &m.SrcRange
		}
		return m.instead(), nil
	}
	return v, diags
}

// instead is a value with which the evaluation ends soon.
func (m meter) instead() cty.Value {
	if m.whole {
		return cty.EmptyTupleVal
	}
	return cty.DynamicVal
}

// exceeds is the summary of diagnostics about limits.
const exceeds = "this exceeds a limit"

func overLimit(at hcl.Range, err error) *hcl.Diagnostic {
	return mistake(at, exceeds, "%s", prose.Sentence(err.Error()))
}

// within evaluates an expression within the budget.
func (b *budget) within(expr hcl.Expression, scope *hcl.EvalContext) (result cty.Value, diags hcl.Diagnostics) {
	result = cty.DynamicVal
	for _, text := range b.metered(expr) {
		_, wrong := text.Value(scope)
		if i := slices.IndexFunc(wrong, func(d *hcl.Diagnostic) bool { return d.Summary == exceeds }); i >= 0 {
			return result, wrong[i : i+1]
		}
	}
	if b.spent.Load() == nil {
		result, diags = expr.Value(scope)
	}
	if _, err := measure(result); err != nil && !diags.HasErrors() {
		diags = append(diags, overLimit(expr.Range(), err))
	}
	if err := b.spent.Load(); err != nil {
		if b.place == nil {
			b.place = expr.Range().Ptr()
		}
		diags = hcl.Diagnostics{overLimit(*b.place, err)}
	}
	return result, diags
}

// metered lets the parts of an expression use up the budget whose number depends on values. For an expression in JSON,
// whose parts are out of reach, it returns the templates in it, so that the caller can evaluate them first.
func (b *budget) metered(expr hcl.Expression) []hclsyntax.Expression {
	if templates, done := b.templates[expr]; done {
		return templates
	}
	b.templates[expr] = nil
	if node, native := expr.(hclsyntax.Node); native {
		b.attach(node)
		return nil
	}
	templates := jsonTemplates(expr)
	for _, t := range templates {
		b.attach(t)
	}
	b.templates[expr] = templates
	return templates
}

// jsonTemplates parses the texts in a JSON expression, as the HCL library does whenever it evaluates them.
func jsonTemplates(expr hcl.Expression) (all []hclsyntax.Expression) {
	if list, diags := hcl.ExprList(expr); !diags.HasErrors() {
		for _, e := range list {
			all = append(all, jsonTemplates(e)...)
		}
		return all
	}
	if pairs, diags := hcl.ExprMap(expr); !diags.HasErrors() {
		for _, p := range pairs {
			all = append(append(all, jsonTemplates(p.Key)...), jsonTemplates(p.Value)...)
		}
		return all
	}
	if text, diags := expr.Value(nil); !diags.HasErrors() && text.Type() == cty.String && !text.IsNull() && strings.ContainsAny(text.AsString(), "$%") {
		if template, diags := hclsyntax.ParseTemplate([]byte(text.AsString()), expr.Range().Filename, expr.Range().Start); !diags.HasErrors() {
			all = append(all, template)
		}
	}
	return all
}

// attach puts meters around the parts of an expression that can be evaluated many times, or make large values.
func (b *budget) attach(node hclsyntax.Node) {
	wrap := func(at *hclsyntax.Expression, m meter) {
		if *at == nil {
			return
		}
		m.ParenthesesExpr, m.budget = &hclsyntax.ParenthesesExpr{Expression: *at, SrcRange: (*at).Range()}, b
		*at = m
	}
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.ForExpr:
			wrap(&n.CollExpr, meter{whole: true})
			wrap(&n.ValExpr, meter{each: true})
			wrap(&n.CondExpr, meter{each: true})
		case *hclsyntax.TemplateJoinExpr:
			if loop, is := n.Tuple.(*hclsyntax.ForExpr); is {
				wrap(&loop.ValExpr, meter{copies: true})
			}
		case *hclsyntax.SplatExpr:
			wrap(&n.Source, meter{whole: true})
		case *hclsyntax.TemplateExpr:
			for i := range n.Parts {
				if len(n.Parts) > 1 {
					wrap(&n.Parts[i], meter{copies: true})
				}
			}
		case *hclsyntax.FunctionCallExpr:
			for i := range n.Args {
				wrap(&n.Args[i], meter{whole: true})
			}
		case *hclsyntax.TupleConsExpr:
			for i := range n.Exprs {
				wrap(&n.Exprs[i], meter{})
			}
		}
		return nil
	})
}
