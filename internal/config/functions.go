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

	"alltrue": allTrue, "anytrue": anyTrue, "chunklist": stdlib.ChunklistFunc, "coalesce": coalesce,
	"coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc,
	"contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
	"flatten": stdlib.FlattenFunc, "index": indexOf, "keys": stdlib.KeysFunc, "length": length,
	"lookup": stdlib.LookupFunc, "matchkeys": matchKeys, "merge": stdlib.MergeFunc, "one": one,
	"range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc,
	"setproduct": stdlib.SetProductFunc, "setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc,
	"slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "transpose": transpose, "values": stdlib.ValuesFunc,
	"zipmap": stdlib.ZipmapFunc,

	"base64decode": base64Decode, "base64encode": base64Encode, "csvdecode": stdlib.CSVDecodeFunc,
	"jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "urlencode": urlEncode,
	"yamldecode": ctyyaml.YAMLDecodeFunc, "yamlencode": ctyyaml.YAMLEncodeFunc,

	"formatdate": stdlib.FormatDateFunc, "timeadd": stdlib.TimeAddFunc,

	"basename": baseName, "dirname": dirName,

	"can": tryfunc.CanFunc, "try": tryfunc.TryFunc,
	"issensitive": isSensitiveFunc, "nonsensitive": nonSensitive, "sensitive": makeSensitive,
	"tobool":   stdlib.MakeToFunc(cty.Bool),
	"tolist":   stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
	"tomap":    stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
	"tonumber": stdlib.MakeToFunc(cty.Number),
	"toset":    stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
	"tostring": stdlib.MakeToFunc(cty.String),
}

// Functions returns the functions that expressions can call, by name.
func Functions(o Options) map[string]function.Function {
	all := maps.Clone(valueFunctions)
	w := world{o}
	maps.Copy(all, map[string]function.Function{
		"abspath":    mapping(w.absolute, "path"),
		"env":        w.env(),
		"file":       mapping(w.readText, "path"),
		"fileexists": textFunction(w.fileExists, cty.Bool, "path"),
		"fileset":    textFunction(w.fileSet, cty.Set(cty.String), "path", "pattern"),
		"pathexpand": mapping(w.expand, "path"),
		"filebase64": w.fileDigest(func(data []byte) []byte { return data }, inBase64),
	})
	for name := range digests {
		all[name], all["file"+name] = digestOf(sumOf(name), inHex), w.fileDigest(sumOf(name), inHex)
	}
	for _, name := range []string{"sha256", "sha512"} {
		all["base64"+name], all["filebase64"+name] = digestOf(sumOf(name), inBase64), w.fileDigest(sumOf(name), inBase64)
	}
	all["templatefile"] = w.templateFile(maps.Clone(all)) // a template cannot call templatefile itself
	return all
}

// digests are the checksums that configurations can ask for, by the names of their functions.
var digests = map[string]func() hash.Hash{"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}

func sumOf(digest string) func([]byte) []byte {
	return func(data []byte) []byte {
		h := digests[digest]()
		h.Write(data)
		return h.Sum(nil)
	}
}

func inHex(data []byte) string { return hex.EncodeToString(data) }

func inBase64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func digestOf(sum func([]byte) []byte, write func([]byte) string) function.Function {
	return mapping(func(s string) (string, error) { return write(sum([]byte(s))), nil }, "str")
}
