package render

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"cosplay/internal/apply"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

func TestTimesAndSeconds(t *testing.T) {
	for got, want := range map[string]string{
		times(4):                         "x4.0",
		times(0):                         "-",
		seconds(40 * time.Millisecond):   "0.0 s",
		seconds(3120 * time.Millisecond): "3.1 s",
		seconds(65 * time.Second):        "1 min 05 s",
		seconds(125 * time.Minute):       "2 h 05 min",
		prose.Count(1, "GPU"):            "1 GPU",
		prose.Count(0, "GPU"):            "0 GPUs",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	l := join(text("a bcd "), inked(strong, "ef"), text(", "+together("g h")+" /a/word/that/is/too/long x"))
	var got []string
	for _, one := range wrap(l, 8, 6) {
		s := ""
		for _, p := range one {
			s += p.text
		}
		got = append(got, s)
	}
	want := []string{"a bcd", "ef,", "g" + hard + "h", "/a/word/that/is/too/long", "x"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestColumns(t *testing.T) {
	for s, want := range map[string]int{"": 0, "w0": 2, "│": 1, "日本": 4, "e\u0301": 1, "👩\u200d🚀": 2, "\u202e": 0} {
		if got := columns(s); got != want {
			t.Errorf("columns(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestLabelsAreUnique(t *testing.T) {
	addresses := []resource.Address{
		resource.Nth("worker", 0), resource.Nth("worker", 11), resource.One("worker"), resource.Each("worker", "a"), resource.Each("worker", "b"),
		resource.One("web"), resource.Nth("web-2", 1), resource.One("w"), resource.One("x"), resource.One("_"), resource.Each("été", "ü"),
	}
	l := newLabels(addresses)
	seen := map[string]resource.Address{}
	for _, a := range addresses {
		label := l.of(a)
		if other, taken := seen[label]; taken || label == "" {
			t.Errorf("%s and %s have the same label %q", a, other, label)
		}
		seen[label] = a
	}
	if got := newLabels(addresses[:2]).of(addresses[1]); got != "w11" {
		t.Errorf("with one block the label is %q, want w11", got)
	}
}

// TestManyBlocks has more blocks that begin alike than there are triples of letters.
func TestManyBlocks(t *testing.T) {
	var addresses []resource.Address
	for i := range 1500 {
		addresses = append(addresses, resource.One("s"+strings.Repeat("t", i)))
	}
	l := newLabels(addresses)
	seen := map[string]bool{}
	for _, a := range addresses {
		seen[l.of(a)] = true
	}
	if len(seen) != len(addresses) {
		t.Errorf("%d labels for %d blocks", len(seen), len(addresses))
	}
}

// bars draws slices, given as profile and start, on a GPU with MIG on.
func bars(t *testing.T, model string, slices ...any) string {
	t.Helper()
	m := slotMap{model: modelOf(model), mig: true}
	for i := 0; i < len(slices); i += 2 {
		p, ok := m.model.Profile(slices[i].(string))
		if !ok {
			t.Fatalf("%s has no %s", model, slices[i])
		}
		a := resource.One("s")
		m.taken = append(m.taken, occupant{slice: resource.Slice{Profile: p.Name, Start: slices[i+1].(int), Size: p.MemorySlices}, session: &a, label: "s"})
	}
	var b strings.Builder
	for _, piece := range (Style{}).bar(newGrid([]slotMap{m}, 100), m.cells()) {
		b.WriteString(piece.text)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// TestUnusable distinguishes free slots from those that no profile can use.
func TestUnusable(t *testing.T) {
	for _, test := range []struct {
		model string
		taken []any
		want  string
	}{
		{"h200", nil, "| . | . | . | . | . | . | . | . |"},
		{"h200", []any{"1g.18gb", 0, "1g.18gb", 1, "1g.18gb", 2, "1g.18gb", 3, "1g.18gb", 4, "1g.18gb", 5, "1g.18gb", 6}, "| s | s | s | s | s | s | s | - |"},
		{"h200", []any{"4g.71gb", 0, "3g.71gb", 4}, "| s | s |"},
		{"h200", []any{"3g.71gb", 4}, "| . | . | . | . | s |"},
		{"h200", []any{"3g.71gb", 0, "3g.71gb", 4}, "| s | s |"},
		{"h200", []any{"4g.71gb", 0, "1g.18gb", 5, "1g.18gb", 6}, "| s | . | s | s | - |"}, // slot 7 is not free for any 1g
		{"a30", []any{"1g.6gb", 0}, "| s | . | . | . |"},
		{"a30", []any{"2g.12gb", 0, "1g.6gb", 3}, "| s | . | s |"},
	} {
		if got := bars(t, test.model, test.taken...); got != test.want {
			t.Errorf("%s with %v: %s, want %s", test.model, test.taken, got, test.want)
		}
	}
}

// TestUnusableAgreesWithSearch asks the same of every layout of 1g slices.
func TestUnusableAgreesWithSearch(t *testing.T) {
	m := modelOf("h200")
	one, _ := m.Profile("1g.18gb")
	for set := range 1 << 7 {
		taken := slotMap{model: m, mig: true}
		for slot := range 7 {
			if set>>slot&1 == 1 {
				taken.taken = append(taken.taken, occupant{slice: resource.Slice{Profile: one.Name, Start: slot, Size: 1}})
			}
		}
		for slot, usable := range taken.usable(taken.slices()) {
			want := false
			for _, p := range m.Profiles {
				for _, start := range p.Starts {
					clear := start <= slot && slot < start+p.MemorySlices && p.ComputeSlices+len(taken.taken) <= 7
					for s := start; s < start+p.MemorySlices; s++ {
						clear = clear && (s == 7 || set>>s&1 == 0)
					}
					want = want || clear
				}
			}
			if usable != want {
				t.Fatalf("layout %07b, slot %d: usable %t, want %t", set, slot, usable, want)
			}
		}
	}
}

// TestUnknownProfileCounts draws a foreign slice of a profile that the model
// does not list.
func TestUnknownProfileCounts(t *testing.T) {
	m := slotMap{model: modelOf("h200"), mig: true, taken: []occupant{{slice: resource.Slice{Profile: "7g.99gb", Start: 0, Size: 7}}}}
	if got := m.usable(m.slices())[7]; got {
		t.Error("slot 7 is shown as free though all compute slices are taken")
	}
}

func TestUTF8Locale(t *testing.T) {
	for _, test := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{}, false},
		{map[string]string{"LANG": "en_US.UTF-8"}, true},
		{map[string]string{"LANG": "de_DE.utf8"}, true},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LANG": "C", "LC_CTYPE": "C.UTF-8"}, true},
	} {
		if got := utf8Locale(func(name string) string { return test.env[name] }); got != test.want {
			t.Errorf("%v: %t, want %t", test.env, got, test.want)
		}
	}
}

func TestDetectOffTerminal(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	want := Style{Unicode: true, Width: 100}
	if got := Detect(&bytes.Buffer{}, false); !reflect.DeepEqual(got, want) {
		t.Errorf("a buffer: %+v, want %+v", got, want)
	}
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := Detect(f, false); !reflect.DeepEqual(got, want) {
		t.Errorf("a file: %+v, want %+v", got, want)
	}
}

// TestLiveProgress follows what a terminal shows while two steps run at a time.
func TestLiveProgress(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, Style{Width: 60})
	p.live = true
	first, second := plan.Step{ID: "first"}, plan.Step{ID: "second"}
	p.Event(apply.Event{Kind: apply.StepStarted, Step: first, Number: 1, Total: 2})
	p.Event(apply.Event{Kind: apply.StepStarted, Step: second, Number: 2, Total: 2})
	p.Event(apply.Event{Kind: apply.StepDone, Step: first, Number: 1, Total: 2, Took: time.Second})
	p.Event(apply.Event{Kind: apply.StepDone, Step: second, Number: 2, Total: 2, Took: time.Second})
	const erase = "\r\x1b[K"
	ended := func(n, title string) string {
		return "  [" + n + "/2] " + title + strings.Repeat(" ", 60-8-len(title)-5) + "1.0 s\n"
	}
	want := "  [1/2] first ..." + erase + "  [1/2] first ... and 1 more" + erase + ended("1", "first") + "  [2/2] second ..." + erase + ended("2", "second")
	if got := b.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestClosedProgress leaves nothing on the live line, whatever ends later.
func TestClosedProgress(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, Style{Width: 60})
	p.live = true
	step := plan.Step{ID: "first"}
	p.Event(apply.Event{Kind: apply.StepStarted, Step: step, Number: 1, Total: 1})
	p.Close()
	p.Event(apply.Event{Kind: apply.StepDone, Step: step, Number: 1, Total: 1})
	p.Say("Stopped.")
	if got, want := b.String(), "  [1/1] first ...\r\x1b[KStopped.\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestNarrow checks that each character of the table has one column, alone and beside others.
func TestNarrow(t *testing.T) {
	count := 0
	for r := rune(1); r < 0x10000; r++ {
		if s := string(r); unicode.Is(narrow, r) {
			count++
			if terminalWidth.StringWidth(s) != 1 || terminalWidth.StringWidth(s+"a"+s+s) != 4 {
				t.Errorf("%U takes %d columns", r, terminalWidth.StringWidth(s))
			}
		}
	}
	if count < 800 {
		t.Errorf("the table has %d characters", count)
	}
	for text, want := range map[string]int{"│ ×": 3, "e\u0301│": 2, "漢│": 3, "\u00ada": terminalWidth.StringWidth("\u00ada"), "": 0} {
		if got := columns(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

// TestSharedSlots: sessions that share a slice have one cell, and a session is drawn before a foreign slice at its place.
func TestSharedSlots(t *testing.T) {
	at := func(label string, start int, sharing resource.Sharing) occupant {
		o := occupant{slice: resource.Slice{Profile: "1g.18gb", Start: start, Size: 1, Sharing: sharing}, label: label}
		if label != "" {
			o.session = new(resource.One(label))
		}
		return o
	}
	for want, taken := range map[string][]occupant{
		"a:b c": {at("a", 0, resource.SharingTime), at("b", 0, resource.SharingTime), at("c", 1, "")},
		"a b":   {at("", 0, ""), at("a", 0, ""), at("b", 1, "")},
	} {
		var labels []string
		for _, c := range (slotMap{model: modelOf("h200"), mig: true, taken: taken}).cells()[:2] {
			labels = append(labels, c.label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("the cells are %q, want %q", got, want)
		}
	}
}
