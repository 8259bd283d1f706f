package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/worldtest"
)

// configuration makes up a configuration that is valid, out of what the language has.
func configuration(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(lab)
	targets := catalog.Targets()
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	b.WriteString("variable \"count\" {\n  type    = number\n  default = " + fmt.Sprint(r.IntN(4)) + "\n}\n")
	b.WriteString("locals {\n  names = toset([\"a\", \"b\"])\n  card  = \"" + targets[r.IntN(len(targets))].Key + "\"\n}\n")
	b.WriteString("target \"own\" {\n  base = \"" + targets[r.IntN(len(targets))].Key + "\"\n  vram = \"" + pick("4GiB", "10GiB", "512MiB") + "\"\n}\n")
	for i := range 1 + r.IntN(3) {
		fmt.Fprintf(&b, "session \"s%d\" {\n", i)
		b.WriteString(pick("", "", "  count = var.count\n", "  for_each = local.names\n"))
		b.WriteString("  target = " + pick("\""+targets[r.IntN(len(targets))].Key+"\"", "local.card", "\"own\"", "cosplay.catalog[\"2060\"].key") + "\n")
		b.WriteString(pick("", "  command = [\"run\", path.module]\n"))
		b.WriteString(pick("", "  env = { A = sensitive(\"x\"), B = upper(\"b\") }\n"))
		if i > 0 {
			b.WriteString(pick("", fmt.Sprintf("  depends_on = [session.s%d]\n", i-1)))
		}
		b.WriteString(pick("", "  fit {\n    tolerance = "+pick("0", "\"50%\"")+"\n    prefer = \""+pick("fp32", "bandwidth", "balanced")+"\"\n  }\n"))
		b.WriteString(pick("", "", "  fit {\n    max_error = \"5%\"\n  }\n"))
		b.WriteString("}\n")
	}
	return strings.ReplaceAll(b.String(), "  }\n  fit {\n", "") // one fit block has it all
}

// TestValidConfigurationsPlan: what validates plans on a fleet that is large enough, or is refused at a line of a
// session; and once it is applied nothing is left to do.
func TestValidConfigurationsPlan(t *testing.T) {
	planned, refused := 0, 0
	for seed := range uint64(150) {
		text := configuration(rand.New(rand.NewPCG(seed, 6)))
		w := &world{World: worldtest.New(t, "h200", "h200", "h200", "h200", "b200", "b200", "h100", "a100"), t: t}
		p, diags := w.plan(text)
		if !diags.HasErrors() {
			planned++
			w.apply(p)
			if again, wrong := w.plan(text); wrong.HasErrors() || again.Diff.Changes() || !again.Empty() {
				t.Fatalf("seed %d: applied, there is more to do: %v\n%s\n%s", seed, wrong, text, again)
			}
			continue
		}
		refused++
		for _, d := range diags {
			if d.Subject == nil || d.Subject.Start.Line == 0 || !strings.Contains(d.Summary, "does not fit") && !strings.Contains(d.Summary, "do not fit") {
				t.Errorf("seed %d: refused by %v\n%s", seed, d, text)
			}
		}
	}
	if t.Logf("%d planned, %d refused", planned, refused); planned < 50 || refused < 5 {
		t.Errorf("%d planned, %d refused: the configurations are too much alike", planned, refused)
	}
}
