package config

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	textencoding "golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"

	"cosplay/internal/pattern"
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

var errNoBase64 = errors.New("this is not Base64")

var (
	startsWith  = predicate(strings.HasPrefix, "str", "prefix")
	endsWith    = predicate(strings.HasSuffix, "str", "suffix")
	strContains = predicate(strings.Contains, "str", "substr")

	baseName  = mapping(func(p string) (string, error) { return path.Base(p), nil }, "path")
	dirName   = mapping(func(p string) (string, error) { return path.Dir(p), nil }, "path")
	urlEncode = mapping(func(s string) (string, error) { return url.QueryEscape(s), nil }, "str")
	urlDecode = mapping(func(s string) (string, error) {
		text, err := url.QueryUnescape(s)
		if err != nil {
			err = errors.New("a % in it is not followed by two digits of base 16")
		}
		return text, err
	}, "str")

	base64Encode = mapping(func(s string) (string, error) { return inBase64([]byte(s)), nil }, "str")
	base64Decode = mapping(func(s string) (string, error) {
		data, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return "", errNoBase64
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

// flags returns a function that joins a list of booleans, of which null counts as false.
func flags(none cty.Value, join func(a, b cty.Value) cty.Value) function.Function {
	return valueFunction(cty.Bool, func(args []cty.Value) (cty.Value, error) {
		result := none
		for _, v := range args[0].Elements() {
			if v.IsNull() {
				v = cty.False
			}
			result = join(result, v)
		}
		return result, nil
	}, function.Parameter{Name: "list", Type: cty.List(cty.Bool)})
}

var (
	allTrue = flags(cty.True, cty.Value.And)
	anyTrue = flags(cty.False, cty.Value.Or)
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

// matchKeys returns the elements of one list whose counterparts in a second are in a third. Keys and wanted keys are
// compared in the type that both convert to.
var matchKeys = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "values", Type: cty.List(cty.DynamicPseudoType)},
		{Name: "keys", Type: cty.List(cty.DynamicPseudoType)}, {Name: "searchset", Type: cty.List(cty.DynamicPseudoType)}},
	Type: func(args []cty.Value) (cty.Type, error) {
		if common, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()}); common == cty.NilType {
			return cty.NilType, errors.New("the keys and the wanted keys must have the same type")
		}
		return args[0].Type(), nil
	},
	Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
		common, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()})
		keys, err := convert.Convert(args[1], common)
		wanted, wantedErr := convert.Convert(args[2], common)
		if err := errors.Join(err, wantedErr); err != nil {
			return cty.NilVal, err
		}
		if args[0].LengthInt() != keys.LengthInt() {
			return cty.NilVal, fmt.Errorf("there are %d values and %d keys; as many are wanted", args[0].LengthInt(), keys.LengthInt())
		}
		values, all := args[0].AsValueSlice(), cty.NewValueSet(common.ElementType())
		for _, w := range wanted.AsValueSlice() {
			all.Add(w)
		}
		var matched []cty.Value
		for i, key := range keys.AsValueSlice() {
			if all.Has(key) {
				matched = append(matched, values[i])
			}
		}
		if len(matched) == 0 {
			return cty.ListValEmpty(result.ElementType()), nil
		}
		return cty.ListVal(matched), nil
	},
})

// lookup returns an element of a map; the third argument, which can be left out, is for a key that the map lacks.
var lookup = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "inputMap", Type: cty.DynamicPseudoType, AllowMarked: true}, {Name: "key", Type: cty.String, AllowMarked: true}},
	VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowMarked: true, AllowNull: true, AllowUnknown: true,
		AllowDynamicType: true},
	Type: func(args []cty.Value) (cty.Type, error) {
		switch len(args) {
		case 2:
			found, err := elementOf(args)
			return found.Type(), err
		case 3:
			return stdlib.LookupFunc.ReturnTypeForValues(args)
		}
		return cty.NilType, errors.New("it takes a map, a key and, for a key that the map lacks, a value")
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if len(args) == 2 {
			return elementOf(args)
		}
		return stdlib.LookupFunc.Call(args)
	},
})

func elementOf(args []cty.Value) (cty.Value, error) {
	if !isMap(args[0].Type()) {
		return cty.DynamicVal, function.NewArgErrorf(0, "a map is wanted")
	}
	found, diags := hcl.Index(args[0], args[1], nil)
	if diags.HasErrors() {
		return cty.DynamicVal, errors.New("the map has no such key. Add it, or a third argument for this case")
	}
	return found, nil
}

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

// encoding finds a character encoding by its name in the registry of IANA.
func encoding(name string) (textencoding.Encoding, error) {
	found, err := ianaindex.IANA.Encoding(name)
	if err != nil || found == nil {
		return nil, function.NewArgErrorf(1, "%q is no character encoding that cosplay knows; write a name of the IANA registry, like UTF-16LE", name)
	}
	return found, nil
}

var (
	textEncodeBase64 = textFunction(func(t []string) (cty.Value, error) {
		named, err := encoding(t[1])
		if err != nil {
			return cty.NilVal, err
		}
		data, err := named.NewEncoder().String(t[0])
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "the text has characters that %s lacks", t[1])
		}
		return cty.StringVal(inBase64([]byte(data))), nil
	}, cty.String, "string", "encoding")

	textDecodeBase64 = textFunction(func(t []string) (cty.Value, error) {
		named, err := encoding(t[1])
		if err != nil {
			return cty.NilVal, err
		}
		data, err := base64.StdEncoding.DecodeString(t[0])
		if err != nil {
			return cty.NilVal, errNoBase64
		}
		text, err := named.NewDecoder().Bytes(data)
		if err != nil || strings.ContainsRune(string(text), utf8.RuneError) {
			return cty.NilVal, function.NewArgErrorf(0, "the content is not text in %s", t[1])
		}
		return cty.StringVal(string(text)), nil
	}, cty.String, "source", "encoding")

	base64Gzip = mapping(func(s string) (string, error) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write([]byte(s))
		err = errors.Join(err, w.Close())
		return inBase64(packed.Bytes()), err
	}, "str")

	base64Gunzip = mapping(func(s string) (string, error) {
		data, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return "", errNoBase64
		}
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return "", errors.New("the content is not in the format of gzip")
		}
		text, err := io.ReadAll(io.LimitReader(r, maxText+1))
		switch {
		case err != nil:
			return "", errors.New("the content is damaged: gzip cannot unpack it")
		case len(text) > maxText:
			return "", tooLong("the unpacked text")
		case !utf8.Valid(text):
			return "", errors.New("the content is not text in UTF-8")
		}
		return string(text), nil
	}, "str")
)

// cidrContains reports whether a range of addresses contains an address, or a whole other range.
var cidrContains = textFunction(func(t []string) (cty.Value, error) {
	outer, err := netip.ParsePrefix(t[0])
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "%q is no range of addresses; write one like 10.0.0.0/8", t[0])
	}
	inner, err := netip.ParsePrefix(t[1])
	if address, addressErr := netip.ParseAddr(t[1]); err != nil && addressErr == nil {
		inner, err = address.Prefix(address.BitLen())
	}
	switch {
	case err != nil:
		return cty.NilVal, function.NewArgErrorf(1, "%q is no address and no range; write one like 10.1.2.3 or 10.0.0.0/8", t[1])
	case outer.Addr().BitLen() != inner.Addr().BitLen():
		return cty.NilVal, errors.New("one argument is IPv4 and the other IPv6; write both in one of them")
	}
	return cty.BoolVal(outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())), nil
}, cty.Bool, "containing_prefix", "contained_ip_or_prefix")

// timeCompare returns -1, 0 or 1 if the first time is before, at or after the second.
var timeCompare = textFunction(func(t []string) (cty.Value, error) {
	var utc [2]string
	for i, typed := range t {
		var err error
		if utc[i], err = inUTC(typed); err != nil {
			return cty.NilVal, function.NewArgErrorf(i, "%q is no time; write one like 2026-03-01T12:00:00Z", typed)
		}
	}
	return cty.NumberIntVal(int64(strings.Compare(utc[0], utc[1]))), nil
}, cty.Number, "timestamp_a", "timestamp_b")

// inUTC returns a time of RFC 3339 so that the order of such texts is that of the times. The standard library's
// package time is not for this package, because it reads the clock.
func inUTC(typed string) (string, error) {
	zone, err := stdlib.FormatDate(cty.StringVal("ZZZZZ"), cty.StringVal(typed))
	if err != nil {
		return "", err
	}
	sign, rest := zone.AsString()[:1], zone.AsString()[1:]
	back := strings.Replace(map[string]string{"+": "-", "-": ""}[sign]+rest, ":", "h", 1) + "m"
	moved, err := stdlib.TimeAdd(cty.StringVal(typed), cty.StringVal(back))
	if err != nil {
		return "", err
	}
	whole, err := stdlib.FormatDate(cty.StringVal("YYYY-MM-DD hh:mm:ss"), moved)
	if err != nil {
		return "", err
	}
	_, fraction, _ := strings.Cut(typed, ".")
	return whole.AsString() + "." + strings.TrimRight(leadingDigits().FindString(fraction), "0"), nil
}

var leadingDigits = pattern.Of(`^\d*`)
