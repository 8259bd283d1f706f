package render

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"cosplay/catalog"
	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

func htmlOf(t *testing.T, v Page, s Style) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, s, About{Project: "fleet", Version: "0.1.0-test"}, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// someTime is when the hosts of the tests are read.
const someTime resource.Moment = 1_800_000_000

// driftedStatus is a small fleet in which much is wrong, and some programs have used memory.
func driftedStatus() StatusView {
	w := one().applied().lose("worker-3", false).lose("worker-5", true).foreign(0, 0, "1g.18gb", 7)
	w.container("lab", "left-over-2", "")
	w.gpu(0, 0).SMClockMHz, w.gpu(0, 0).PowerMW = 1980, 500_000
	w.live.Hosts[0].Leftovers = []resource.Body{{Session: "worker-9", Host: "lab"}}
	w.prior.Missing = []resource.Address{resource.Nth("worker", 8)}
	for i := range w.prior.Sessions {
		w.prior.Sessions[i].UpAt = someTime - 8000
	}
	v := w.status()
	v.Now, v.Targets = someTime, catalog.Targets
	v.Ends = map[resource.Address]resource.End{resource.Nth("worker", 0): {At: someTime + 4000, Why: "ttl"}, resource.Nth("worker", 1): {At: someTime - 1, Why: "idle_timeout"}}
	v.Used = map[resource.Address]resource.Use{resource.Nth("worker", 0): {PeakMiB: 3072, NowBytes: 2400 << 20}, resource.Nth("worker", 2): {PeakMiB: 6144, OutOfMemory: 3}, resource.Nth("worker", 4): {}}
	return v
}

// severalHosts are two hosts of which one cannot be read, and one with other targets.
func severalHosts() StatusView {
	w := mixed().applied()
	v := w.status()
	v.Now = someTime
	v.Live.Hosts = append(v.Live.Hosts, resource.Host{Name: "far", Elsewhere: true, Unreachable: "ssh: connect to host far port 22: Connection refused", Remedy: "start the machine"})
	return v
}

// TestHTML: the same view is the same file.
func TestHTML(t *testing.T) {
	unread := MachineView{StatusView: one().applied().status(), Unread: errors.New("no driver")}
	machine := MachineView{StatusView: one().applied().status()}
	machine.Prior, machine.Drift, machine.Tenants = resource.Prior{}, nil, true
	machine.Live.Hosts[0].Ledger = []resource.Page{{UUID: machine.Live.Hosts[0].GPUs[0].UUID, Holders: []resource.Holder{{Lineage: "77aa", User: "ann",
		State: "/home/ann/fleet/cosplay.state.json", Since: "2026-11-23T12:46:02Z", Slices: machine.Live.Hosts[0].GPUs[0].Slices[:2]}}}}
	for name, v := range map[string]Page{"fleet": driftedStatus(), "fleet-hosts": severalHosts(), "fleet-empty": (&world{}).host("lab", "h200", "l40s").status(), "fleet-machine": machine, "fleet-unread": unread} {
		got := htmlOf(t, v, Style{})
		compare(t, filepath.Join("testdata", name+".html"), got)
		if again := htmlOf(t, v, Style{Color: true, Width: 40}); again != got {
			t.Errorf("%s: the terminal changes the file", name)
		}
		wellFormed(t, got)
	}
}

// openTag is an element whose end is still to come.
type openTag struct {
	name  string
	attrs map[string]string
}

// void are the elements that have no end.
var void = []string{"meta", "rect", "path"}

// wellFormed parses a file, and checks that it has neither scripts nor references, and that its outline is sound.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	page, isHTML := strings.CutPrefix(page, "<!doctype html>\n")
	if !isHTML {
		t.Error("the file does not begin as HTML")
	}
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.Entity = false, xml.HTMLEntity // <style> is not XML; the ends of elements are checked below
	var open []openTag
	level, counts, ids, links := 0, map[string]int{}, map[string]bool{}, []string{}
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := openTag{token.Name.Local, map[string]string{}}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
				if strings.HasPrefix(a.Name.Local, "on") || slices.Contains([]string{"src", "srcset", "action", "data", "poster"}, a.Name.Local) {
					t.Errorf("<%s> has %s=%q", e.name, a.Name.Local, a.Value)
				}
			}
			if href, has := e.attrs["href"]; has {
				links = append(links, href)
			}
			if id := e.attrs["id"]; id != "" && ids[id] {
				t.Errorf("the id %s occurs twice", id)
			}
			ids["#"+e.attrs["id"]], ids[e.attrs["id"]] = true, true
			counts[e.name]++
			level = outline(t, e, level)
			if !slices.Contains(void, e.name) {
				open = append(open, e)
			}
		case xml.EndElement:
			if name := token.Name.Local; slices.Contains(void, name) {
				continue
			} else if len(open) == 0 || open[len(open)-1].name != name {
				t.Fatalf("</%s> at byte %d closes %v", name, d.InputOffset(), open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("not closed: %v", open)
	}
	for _, href := range links {
		if !strings.HasPrefix(href, "#") || !ids[href] {
			t.Errorf("a link leads to %q", href)
		}
	}
	for name, want := range map[string]int{"script": 0, "link": 0, "img": 0, "iframe": 0, "object": 0, "base": 0, "form": 0, "main": 1, "h1": 1, "style": 1} {
		if counts[name] != want {
			t.Errorf("%d <%s>, want %d", counts[name], name, want)
		}
	}
	if bad := regexp.MustCompile(`(?i)url\(|@import|https?:|javascript:|//[a-z]`).FindString(page); bad != "" {
		t.Errorf("the file has %q", bad)
	}
	if !strings.Contains(page, `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`) {
		t.Error("the file has no policy")
	}
}

// outline checks a heading or a head of a table, and returns the level of the last heading.
func outline(t *testing.T, e openTag, level int) int {
	t.Helper()
	if e.name == "th" && e.attrs["scope"] == "" {
		t.Error("a <th> without scope")
	}
	if len(e.name) == 2 && e.name[0] == 'h' && '1' <= e.name[1] && e.name[1] <= '6' {
		next := int(e.name[1] - '0')
		if next > level+1 {
			t.Errorf("<%s> follows level %d", e.name, level)
		}
		return next
	}
	return level
}

// TestHTMLHostile: what others name can neither add an element nor change the direction of text.
func TestHTMLHostile(t *testing.T) {
	const hostile = "<script>alert(1)</script>\"'><b onclick=x>&amp;\x1b[31m\u202eevil\u2028\x00\xff{{.At}}\tx" + "\u0007 https:x"
	w := one().applied()
	w.live.Hosts[0].Driver, w.live.Hosts[0].Simulated = hostile, hostile
	w.gpu(0, 0).Model.Name = hostile
	w.gpu(0, 0).Degraded = []resource.Degradation{{Feature: resource.FeaturePower, Call: hostile, Message: hostile}}
	w.prior.Sessions[0].Address = resource.Each("worker", hostile)
	w.prior.Sessions[0].Spec.Image, w.prior.Sessions[1].Target.Name = hostile, hostile
	w.prior.Sessions[2].Runtime, w.prior.Sessions[2].Slice.Profile = hostile, hostile
	v := w.status()
	v.Live.Hosts = append(v.Live.Hosts, resource.Host{Name: hostile, Unreachable: hostile, Remedy: hostile})
	v.Flags = []string{"--chdir", hostile}
	v.Ends = map[resource.Address]resource.End{resource.Nth("worker", 4): {At: 5, Why: hostile}}
	var b bytes.Buffer
	if err := HTML(&b, Style{}, About{Project: hostile, Version: hostile}, v); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	wellFormed(t, strings.ReplaceAll(page, "https:x", ""))
	if strings.Contains(page, "<b ") || strings.Contains(page, "<script") {
		t.Error("a name has become an element")
	}
	if i := strings.IndexFunc(page, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028'
	}); i >= 0 {
		t.Errorf("a character that controls the browser: %q", page[max(0, i-40):i+10])
	}
	if n := strings.Count(page, `&lt;script&gt;alert(1)&lt;/script&gt;`); n < 10 {
		t.Errorf("the names are shown %d times", n)
	}
}

// TestHTMLWithoutSecrets: the file has neither the environment of sessions nor the key of the state.
func TestHTMLWithoutSecrets(t *testing.T) {
	v := driftedStatus()
	for i := range v.Prior.Sessions {
		s := &v.Prior.Sessions[i]
		s.Env, s.Secret, s.Sealed = map[string]string{"TOKEN": "hunter2"}, map[string]string{"TOKEN": "hunter3"}, map[string]string{"TOKEN": "hunter4"}
	}
	page := htmlOf(t, v, Style{Verbose: true})
	for _, secret := range []string{"hunter", "TOKEN", stateKey, v.Prior.Lineage} {
		if strings.Contains(page, secret) {
			t.Errorf("the file has %q", secret)
		}
	}
}

// visible is the text of a page without elements, with blanks for line ends.
func visible(page string) string {
	_, body, _ := strings.Cut(page, "</head>")
	body = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, " ")
	body = strings.NewReplacer("&#43;", "+", "&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", hard, " ").Replace(body)
	return strings.Join(strings.Fields(body), " ")
}

// TestHTMLSaysTheSame: what the screens of status and drift say of a fleet is in the file, in the same words.
func TestHTMLSaysTheSame(t *testing.T) {
	v := driftedStatus()
	page := visible(htmlOf(t, v, Style{}))
	for _, want := range []string{
		"7 sessions, 5 running", "drift in 5 places", "1 missing since a run was interrupted", "Next: cosplay plan",
		"session.worker[3] session folder there missing possible cause: removed by hand",
		"GPU 0 power limit 700 W 500 W possible cause: nvidia-smi -pl, or a restart of the driver",
		"GPU 0 foreign slice - 1g.18gb, slot 7 cosplay leaves it alone", "Unfinished: session.worker[8] is missing", "left-over-2 running on lab", "cosplay-worker-9 a session folder that no container has",
		"SM clock 1980 MHz (lock lifted)", "Temperature 41 C", "76 of 500 W", "MIG mode on",
		"w session.worker", "FP32 +0.0 %", "Bandwidth +79 %", "Tensor x4.0", "6.5 TFLOPS", "336.0 GB/s",
		"peak 3072 of 6144 MiB", "ran out , peak 6144 of 6144 MiB", "1h6m40s", "2027-01-15T09:06:40Z (ttl)", "expired", "2h13m20s",
		"Cannot be hidden", "RTX 2060 on H200 BF16, TF32, FP8 and TMA work here", "driver of host lab 570.86.15 (simulated)", "cosplay 0.1.0-test",
		"worker-2 ran out of memory 3 times", "Simulated: lab.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the file does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// TestHTMLOfMany: a thousand sessions are a page of which a reader sees little at first, and nothing is missing.
func TestHTMLOfMany(t *testing.T) {
	w := wide(143, 142).applied()
	const wrong = 14
	for i := range wrong {
		w.live.Hosts[0].Bodies[500+i].State = resource.Stopped
	}
	w.gpu(0, 77).PowerMW = 300_000
	v := w.status()
	v.Drift = slices.DeleteFunc(v.Drift, func(d diff.Drift) bool { return d.Session != nil }) // as of sessions that cosplay stop has stopped
	page := htmlOf(t, v, Style{})
	wellFormed(t, page)
	if size := len(page); size > 500_000 {
		t.Errorf("the file has %d bytes", size)
	}
	for _, s := range w.prior.Sessions {
		if n := strings.Count(page, "</span>"+s.Address.Short()+"</th>"); n != 1 {
			t.Fatalf("%s is there %d times", s.Address, n)
		}
	}
	_, sessions, _ := strings.Cut(page, `id="sessions"`)
	shown, _, _ := strings.Cut(sessions, "<details>")
	if n := strings.Count(shown, `<span class="strong">stopped</span>`); n != wrong {
		t.Errorf("%d sessions that are stopped are not folded, want %d", n, wrong)
	}
	if !strings.Contains(sessions, "<summary>980 more sessions</summary>") || !strings.Contains(page, "<summary>127 more GPUs</summary>") {
		t.Error("what is folded is not counted")
	}
	_, gpus, _ := strings.Cut(page, `id="gpus"`)
	if first := strings.Index(gpus, `scope="row"`); !strings.Contains(gpus[first:first+60], "GPU 77<") {
		t.Errorf("the GPU that drifted is not the first: %s", gpus[first:first+60])
	}
	if page := htmlOf(t, w.status(), Style{Verbose: true}); strings.Contains(page, "<details>") {
		t.Error("--verbose folds something")
	}
}

// TestHTMLBars: a bar of a fit begins in the middle, half and double are equally long, and no bar leaves its scale.
func TestHTMLBars(t *testing.T) {
	fits := func(ratio float64) sheetRate {
		return ratesOf(resource.Fit{Got: resource.Envelope{FP32TFLOPS: 10 * ratio}, Want: resource.Envelope{FP32TFLOPS: 10}})[0]
	}
	for ratio, want := range map[float64]string{1: "60+0", 2: "60+20", 0.5: "40+20", 8: "60+60", 100: "60+60", 0.001: "0+60"} {
		r := fits(ratio)
		if got := fmt.Sprintf("%d+%d", r.From, r.Width); got != want || r.Under != (ratio < 1) || !r.Has {
			t.Errorf("%g is %s, want %s: %+v", ratio, got, want, r)
		}
	}
	if r := ratesOf(resource.Fit{}); r[0].Has || r[2].Want != "none" {
		t.Errorf("without a figure: %+v", r)
	}
	for _, test := range []struct{ part, whole, want int }{{0, 6144, 0}, {1, 6144, 1}, {3072, 6144, 50}, {6144, 6144, 100}, {9000, 6144, 100}} {
		if got := barOf(test.part, test.whole); got.Part != test.want || !got.Has {
			t.Errorf("%d of %d fills %d %%, want %d", test.part, test.whole, got.Part, test.want)
		}
	}
	if barOf(1, 0).Has {
		t.Error("a part of nothing has a bar")
	}
}

// TestHTMLOfManyKinds: the kind of a session that is stopped is not among those that are folded.
func TestHTMLOfManyKinds(t *testing.T) {
	w := (&world{}).host("lab", slices.Repeat([]string{"h200"}, 6)...)
	for i := range 36 {
		w.place(resource.One(fmt.Sprintf("block%02d", i)), "2060", 0, i/6, "1g.18gb", i%6)
	}
	w.applied()
	for i := range w.live.Hosts[0].Bodies {
		if b := &w.live.Hosts[0].Bodies[i]; b.Session == "block35" {
			b.State = resource.Stopped
		}
	}
	page := htmlOf(t, w.status(), Style{})
	wellFormed(t, page)
	shown, folded, is := strings.Cut(page, "<summary>12 more kinds of sessions</summary>")
	if !is || !strings.Contains(shown, "<h3>session.block35</h3>") || !strings.Contains(folded, "<h3>session.block34</h3>") {
		t.Error("what is wrong is folded, or nothing is")
	}
}
