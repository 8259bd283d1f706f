package config

import (
	"crypto/md5"  // #nosec G501 -- a checksum that configurations ask for by name
	"crypto/sha1" // #nosec G505 -- likewise
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"maps"
	"strings"

	"github.com/hashicorp/go-cty-funcs/cidr"
	"github.com/hashicorp/go-cty-funcs/collection"
	"github.com/hashicorp/go-cty-funcs/crypto"
	"github.com/hashicorp/go-cty-funcs/uuid"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// valueFunctions are the functions that depend on their arguments only, under Terraform's names.
var valueFunctions = map[string]function.Function{
	"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
	"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc,
	"signum": stdlib.SignumFunc, "sum": sum,

	"chomp": stdlib.ChompFunc, "endswith": endsWith, "format": stdlib.FormatFunc, "formatlist": stdlib.FormatListFunc,
	"indent": stdlib.IndentFunc, "join": stdlib.JoinFunc, "lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc,
	"regexall": stdlib.RegexAllFunc, "replace": replace, "split": stdlib.SplitFunc, "startswith": startsWith,
	"strcontains": strContains, "strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc,
	"trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc,
	"trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc,

	"alltrue": allTrue, "anytrue": anyTrue, "chunklist": stdlib.ChunklistFunc, "coalesce": collection.CoalesceFunc,
	"coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc,
	"contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
	"flatten": stdlib.FlattenFunc, "index": indexOf, "keys": stdlib.KeysFunc, "length": length,
	"lookup": lookup, "matchkeys": matchKeys, "merge": stdlib.MergeFunc, "one": one,
	"range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc,
	"setproduct": stdlib.SetProductFunc, "setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc,
	"slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "transpose": transpose, "values": stdlib.ValuesFunc,
	"zipmap": stdlib.ZipmapFunc,

	"base64decode": base64Decode, "base64encode": base64Encode, "base64gunzip": base64Gunzip, "base64gzip": base64Gzip,
	"csvdecode": stdlib.CSVDecodeFunc, "jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc,
	"textdecodebase64": textDecodeBase64, "textencodebase64": textEncodeBase64, "urldecode": urlDecode, "urlencode": urlEncode,
	"yamldecode": ctyyaml.YAMLDecodeFunc, "yamlencode": ctyyaml.YAMLEncodeFunc,

	"cidrcontains": cidrContains, "cidrhost": cidr.HostFunc, "cidrnetmask": cidr.NetmaskFunc, "cidrsubnet": cidr.SubnetFunc,
	"cidrsubnets": cidr.SubnetsFunc,

	"formatdate": stdlib.FormatDateFunc, "timeadd": stdlib.TimeAddFunc, "timecmp": timeCompare, "rsadecrypt": crypto.RsaDecryptFunc, "uuidv5": uuid.V5Func,

	"basename": baseName, "dirname": dirName,

	"can": tryfunc.CanFunc, "try": tryfunc.TryFunc,
	"issensitive": isSensitiveFunc, "nonsensitive": nonSensitive, "sensitive": makeSensitive,
	"tobool":   stdlib.MakeToFunc(cty.Bool),
	"tolist":   toCollection(cty.List(cty.DynamicPseudoType)),
	"tomap":    stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
	"tonumber": stdlib.MakeToFunc(cty.Number),
	"toset":    toCollection(cty.Set(cty.DynamicPseudoType)),
	"tostring": stdlib.MakeToFunc(cty.String),
}

// core precedes the name of a function in its long form, core::max, which means the same.
const core = "core::"

// Functions returns the functions that expressions can call, by name, without their long names.
func Functions(o Options) map[string]function.Function { return functions(o, newBudget(), nil) }

func functions(o Options, b *budget, r reads) map[string]function.Function {
	all := maps.Clone(valueFunctions)
	w := world{o, b, r}
	maps.Copy(all, map[string]function.Function{
		"abspath":       mapping(func(typed string) (string, error) { return w.absolute(typed), nil }, "path"),
		"env":           w.env(),
		"plantimestamp": w.planTimestamp(),
		"file":          mapping(w.readText, "path"),
		"fileexists":    textFunction(w.fileExists, cty.Bool, "path"),
		"fileset":       textFunction(w.fileSet, cty.Set(cty.String), "path", "pattern"),
		"pathexpand":    mapping(w.expand, "path"),
		"filebase64":    mapping(w.readBase64, "path"),
	})
	for name, digest := range digests {
		all[name], all["file"+name] = digestOf(digest, inHex), w.fileDigest("file"+name, digest, inHex)
	}
	for _, name := range []string{"sha256", "sha512"} {
		all["base64"+name], all["filebase64"+name] = digestOf(digests[name], inBase64), w.fileDigest("filebase64"+name, digests[name], inBase64)
	}
	for name, f := range all {
		all[name] = b.limited(name, f)
	}
	inside := withCore(all) // a template cannot fill in another
	given := func(text string) (string, string, error) { return text, "the template", nil }
	all["templatefile"] = b.limited("templatefile", w.templateFunction("path", w.readTemplate, inside))
	all["templatestring"] = b.limited("templatestring", w.templateFunction("template", given, inside))
	return all
}

// withCore adds the long names of functions.
func withCore(functions map[string]function.Function) map[string]function.Function {
	all := maps.Clone(functions)
	for name, f := range functions {
		all[core+name] = f
	}
	return all
}

// withoutCore returns the short name of a function.
func withoutCore(name string) string { return strings.TrimPrefix(name, core) }

// digests are the checksums that configurations can ask for, by the names of their functions.
var digests = map[string]func() hash.Hash{"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}

func inHex(data []byte) string { return hex.EncodeToString(data) }

func inBase64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func digestOf(digest func() hash.Hash, write func([]byte) string) function.Function {
	return mapping(func(s string) (string, error) {
		sum := digest()
		sum.Write([]byte(s))
		return write(sum.Sum(nil)), nil
	}, "str")
}

// toCollection is stdlib.MakeToFunc for a list or a set. That compares the types of each two elements of a tuple, which
// takes seconds with ten thousand.
func toCollection(of cty.Type) function.Function {
	convert := stdlib.MakeToFunc(of)
	return function.New(&function.Spec{
		Params: convert.Params(),
		Type: func(args []cty.Value) (cty.Type, error) {
			return convert.ReturnTypeForValues([]cty.Value{asList(args[0])})
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return convert.Call([]cty.Value{asList(args[0])})
		},
	})
}

// asList returns a tuple whose elements have one type as a list.
func asList(v cty.Value) cty.Value {
	if v.IsMarked() || v.IsNull() || !v.IsKnown() || !v.Type().IsTupleType() || v.LengthInt() == 0 {
		return v
	}
	types := v.Type().TupleElementTypes()
	for _, t := range types {
		if !t.Equals(types[0]) {
			return v
		}
	}
	return cty.ListVal(v.AsValueSlice())
}
