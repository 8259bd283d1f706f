package config_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/config"
)

// calls are expressions with their results as JSON.
var calls = map[string]string{
	`abs(-3)`: `3`, `ceil(1.2)`: `2`, `floor(1.8)`: `1`, `log(8, 2)`: `3`, `max(1, 3, 2)`: `3`, `min(1, 3, 2)`: `1`,
	`parseint("ff", 16)`: `255`, `pow(2, 10)`: `1024`, `signum(-7)`: `-1`, `sum([1, 2, 3.5])`: `6.5`,

	`chomp("a\n")`: `"a"`, `startswith("cosplay:1", "cosplay:")`: `true`, `endswith("a.pub", ".pub")`: `true`,
	`strcontains("abc", "bc")`: `true`, `strcontains("abc", "cb")`: `false`,
	`format("%s-%02d", "w", 3)`: `"w-03"`, `formatlist("w-%d", [1, 2])`: `["w-1","w-2"]`, `indent(2, "a\nb")`: `"a\n  b"`,
	`join("-", ["a", "b"])`: `"a-b"`, `lower("RTX")`: `"rtx"`, `regex("[0-9]+", "rtx2060")`: `"2060"`,
	`regexall("[a-z]", "a1b")`: `["a","b"]`, `replace("a.b", "/[.]/", "-")`: `"a-b"`, `replace("a.b", ".", "-")`: `"a-b"`,
	`split(",", "a,b")`: `["a","b"]`, `strrev("abc")`: `"cba"`, `substr("abc", 1, 2)`: `"bc"`, `title("a b")`: `"A B"`,
	`trim("--a--", "-")`: `"a"`, `trimprefix("ab", "a")`: `"b"`, `trimspace(" a ")`: `"a"`, `trimsuffix("ab", "b")`: `"a"`, `upper("a")`: `"A"`,

	`alltrue([true, true])`: `true`, `alltrue([true, false])`: `false`, `alltrue([])`: `true`, `anytrue([false, true])`: `true`, `anytrue([])`: `false`,
	`chunklist([1, 2, 3], 2)`: `[[1,2],[3]]`, `coalesce("", null, "b")`: `"b"`, `coalescelist([], [1])`: `[1]`, `compact(["a", ""])`: `["a"]`,
	`concat([1], [2])`: `[1,2]`, `contains(["a"], "a")`: `true`, `distinct([1, 1])`: `[1]`, `element([1, 2], 3)`: `2`,
	`flatten([[1], [2, [3]]])`: `[1,2,3]`, `index(["a", "b"], "b")`: `1`, `keys({ b = 1, a = 2 })`: `["a","b"]`,
	`length([1, 2])`: `2`, `length({ a = 1, b = "x" })`: `2`, `length("höhe")`: `4`, `lookup({ a = 1 }, "b", 2)`: `2`,
	`matchkeys(["a", "b", "c"], [1, 2, 1], [1])`: `["a","c"]`, `matchkeys(["a"], [1], [2])`: `[]`,
	`merge({ a = 1 }, { b = 2 })`: `{"a":1,"b":2}`, `one(["a"])`: `"a"`, `one([])`: `null`, `one(toset([7]))`: `7`,
	`range(3)`: `[0,1,2]`, `reverse([1, 2])`: `[2,1]`, `setintersection([1, 2], [2])`: `[2]`, `setproduct(["a"], ["b"])`: `[["a","b"]]`,
	`setsubtract([1, 2], [2])`: `[1]`, `setunion([1], [2])`: `[1,2]`, `slice([1, 2, 3], 1, 2)`: `[2]`, `sort(["b", "a"])`: `["a","b"]`,
	`transpose({ a = ["x", "y"], b = ["x"] })`: `{"x":["a","b"],"y":["a"]}`, `transpose({})`: `{}`, `values({ a = 1 })`: `[1]`,
	`zipmap(["a"], [1])`: `{"a":1}`,

	`base64encode("hello")`: `"aGVsbG8="`, `base64decode("aGVsbG8=")`: `"hello"`, `csvdecode("a,b\n1,2")`: `[{"a":"1","b":"2"}]`,
	`jsondecode("{\"a\": [1]}")`: `{"a":[1]}`, `jsonencode({ a = [1] })`: `"{\"a\":[1]}"`, `urlencode("a b&c")`: `"a+b%26c"`,
	`yamldecode("a: [1, x]")`: `{"a":[1,"x"]}`, `yamlencode({ a = [1] })`: `"\"a\":\n- 1\n"`,

	`md5("hello")`: `"5d41402abc4b2a76b9719d911017c592"`, `sha1("hello")`: `"aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"`,
	`sha256("hello")`:                     `"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"`,
	`substr(sha512("hello"), 0, 8)`:       `"9b71d224"`,
	`base64sha256("hello")`:               `"LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="`,
	`substr(base64sha512("hello"), 0, 8)`: `"m3HSJL1i"`,

	`formatdate("YYYY-MM-DD", "2026-03-01T00:00:00Z")`: `"2026-03-01"`, `timeadd("2026-03-01T00:00:00Z", "24h")`: `"2026-03-02T00:00:00Z"`,

	`can(tonumber("x"))`: `false`, `try(tonumber("x"), 3)`: `3`,
	`issensitive(sensitive("a"))`: `true`, `nonsensitive(sensitive("a"))`: `"a"`, `issensitive(sensitive("a") == "b")`: `true`,
	`tobool("true")`: `true`, `tolist(["a", 1])`: `["a","1"]`, `tomap({ a = 1 })`: `{"a":1}`, `tonumber("3")`: `3`, `toset(["a", "a"])`: `["a"]`, `tostring(3)`: `"3"`,

	`abspath("a/../b")`: `"/project/b"`, `abspath("/x/.")`: `"/x"`, `basename("a/b.txt")`: `"b.txt"`, `dirname("a/b.txt")`: `"a"`,
	`pathexpand("~/x")`: `"/home/ada/x"`, `pathexpand("a~")`: `"a~"`,
	`env("USER")`: `"ada"`, `env("EMPTY")`: `""`, `env("NOT", "else")`: `"else"`, `env("NOT", null)`: `null`,
	`file("motd.txt")`: `"hello\n"`, `file("${"."}/motd.txt")`: `"hello\n"`, `file("/project/motd.txt")`: `"hello\n"`, `file("~/.config/secret")`: `"x"`,
	`fileexists("motd.txt")`: `true`, `fileexists("nothing.txt")`: `false`,
	`fileset(".", "data/**/*.txt")`: `["data/a.txt","data/sub/b.txt"]`, `fileset("data", "*.txt")`: `["a.txt"]`, `fileset("data", "*.md")`: `[]`, `fileset("nowhere", "*")`: `[]`,
	`filebase64("noise.bin")`: `"//4="`, `filemd5("motd.txt")`: `"b1946ac92492d2347c6235b4d2611184"`,
	`filesha1("motd.txt")`:                        `"f572d396fae9206628714fb2ce00f72e94f2258f"`,
	`filesha256("motd.txt") == sha256("hello\n")`: `true`, `filesha512("motd.txt") == sha512("hello\n")`: `true`,
	`filebase64sha256("motd.txt") == base64sha256("hello\n")`: `true`, `filebase64sha512("motd.txt") == base64sha512("hello\n")`: `true`,
	`templatefile("greeting.tftpl", { name = "ada", loud = true })`: `"hello ada!"`,
}

// badCalls are expressions with their error messages.
var badCalls = map[string]string{
	`file("nothing.txt")`:             `there is no file "nothing.txt"`,
	`file("")`:                        `the path is empty`,
	`file("noise.bin")`:               `not text in UTF-8; filebase64 reads it`,
	`fileexists("data")`:              `is there, and is no file`,
	`env("NOT")`:                      `NOT is not set in the environment; set it, or say what to take then: env\("NOT", "..."\)`,
	`env("NOT", "a", "b")`:            `takes a name and what to take`,
	`templatefile("wrong.tftpl", {})`: `wrong.tftpl line 1: unknown variable "absent"`,
	`templatefile("again.tftpl", {})`: `again.tftpl line 1: a template cannot fill in another`,
	`templatefile("greeting.tftpl", { nam = 1, loud = 1 })`:   `Did you mean "nam"`,
	`templatefile("broken.tftpl", {})`:                        `broken.tftpl line 1: missing expression`,
	`templatefile("greeting.tftpl", "x")`:                     `a map of values is wanted`,
	`templatefile("greeting.tftpl", { name = [], loud = 1 })`: `greeting.tftpl line 1: invalid template interpolation value`,
	`one([1, 2])`:                 `at most one`,
	`one(toset([1, 2]))`:          `it has 2 elements`,
	`one("a")`:                    `a list or set`,
	`sum([])`:                     `the list is empty`,
	`index(["a"], "b")`:           `no such element`,
	`index("a", "b")`:             `a list is wanted`,
	`coalesce("", null)`:          `no non-null, non-empty-string arguments`,
	`matchkeys([1], [1, 2], [1])`: `1 values and 2 keys`,
	`base64decode("?")`:           `not Base64`,
	`base64decode("//4=")`:        `not text in UTF-8`,
	`transpose({ a = [null] })`:   `a null in it`,
	`fileset(".", "[")`:           `the pattern`,
	`timestamp()`:                 `no function of that name|unknown`,
}

func evaluate(t *testing.T, src string) (cty.Value, hcl.Diagnostics) {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(src), "a.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", src, diags)
	}
	functions := config.Functions(options())
	for name, f := range maps.Clone(functions) {
		functions["core::"+name] = f
	}
	path := cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(".")})
	return expr.Value(&hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{"path": path}})
}

func TestFunctions(t *testing.T) {
	for src, want := range calls {
		v, diags := evaluate(t, src)
		if diags.HasErrors() {
			t.Errorf("%s: %v", src, diags)
			continue
		}
		bare, _ := v.UnmarkDeep()
		got, err := json.Marshal(ctyjson.SimpleJSONValue{Value: bare})
		if err != nil || string(got) != want {
			t.Errorf("%s is %s, %v; want %s", src, got, err, want)
		}
	}
}

// TestPublishedExamples compares the functions with testdata/functions.txt, which covers OpenTofu's examples.
func TestPublishedExamples(t *testing.T) {
	agree, all, calls := 0, 0, map[string]int{}
	name := regexp.MustCompile(`([a-z0-9]+)\(`)
	for line := range strings.Lines(string(read(t, "testdata/functions.txt"))) {
		m := regexp.MustCompile(`^(.*) (==>|!=>|\?\?\?) (.*)\n$`).FindStringSubmatch(line)
		if m == nil || line[0] == '#' {
			continue
		}
		all++
		for _, called := range name.FindAllStringSubmatch(m[1], -1) {
			calls[called[1]]++
		}
		v, diags := evaluate(t, m[1])
		bare, _ := v.UnmarkDeep()
		got, _ := json.Marshal(ctyjson.SimpleJSONValue{Value: bare})
		wanted := m[3]
		switch {
		case m[2] == "???" && diags.HasErrors():
			t.Logf("not in cosplay: %s: %s", m[1], wanted)
			continue
		case m[2] == "!=>" && diags.HasErrors() && strings.Contains(diags.Error(), wanted):
		case m[2] == "==>" && !diags.HasErrors() && sameJSON(string(got), wanted):
		default:
			t.Errorf("%s is %s, %v; want %s", m[1], got, diags, wanted)
			continue
		}
		agree++
	}
	t.Logf("%d of %d agree", agree, all)
	for name := range config.Functions(options()) {
		if calls[name] < 2 && name != "env" {
			t.Errorf("%s() has %d examples", name, calls[name])
		}
	}
}

func sameJSON(a, b string) bool {
	var one, two any
	return json.Unmarshal([]byte(a), &one) == nil && json.Unmarshal([]byte(b), &two) == nil && reflect.DeepEqual(one, two)
}

func TestFunctionsRefuse(t *testing.T) {
	for src, want := range badCalls {
		_, diags := evaluate(t, src)
		if !diags.HasErrors() || !regexp.MustCompile(want).MatchString(diags.Error()) {
			t.Errorf("%s: %v; want %s", src, diags, want)
		}
	}
}

func TestRSADecrypt(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := rsa.EncryptPKCS1v15(rand.Reader, &key.PublicKey, []byte("hello")) //nolint:staticcheck // the only padding that rsadecrypt reads
	if err != nil {
		t.Fatal(err)
	}
	written := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	v, diags := evaluate(t, fmt.Sprintf("rsadecrypt(%q, %q)", base64.StdEncoding.EncodeToString(hidden), written))
	if diags.HasErrors() || v.AsString() != "hello" {
		t.Errorf("%#v, %v", v, diags)
	}
}
