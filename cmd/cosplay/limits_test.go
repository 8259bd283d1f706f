package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whatever a file contains, cosplay answers within these bounds.
const (
	mostMemory = 1 << 30 // bytes
	mostTime   = 30 * time.Second
)

// pathological is an input that would need too much memory, time or stack.
type pathological struct {
	name  string
	files map[string]string
	links map[string]string // to a device, a pipe or a large file, see special
	args  []string          // default: validate
	stdin string            // a special file
	typed string            // instead
	fits  bool              // it is within the limits
	want  string            // of the diagnostic; default: a limit, with file and line
}

// local is a configuration of one local.
func local(value string) map[string]string {
	return map[string]string{"cosplay.hcl": "locals {\n  a = " + value + "\n}\n"}
}

// chain is a configuration of locals, each made of the one before; in the last, %[1]d is the number of the one before.
func chain(first, next string, n int) map[string]string {
	var src strings.Builder
	fmt.Fprintf(&src, "locals {\n  l0 = %s\n", first)
	for i := range n {
		fmt.Fprintf(&src, "  l%d = "+next+"\n", i+1, i)
	}
	return map[string]string{"cosplay.hcl": src.String() + "}\n"}
}

func repeat(s string) string { return strings.Repeat(s, 300_000) }

func inJSON(value string) map[string]string {
	return map[string]string{"cosplay.hcl.json": `{"locals": {"a": ` + value + `}}`}
}

// bomb is a text of zeros, packed.
func bomb(t *testing.T) string {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	zeros := make([]byte, 1<<20)
	for range 1024 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// big is an expression for a text of 235 kB, and many for a list of 64,000 numbers.
const (
	big  = `join("", [for i in range(1024) : "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"])`
	many = `flatten([for i in range(64) : [for j in range(1000) : i * 1000 + j]])`
)

func pathologicals(t *testing.T) []pathological {
	pipes := `regular file`
	all := []pathological{
		{name: "not", files: local(repeat("!") + "true")},
		{name: "minus", files: local(repeat("-") + "1")},
		{name: "sum", files: local(repeat("1+") + "1")},
		{name: "and", files: local(repeat("true&&") + "true")},
		{name: "splat", files: local("[]" + repeat("[*]"))},
		{name: "attribute-splat", files: local("[]" + repeat(".*"))},
		{name: "index", files: local("[0]" + repeat("[0+0]"))},
		{name: "conditional", files: local(repeat("true?1:") + "1")},
		{name: "parentheses", files: local(repeat("(") + "1" + repeat(")"))},
		{name: "calls", files: local(repeat("abs(") + "1" + repeat(")"))},
		{name: "interpolations", files: local(repeat(`"${`) + "1" + repeat(`}"`))},
		{name: "directives", files: local(`"` + repeat("%{if true}") + repeat("%{endif}") + `"`)},
		{name: "objects", files: local(repeat("{a=") + "1" + repeat("}"))},
		{name: "loops", files: local(repeat("[for x in [1]:") + "1" + repeat("]"))},
		{name: "blocks", files: map[string]string{"cosplay.hcl": repeat("a {\n")}},
		{name: "type", files: map[string]string{"cosplay.hcl": "variable \"a\" {\n  type = " + repeat("list(") + "any" + repeat(")") + "\n}\n"}},
		{name: "json-brackets", files: inJSON(repeat("[") + repeat("]"))},
		{name: "json-not", files: inJSON(`"${` + repeat("!") + `true}"`), want: limit},
		{name: "json-interpolations", files: inJSON(`"` + repeat("${") + "1" + repeat("}") + `"`)},
		{name: "json-key", files: inJSON(`{"${` + repeat("!") + `true}": 1}`)},
		{name: "typed-value", files: map[string]string{"cosplay.hcl": "variable \"a\" {\n  type = list(bool)\n}\n"}, args: []string{"validate", "--var", "a=" + strings.Repeat("!", 100_000)}, want: "brackets and operators are open"},
		{name: "values", files: map[string]string{"cosplay.hcl": "variable \"a\" {}\n", "cosplay.hclvars": "a = " + repeat("!") + "true\n"}, want: "nested too deeply"},
		{name: "templatefile", files: map[string]string{"cosplay.hcl": local(`templatefile("t", {})`)["cosplay.hcl"], "t": "${" + repeat("!") + "true}"}},
		{name: "templatestring", files: local(`templatestring("$${` + repeat("!") + `true}", {})`)},
		{name: "jsondecode", files: map[string]string{"cosplay.hcl": local(`jsondecode(file("t"))`)["cosplay.hcl"], "t": repeat("[") + repeat("]")}},
		{name: "yamldecode", files: map[string]string{"cosplay.hcl": local(`yamldecode(file("t"))`)["cosplay.hcl"], "t": repeat("[") + repeat("]")}, want: "line 2"},
		{name: "fmt", files: local(repeat("!") + "true"), args: []string{"fmt"}},
		{name: "console", files: local("1"), args: []string{"console"}, typed: strings.Repeat("!", 100_000) + "true\n", want: "nested too deeply"},
		{name: "many-values", files: local("[" + strings.Repeat("1,", 2_000_000) + "]")},
		{name: "many-locals", files: map[string]string{"cosplay.hcl": "locals {\n" + strings.Repeat("a = 1\n", 600_000) + "}\n"}},
		{name: "many-json-values", files: inJSON("[" + strings.Repeat("1,", 2_000_000) + "1]")},
		{name: "long-file", files: map[string]string{"cosplay.hcl": strings.Repeat("# comment\n", 500_000)}},
		{name: "lone-quotes", files: map[string]string{"cosplay.hcl": strings.Repeat("\"\n", 400_000)}, want: "Error"},
		{name: "unknown-blocks", files: map[string]string{"cosplay.hcl": strings.Repeat("sesion \"a\" {}\n", 60_000)}, want: "Error"},

		{name: "double-text", files: chain(`"0123456789"`, `"${local.l%[2]d}${local.l%[2]d}"`, 40)},
		{name: "double-list", files: chain(`[1]`, `concat(local.l%[2]d, local.l%[2]d)`, 40)},
		{name: "double-tuple", files: chain(`[1]`, `[local.l%[2]d, local.l%[2]d]`, 40)},
		{name: "square", files: chain(`10`, `local.l%[2]d * local.l%[2]d`, 40)},
		{name: "json-double", files: map[string]string{"cosplay.hcl.json": `{"locals": {"b": "${` + strings.ReplaceAll(big, `"`, `\"`) + `}", "a": "` + strings.Repeat("${local.b}", 2000) + `"}}`}},
		{name: "parts", files: map[string]string{"cosplay.hcl": "locals {\n  b = " + big + "\n  a = \"" + strings.Repeat("${local.b}", 2000) + "\"\n}\n"}},
		{name: "loop-of-texts", files: map[string]string{"cosplay.hcl": "locals {\n  b = " + big + "\n  a = [for i in range(1000) : \"${local.b}${i}\"]\n}\n"}},
		{name: "template-loop", files: map[string]string{"cosplay.hcl": "locals {\n  b = " + big + "\n  a = \"%{for i in range(1000)}${local.b}%{endfor}\"\n}\n"}},
		{name: "nested-loops", files: local("[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : c]]]")},
		{name: "deep-loops", files: local("length([for a in range(1000) : length([for b in range(1000) : length([for c in range(1000) : c])])])")},
		{name: "comparisons", files: map[string]string{"cosplay.hcl": "locals {\n  b = " + many + "\n  c = " + many + "\n  a = [for i in range(1000) : [for j in range(1000) : local.b == local.c]]\n}\n"}},
		{name: "setproduct", files: local("setproduct(range(1000), range(1000), range(1000), range(1000))")},
		{name: "indent", files: local(`indent(1000000000, "a\nb")`)},
		{name: "format", files: local(`format("%0999999999d", 1)`)},
		{name: "formatlist", files: local(`formatlist("%s", [for i in range(1000) : ` + big + `])`)},
		{name: "join", files: local(`join(` + big + `, range(1000))`)},
		{name: "replace", files: local(`replace(` + big + `, "0", ` + big + `)`)},
		{name: "replace-pattern", files: local(`replace(` + big + `, "/./", "$0$0$0$0$0$0$0")`)},
		{name: "regex", files: local(`regexall("(a(.*b)?){1,500}", replace(` + big + `, "/[0-9]/", "a"))`)},
		{name: "regexall", files: local(`regexall("", ` + big + `)`)},
		{name: "split", files: local(`split("", ` + big + `)`)},
		{name: "trim", files: local(`trim(replace(` + big + `, "/[0-9]/", "é"), "${replace(` + big + `, "/[0-9]/", "ü")}é")`)},
		{name: "distinct", files: local(`distinct(` + many + `)`)},
		{name: "merge", files: local(`merge([for i in range(1000) : { for j in range(1000) : "${i}-${j}" => j }]...)`)},
		{name: "range", files: local(`range(0, 1e9)`), want: "line 2"},
		{name: "range-vast", files: local(`range(1e300)`), want: "line 2"},
		{name: "pow", files: local(`"${pow(10, 1e9)}"`), fits: true},
		{name: "tostring", files: local(`tostring(1e20000000)`)},
		{name: "number-in-text", files: local(`"${1e20000000}"`)},
		{name: "number-product", files: local(`"${` + strings.Repeat("1e9999*", 400) + `1}"`)},
		{name: "number-decoded", files: local(`tostring(jsondecode("1e20000000"))`)},
		{name: "number-converted", files: local(`tostring(tonumber("1e20000000"))`)},
		{name: "yaml-aliases", files: local(`yamldecode("` + `a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n` +
			`e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g,*g]\n` + `")`)},
		{name: "jsondecode-wide", files: map[string]string{"cosplay.hcl": local(`jsondecode(file("t"))`)["cosplay.hcl"], "t": "[" + strings.Repeat("[],", 340_000) + "0]"}},
		{name: "csvdecode", files: map[string]string{"cosplay.hcl": local(`csvdecode(file("t"))`)["cosplay.hcl"], "t": strings.Repeat("a\n", 500_000)}},
		{name: "gunzip", files: local(`base64gunzip("` + bomb(t) + `")`)},
		{name: "try", files: local(`try(indent(1000000000, "a\nb"), 1)`), fits: true},
		{name: "local-chain", files: chain("1", "local.l%[2]d", 100_000), want: "locals"},
		{name: "local-cycle", files: chain("local.l20000", "local.l%[2]d", 20_000), want: "depends on itself"},
		{name: "sessions", files: map[string]string{"cosplay.hcl": "locals {\n  b = " + big + "\n}\nsession \"a\" {\n  count = 10000\n  target = \"2060\"\n  env = { A = \"${local.b}${count.index}\" }\n}\n"}},
		{name: "session-files", files: map[string]string{"cosplay.hcl": "session \"a\" {\n  count = 10000\n  target = \"2060\"\n  env = { A = \"${file(\"t\")}${count.index}\" }\n}\n", "t": strings.Repeat("x", 3<<20)}},

		{name: "fileset", files: local(`fileset("/proc", "**")`)},
		{name: "fileset-all", files: local(`fileset("/", "**")`), want: "line 2"},
		{name: "hash", files: local(`filesha256("t")`), links: map[string]string{"t": "large"}, fits: true},
		{name: "state", files: local("1"), links: map[string]string{"cosplay.state.json": "/dev/zero"}, args: []string{"state", "list"}, want: pipes},
		{name: "state-pipe", files: local("1"), links: map[string]string{"cosplay.state.json": "pipe"}, args: []string{"state", "list"}, want: pipes},
		{name: "state-large", files: local("1"), links: map[string]string{"cosplay.state.json": "large"}, args: []string{"state", "list"}, want: "exceeds 64 MiB"},
		{name: "state-nulls", files: map[string]string{"cosplay.hcl": "", "cosplay.state.json": `{"sessions":[` + strings.Repeat("null,", 10_000_000) + `null]}`}, args: []string{"state", "list"}, want: "exceeds"},
		{name: "state-objects", files: map[string]string{"cosplay.hcl": "", "cosplay.state.json": `{"sessions":[` + strings.Repeat("{},", 10_000_000) + `{}]}`}, args: []string{"state", "list"}, want: "exceeds"},
		{name: "config-file", files: local("1"), args: []string{"validate", "--file", "/dev/zero"}, want: pipes},
		{name: "config-large", links: map[string]string{"cosplay.hcl": "large"}, want: "exceeds 4 MiB"},
		{name: "config-pipe", links: map[string]string{"cosplay.hcl": "pipe"}, want: "is no file"},
		{name: "config-stdin", args: []string{"validate", "--file", "-"}, stdin: "/dev/zero", want: "exceeds 4 MiB"},
		{name: "values-pipe", files: local("1"), links: map[string]string{"cosplay.hclvars": "pipe"}, want: pipes},
		{name: "fmt-large", links: map[string]string{"cosplay.hcl": "large"}, args: []string{"fmt"}, want: "exceeds"},
		{name: "fmt-stdin", args: []string{"fmt", "-"}, stdin: "/dev/zero", want: "exceeds 4 MiB"},
	}
	for _, f := range []string{"file", "filebase64", "filemd5", "filesha256", "templatefile"} {
		arg := map[bool]string{true: `, {}`}[f == "templatefile"]
		for _, path := range []string{"/dev/zero", "pipe"} {
			all = append(all, pathological{name: f + "-" + filepath.Base(path), files: local(f + `("t"` + arg + `)`), links: map[string]string{"t": path}, want: "(?s)line 2.*regular file"})
		}
		if arg != "" || strings.HasPrefix(f, "file") && f != "filemd5" && f != "filesha256" {
			all = append(all, pathological{name: f + "-large", files: local(f + `("t"` + arg + `)`), links: map[string]string{"t": "large"}})
		}
	}
	for _, path := range []string{"/dev/zero", "pipe", "large"} {
		want := func(large string) string { return cmp.Or(map[string]string{"large": large}[path], pipes) }
		all = append(all,
			pathological{name: "var-file-" + filepath.Base(path), files: local("1"), links: map[string]string{"t": path}, args: []string{"validate", "--var-file", "t"}, want: want("exceeds 256 MiB")},
			pathological{name: "plan-file-" + filepath.Base(path), files: local("1"), links: map[string]string{"t": path}, args: []string{"apply", "t"}, want: want("exceeds 64 MiB")})
	}
	return all
}

// limit is a diagnostic about a limit, with its place.
const limit = "a limit"

// TestLimits runs cosplay on inputs that would exceed time, memory or stack. It prints the time and the peak memory of each.
func TestLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs minutes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "cosplay") // the test binary, which is cosplay by this name
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	all := pathologicals(t)
	for i, p := range all {
		all[i] = pathological{}
		t.Run(p.name, func(t *testing.T) { p.run(t, bin) })
	}
}

func (p pathological) run(t *testing.T, bin string) {
	dir := t.TempDir()
	special := map[string]string{"pipe": filepath.Join(t.TempDir(), "pipe"), "large": filepath.Join(t.TempDir(), "large")}
	if err := unix.Mkfifo(special["pipe"], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(special["large"], nil, 0o600); err != nil || os.Truncate(special["large"], 5<<30) != nil {
		t.Fatal(err)
	}
	for name, content := range p.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range p.links {
		if err := os.Symlink(cmp.Or(special[to], to), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	args := p.args
	if args == nil {
		args = []string{"validate"}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*mostTime)
	defer cancel()
	// The limit of the shell only protects the machine: Go reserves more address space than it uses.
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v 4000000; exec "$0" "$@"`, bin}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "NO_COLOR=1")
	if p.stdin != "" {
		in, err := os.Open(p.stdin)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		cmd.Stdin = in
	}
	if p.typed != "" {
		cmd.Stdin = strings.NewReader(p.typed)
	}
	clear(p.files)
	debug.FreeOSMemory() // the kernel counts the memory of the process that starts another
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	_ = cmd.Run() // the status is checked
	took := time.Since(began)
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	shown := strings.Join(strings.Fields(out.String()), " ")
	t.Logf("%-22s %6.2f s %5d MiB, exit %d", p.name, took.Seconds(), peak>>20, cmd.ProcessState.ExitCode())
	if took > mostTime || peak > mostMemory {
		t.Errorf("it took %s and %d MiB", took, peak>>20)
	}
	want, status := cmp.Or(p.want, limit), 1
	if p.fits {
		want, status = "", 0
	}
	found := regexp.MustCompile(want).MatchString(shown)
	if want == limit {
		found = strings.Contains(shown, "cosplay.hcl") && strings.Contains(shown, " line ") && regexp.MustCompile("exceeds|nested too deeply").MatchString(shown)
	}
	if !found || cmd.ProcessState.ExitCode() != status {
		t.Errorf("exit %d, without %q in: %.1500s", cmd.ProcessState.ExitCode(), want, shown)
	}
	if len(shown) > 64<<10 {
		t.Errorf("it prints %d bytes", len(shown))
	}
}
