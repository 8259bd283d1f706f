package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"cosplay/internal/prose"
)

// valueFunction makes a function whose results have one type.
func valueFunction(result cty.Type, do func([]cty.Value) (cty.Value, error), params ...function.Parameter) function.Function {
	return function.New(&function.Spec{Params: params, Type: function.StaticReturnType(result),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return do(args) }})
}

func textFunction(do func(texts []string) (cty.Value, error), result cty.Type, params ...string) function.Function {
	onTexts := func(args []cty.Value) (cty.Value, error) { return do(prose.Each(args, cty.Value.AsString)) }
	return valueFunction(result, onTexts, textParameters(params...)...)
}

func textParameters(names ...string) []function.Parameter {
	return prose.Each(names, func(name string) function.Parameter { return function.Parameter{Name: name, Type: cty.String} })
}

func predicate(is func(s, part string) bool, params ...string) function.Function {
	return textFunction(func(t []string) (cty.Value, error) { return cty.BoolVal(is(t[0], t[1])), nil }, cty.Bool, params...)
}

func mapping(do func(string) (string, error), param string) function.Function {
	return textFunction(func(t []string) (cty.Value, error) {
		s, err := do(t[0])
		return cty.StringVal(s), err
	}, cty.String, param)
}

var (
	startsWith  = predicate(strings.HasPrefix, "str", "prefix")
	endsWith    = predicate(strings.HasSuffix, "str", "suffix")
	strContains = predicate(strings.Contains, "str", "substr")

	baseName  = mapping(func(p string) (string, error) { return path.Base(p), nil }, "path")
	dirName   = mapping(func(p string) (string, error) { return path.Dir(p), nil }, "path")
	urlEncode = mapping(func(s string) (string, error) { return url.QueryEscape(s), nil }, "str")

	base64Encode = mapping(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil }, "str")
	base64Decode = mapping(func(s string) (string, error) {
		data, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return "", errors.New("this is not Base64")
		}
		if !utf8.Valid(data) {
			return "", errors.New("what is in this Base64 is not text in UTF-8")
		}
		return string(data), nil
	}, "str")
)

// length counts the elements of a collection or, as in Terraform, the characters of a text.
var length = valueFunction(cty.Number, func(args []cty.Value) (cty.Value, error) {
	switch t := args[0].Type(); {
	case t == cty.String:
		return stdlib.Strlen(args[0])
	case t.IsObjectType():
		return cty.NumberIntVal(int64(len(t.AttributeTypes()))), nil
	}
	return stdlib.Length(args[0])
}, function.Parameter{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true})

// replace treats, as Terraform does, a pattern between slashes as a regular expression.
var replace = valueFunction(cty.String, func(args []cty.Value) (cty.Value, error) {
	pattern := args[1].AsString()
	if len(pattern) > 1 && strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/") {
		return stdlib.RegexReplace(args[0], cty.StringVal(pattern[1:len(pattern)-1]), args[2])
	}
	return stdlib.Replace(args[0], args[1], args[2])
}, textParameters("str", "substr", "replace")...)

// coalesce skips, as Terraform does, empty texts, too.
var coalesce = function.New(&function.Spec{
	VarParam: &function.Parameter{Name: "vals", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true},
	Type: func(args []cty.Value) (cty.Type, error) {
		common, _ := convert.UnifyUnsafe(prose.Each(args, cty.Value.Type))
		if common == cty.NilType {
			return cty.NilType, errors.New("all arguments must have the same type")
		}
		return common, nil
	},
	Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
		for _, a := range args {
			a, err := convert.Convert(a, result)
			switch {
			case err != nil:
				return cty.NilVal, err
			case !a.IsKnown():
				return cty.UnknownVal(result), nil
			case a.IsNull() || result == cty.String && a.AsString() == "":
				continue
			}
			return a, nil
		}
		return cty.NilVal, errors.New("no argument is other than null or empty")
	},
})

// flags returns a function of a list of booleans: whether any is true, or whether all are.
func flags(decides bool) function.Function {
	return valueFunction(cty.Bool, func(args []cty.Value) (cty.Value, error) {
		unknown := false
		for _, v := range args[0].Elements() {
			switch {
			case !v.IsKnown():
				unknown = true
			case !v.IsNull() && v.True() == decides:
				return cty.BoolVal(decides), nil
			case v.IsNull() && !decides:
				return cty.False, nil
			}
		}
		if unknown {
			return cty.UnknownVal(cty.Bool), nil
		}
		return cty.BoolVal(!decides), nil
	}, function.Parameter{Name: "list", Type: cty.List(cty.Bool)})
}

var (
	allTrue = flags(false)
	anyTrue = flags(true)
)

// sum adds a list of numbers.
var sum = valueFunction(cty.Number, func(args []cty.Value) (cty.Value, error) {
	if args[0].LengthInt() == 0 {
		return cty.NilVal, function.NewArgErrorf(0, "the list is empty")
	}
	total := cty.Zero
	for _, v := range args[0].Elements() {
		if v.IsNull() {
			return cty.NilVal, function.NewArgErrorf(0, "the list has a null in it")
		}
		total = total.Add(v)
	}
	return total, nil
}, function.Parameter{Name: "list", Type: cty.List(cty.Number)})

// one is the only element of a list or set; null if it is empty.
var one = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		switch t := args[0].Type(); {
		case t.IsListType() || t.IsSetType():
			return t.ElementType(), nil
		case t.IsTupleType() && t.Length() == 0:
			return cty.DynamicPseudoType, nil
		case t.IsTupleType() && t.Length() == 1:
			return t.TupleElementType(0), nil
		}
		return cty.NilType, function.NewArgErrorf(0, "a list or set with at most one element is wanted")
	},
	Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
		switch args[0].LengthInt() {
		case 0:
			return cty.NullVal(result), nil
		case 1:
			return args[0].AsValueSlice()[0], nil
		}
		return cty.NilVal, function.NewArgErrorf(0, "it has %d elements, but at most one is allowed", args[0].LengthInt())
	},
})

// indexOf is the number of the first element of a list that equals a value, from 0.
var indexOf = valueFunction(cty.Number, func(args []cty.Value) (cty.Value, error) {
	if t := args[0].Type(); !t.IsListType() && !t.IsTupleType() {
		return cty.NilVal, function.NewArgErrorf(0, "a list is wanted")
	}
	for i, v := range args[0].Elements() {
		if equal, err := stdlib.Equal(v, args[1]); err == nil && equal.IsKnown() && equal.True() {
			return i, nil
		}
	}
	return cty.NilVal, errors.New("the list has no such element")
}, function.Parameter{Name: "list", Type: cty.DynamicPseudoType}, function.Parameter{Name: "value", Type: cty.DynamicPseudoType})

// matchKeys returns the elements of one list whose counterparts in a second are in a third.
var matchKeys = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "values", Type: cty.List(cty.DynamicPseudoType)},
		{Name: "keys", Type: cty.List(cty.DynamicPseudoType)}, {Name: "searchset", Type: cty.List(cty.DynamicPseudoType)}},
	Type: func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
		values, keys, wanted := args[0].AsValueSlice(), args[1].AsValueSlice(), args[2].AsValueSlice()
		if len(values) != len(keys) {
			return cty.NilVal, fmt.Errorf("there are %d values and %d keys; as many are wanted", len(values), len(keys))
		}
		var matched []cty.Value
		for i, key := range keys {
			if slices.ContainsFunc(wanted, func(w cty.Value) bool { return w.RawEquals(key) }) {
				matched = append(matched, values[i])
			}
		}
		if len(matched) == 0 {
			return cty.ListValEmpty(result.ElementType()), nil
		}
		return cty.ListVal(matched), nil
	},
})

// transpose maps each text in a map of lists to the keys that had it.
var transpose = valueFunction(cty.Map(cty.List(cty.String)), func(args []cty.Value) (cty.Value, error) {
	turned := map[string][]cty.Value{}
	for key, list := range args[0].Elements() { // by key
		for _, v := range list.Elements() {
			if v.IsNull() {
				return cty.NilVal, function.NewArgErrorf(0, "there is a null in it")
			}
			turned[v.AsString()] = append(turned[v.AsString()], key)
		}
	}
	if len(turned) == 0 {
		return cty.MapValEmpty(cty.List(cty.String)), nil
	}
	result := map[string]cty.Value{}
	for text, keys := range turned {
		result[text] = cty.ListVal(keys)
	}
	return cty.MapVal(result), nil
}, function.Parameter{Name: "values", Type: cty.Map(cty.List(cty.String))})
