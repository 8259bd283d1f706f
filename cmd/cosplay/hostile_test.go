package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// hostile is text that sets a terminal's title and colour, clears it, and turns the
// direction in which it writes.
const hostile = "\x1b]0;title\a\x1b[31m\u009b2J\u202e\x7f"

// hostileFleet has it wherever a configuration can.
const hostileFleet = `
variable "given" {
  type        = string
  default     = "` + hostileHCL + `"
  description = "` + hostileHCL + `"
}
host "lab" { simulate = "1 x h200" }
session "worker" {
  count     = 2
  target    = "2060"
  command   = ["echo", var.given]
  env       = { NAME = var.given }
  workspace = "./${var.given}"
}
output "given" { value = var.given }
check "given" {
  condition     = var.given == ""
  error_message = "not ${var.given}"
}
`

const hostileHCL = `\u001b]0;title\u0007\u001b[31m\u009b2J\u202e\u007f`

// TestHostileText feeds text that steers a terminal to cosplay from everywhere, and
// looks for it in what every command prints.
func TestHostileText(t *testing.T) {
	p := project{t: t, dir: filepath.Join(t.TempDir(), "line\n"+hostile)}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("fleet.hcl", hostileFleet)
	p.harmless("apply", "--auto-approve")
	if out, err := p.command("plan", "--detailed-exitcode").CombinedOutput(); err != nil {
		t.Errorf("the plan of a folder whose name has an end of line is not clean: %v\n%s", err, out)
	}
	// The output of the user's programs, and output for scripts, is not escaped.
	for _, args := range [][]string{{"exec", "worker-0", "--", "printf", "%s", hostile}, {"output", "--raw", "given"}} {
		if out, err := p.command(args...).Output(); err != nil || !strings.Contains(string(out), hostile) {
			t.Errorf("%v: %v, %q", args[0], err, out)
		}
	}
	p.hostileProcess()
	p.hostileNeighbour()
	for _, args := range [][]string{
		{"validate"}, {"plan"}, {"plan", "-v"}, {"plan", "--markdown"}, {"plan", "--json"}, {"drift"}, {"drift", "--json"}, {"status"}, {"status", "-v"}, {"status", "--json"},
		{"ps"}, {"report"}, {"report", "--json"}, {"doctor"}, {"doctor", "--json"}, {"output"}, {"output", "given"}, {"output", "--json"}, {"state", "list"}, {"state", "show", "worker-0"}, {"state", "show", "worker-0", "--json"},
		{"graph"}, {"ssh-config"}, {"sim", "show"}, {"reset"}, {"logs", "worker-0"}, {"ssh", "worker-0"}, {"verify"}, {"state", "rebuild"}, {"watch", "--once"},
		{hostile}, {"--" + hostile}, {"plan", "--" + hostile}, {"plan", "--target", hostile}, {"plan", "--var", "given=" + hostile + "!"}, {"plan", "--var", hostile + "=x"},
		{"plan", "--var-file", hostile}, {"plan", "--file", hostile}, {"--chdir", hostile, "plan"}, {"--state", hostile, "plan"}, {"apply", hostile}, {"fit", hostile}, {"ls", hostile},
		{"exec", hostile, "--", "true"}, {"exec", "worker-0", "--", hostile}, {"import", "worker-0", hostile}, {"import", hostile, "x"}, {"state", "mv", hostile, "x"}, {"state", "mv", "worker-0", hostile},
		{"state", "rm", hostile}, {"reset", "--gpu", hostile}, {"reset", "--host", hostile}, {"reset", "--holder", hostile}, {"sim", "set", "0", hostile, "1"}, {"sim", "set", hostile, "mig", "on"},
		{"sim", "fault", hostile}, {"init", hostile}, {"run", hostile}, {"fmt", hostile}, {"output", hostile}, {"schema", hostile}, {"state", "rebuild", "--lineage", hostile},
	} {
		p.harmless(args...)
	}
	for _, text := range []string{"session \"" + hostile + "\" {\n", hostileFleet + "session \"x\" {\n  target = \"" + hostileHCL + "\"\n}\n",
		strings.Replace(hostileFleet, `"2060"`, `"`+hostileHCL+`"`, 1), strings.Replace(hostileFleet, "1 x h200", hostileHCL, 1)} {
		write("fleet.hcl", text)
		p.harmless("validate")
		p.harmless("plan")
		p.harmless("plan", "--json")
		p.harmless("fmt", "--check")
	}
	write("fleet.hcl", hostileFleet)
	write("cosplay.state.json", hostile)
	p.harmless("plan")
	p.harmless("state", "list")
}

// harmless runs a command, whatever comes of it, and looks for anything in its
// output that a terminal could obey.
func (p project) harmless(args ...string) {
	p.t.Helper()
	c := p.command(args...)
	c.Stdin = strings.NewReader(hostile + "\n")
	out, _ := c.CombinedOutput()
	if c.ProcessState == nil {
		p.t.Fatalf("%q was not started", args)
	}
	for len(out) > 0 {
		r, size := utf8.DecodeRune(out)
		steers := unicode.IsControl(r) && r != '\n' && r != '\t' || r == utf8.RuneError && size == 1 || unicode.Is(unicode.Bidi_Control, r)
		if steers {
			p.t.Errorf("%q prints %q raw: %.60q", args, r, out)
			return
		}
		out = out[size:]
	}
}

// hostileProcess puts a program with such a name on the GPU.
func (p project) hostileProcess() {
	p.t.Helper()
	from, err := exec.LookPath("sleep")
	if err != nil {
		p.t.Fatal(err)
	}
	program := filepath.Join(p.t.TempDir(), "\x1b[31m\n\a\x7f")
	in, err := os.Open(from)
	if err != nil {
		p.t.Fatal(err)
	}
	defer in.Close()
	file, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.Copy(file, in); err != nil {
		p.t.Fatal(err)
	}
	file.Close()
	c := exec.Command(program, "600")
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	p.run("sim", "set", "0", "process", fmt.Sprintf("%d:100:%d", c.Process.Pid, p.shown().GPUs[0].Slices[0].GPUInstance))
}

// hostileNeighbour writes a holder with such a name into the ledger.
func (p project) hostileNeighbour() {
	p.t.Helper()
	pages, err := filepath.Glob(filepath.Join(strings.NewReplacer("[", `\[`).Replace(p.dir), ".cosplay/sim/lab/ledger/GPU-*.json"))
	if err != nil || len(pages) != 1 {
		p.t.Fatal(pages, err)
	}
	text, err := os.ReadFile(pages[0])
	if err != nil {
		p.t.Fatal(err)
	}
	var page map[string]any
	if err := json.Unmarshal(text, &page); err != nil {
		p.t.Fatal(err)
	}
	page["holders"] = append(page["holders"].([]any), map[string]any{"lineage": "other", "state": "/" + hostile, "user": hostile, "since": hostile})
	if text, err = json.Marshal(page); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(pages[0], text, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
