package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// permitting parses rules as they are in a file of root.
func permitting(t *testing.T, text string) Policy {
	t.Helper()
	p := Policy{path: "rules"}
	for i, line := range strings.Split(text, "\n") {
		if words := strings.Fields(line); len(words) > 0 {
			r, err := parseRule(resource.AdminLine{Number: i + 1, Words: words})
			if err != nil {
				t.Fatal(err)
			}
			p.rules = append(p.rules, r)
		}
	}
	return p
}

func TestPolicy(t *testing.T) {
	clock, mig := resource.SMClock, resource.MIGMode
	take, slice, whole := Wish{GPU: "GPU-a"}, Wish{GPU: "GPU-a", Slice: true}, Wish{GPU: "GPU-a", Whole: true}
	ann := Subject{Name: "ann", UID: 1234, Groups: []string{"1234", "ann", "50", "staff"}}
	for name, test := range map[string]struct {
		rules string
		wish  Wish
		has   map[string]int
		want  string // in the error; "" permits
	}{
		"a UUID alone, as before":            {"GPU-b\nGPU-a", take, nil, ""},
		"another GPU":                        {"GPU-b", take, nil, "no rule of rules permits ann to change GPU-a"},
		"no rule at all":                     {"", take, nil, "no rule of rules"},
		"each GPU":                           {"*", slice, map[string]int{"GPU-a": 6}, ""},
		"by name":                            {"* user=bob,ann", take, nil, ""},
		"by UID":                             {"* user=1234", take, nil, ""},
		"another user":                       {"* user=bob", take, nil, "no rule of rules"},
		"by group":                           {"* group=staff", take, nil, ""},
		"by GID":                             {"* group=wheel,50", take, nil, ""},
		"by a group with the name of a user": {"* user=staff group=wheel", take, nil, "no rule of rules"},
		"of two rules the first":             {"GPU-a user=ann manage=none\n*", Wish{GPU: "GPU-a", Setting: &clock}, nil, "the rule rules:1 (GPU-a user=ann manage=none) does not permit ann to change the SM clock of GPU-a"},
		"and not the one of another user":    {"GPU-a user=bob manage=none\n*", Wish{GPU: "GPU-a", Setting: &clock}, nil, ""},
		"a GPU that is another user's":       {"GPU-a user=bob\n* group=staff", take, nil, "which line 1 (GPU-a user=bob) reserves"},
		"one that a later line shares":       {"GPU-a user=bob\n* group=staff\nGPU-a user=ann", take, nil, ""},
		"one that an earlier line shares":    {"* group=staff\nGPU-a user=bob", take, nil, ""},
		"one for a group":                    {"GPU-a group=lab\n*", take, nil, "reserves"},
		"a permitted setting":                {"* manage=clocks,slices", Wish{GPU: "GPU-a", Setting: &clock}, nil, ""},
		"another setting":                    {"* manage=clocks,slices", Wish{GPU: "GPU-a", Setting: &mig}, nil, `leave "mig-mode" out of manage in the host block`},
		"no slices":                          {"* manage=clocks", slice, nil, "does not permit ann to create slices"},
		"one slice more":                     {"* slices=2", slice, map[string]int{"GPU-a": 1}, ""},
		"too many":                           {"* slices=2", slice, map[string]int{"GPU-a": 2}, "more than 2 slices, and ann has 2"},
		"too many, on two GPUs":              {"* slices=2", slice, map[string]int{"GPU-a": 1, "GPU-b": 1}, "more than 2 slices"},
		"those of another rule do not count": {"GPU-a slices=1\n*", slice, map[string]int{"GPU-b": 3}, ""},
		"a bound and the whole GPU":          {"* slices=7", whole, nil, "does not permit ann a whole GPU, but 7 slices"},
		"a whole GPU without a bound":        {"*", whole, nil, ""},
		"no slices by number":                {"* slices=0", slice, nil, "more than 0 slices"},
	} {
		err := permitting(t, test.rules).Permit(ann, test.wish, test.has)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	asks := Wish{GPU: "GPU-a", Slice: true, Before: map[string]int{"GPU-a": 2}}
	for _, test := range []struct {
		has  int
		want string
	}{{0, "more than 2 slices, and this asks for 3 or more"}, {1, "more than 2 slices: ann has 1, and this asks for 3 or more"}} {
		if err := permitting(t, "* slices=2").Permit(ann, asks, map[string]int{"GPU-a": test.has}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("with %d: %v, want %q", test.has, err, test.want)
		}
	}
	unknown := Subject{Name: "ann", UID: 1234, Err: os.ErrInvalid}
	if err := permitting(t, "* group=students slices=1\n*").Permit(unknown, take, nil); err == nil || !strings.Contains(err.Error(), "are not known") {
		t.Errorf("a user whose groups are not known: %v", err)
	}
	if err := permitting(t, "* user=ann\n* group=students").Permit(unknown, take, nil); err != nil {
		t.Errorf("a user whom an earlier rule names: %v", err)
	}
}

// documented are the examples of rules in the documents.
func documented(t *testing.T) (examples []Policy) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/shared-host.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, fence := range strings.Split(string(doc), "```")[1:] {
		if strings.HasPrefix(fence, "\n#") {
			text := regexp.MustCompile("#.*").ReplaceAllString(fence, "")
			examples = append(examples, permitting(t, text))
		}
	}
	return examples
}

// TestDocumentedRules: each example of rules in the documents means what the text beside it says, for two users.
func TestDocumentedRules(t *testing.T) {
	examples := documented(t)
	ann := Subject{Name: "ann", UID: 1234, Groups: []string{"staff"}}
	bob := Subject{Name: "bob", UID: 1235, Groups: []string{"students"}}
	eve := Subject{Name: "eve", UID: 1236, Groups: []string{"staff"}}
	const hers, other = "GPU-4973ad69-b083-cfe1-e855-a6bb200f3157", "GPU-b"
	clock := resource.SMClock
	tests := [][]struct {
		who  Subject
		wish Wish
		has  int
		may  bool
	}{{
		{ann, Wish{GPU: hers, Whole: true}, 0, true},
		{ann, Wish{GPU: other, Whole: true}, 0, true},
		{eve, Wish{GPU: hers}, 0, false},
		{eve, Wish{GPU: other, Setting: &clock}, 0, true},
		{bob, Wish{GPU: hers, Slice: true}, 0, false},
		{bob, Wish{GPU: other, Slice: true}, 1, true},
		{bob, Wish{GPU: other, Slice: true}, 2, false},
		{bob, Wish{GPU: other, Setting: &clock}, 0, false},
		{bob, Wish{GPU: other, Whole: true}, 0, false},
	}, {
		{ann, Wish{GPU: hers, Setting: &clock}, 0, true},
		{bob, Wish{GPU: hers, Setting: &clock}, 0, false},
		{bob, Wish{GPU: hers, Slice: true}, 0, true},
		{bob, Wish{GPU: hers, Slice: true}, 1, false},
		{eve, Wish{GPU: hers}, 0, false},
		{eve, Wish{GPU: other}, 0, true},
	}, {
		{ann, Wish{GPU: hers, Whole: true}, 0, true},
		{bob, Wish{GPU: hers, Slice: true}, 2, false},
	}}
	if len(examples) != len(tests) {
		t.Fatalf("the document has %d examples, and %d are tested", len(examples), len(tests))
	}
	for i, example := range examples {
		for _, test := range tests[i] {
			if err := example.Permit(test.who, test.wish, map[string]int{other: test.has, hers: test.has}); (err == nil) != test.may {
				t.Errorf("example %d, %s, %+v with %d: %v", i, test.who.Name, test.wish, test.has, err)
			}
		}
	}
}

// TestDocumentedTTL: the example of rules about the ttl of sessions.
func TestDocumentedTTL(t *testing.T) {
	const hours = 3600
	example := documented(t)[2]
	for _, test := range []struct {
		group string
		want  TTL
	}{{"students", TTL{8 * hours, 2 * hours, "rules:4 (* group=students slices=2 max-ttl=8h default-ttl=2h)"}}, {"staff", TTL{}}, {"other", TTL{}}} {
		if ttl, err := example.TTL(Subject{Name: "x", UID: 1, Groups: []string{test.group}}, []string{"GPU-a"}); err != nil || ttl != test.want {
			t.Errorf("%s: %+v, %v", test.group, ttl, err)
		}
	}
}

// TestTTL: the shorter times of several GPUs apply, and without a default the longest is the default.
func TestTTL(t *testing.T) {
	who := Subject{Name: "ann", UID: 1234}
	for _, test := range []struct {
		rules string
		gpus  []string
		want  TTL
	}{
		{"* max-ttl=8h", []string{"GPU-a"}, TTL{28800, 28800, "rules:1 (* max-ttl=8h)"}},
		{"* default-ttl=8h", []string{"GPU-a"}, TTL{0, 28800, "rules:1 (* default-ttl=8h)"}},
		{"GPU-a max-ttl=4h\nGPU-b max-ttl=2h default-ttl=1h", []string{"GPU-a", "GPU-b"}, TTL{7200, 3600, "rules:2 (GPU-b max-ttl=2h default-ttl=1h)"}},
		{"GPU-a max-ttl=4h\nGPU-b max-ttl=2h default-ttl=1h", []string{"GPU-b", "GPU-a"}, TTL{7200, 3600, "rules:2 (GPU-b max-ttl=2h default-ttl=1h)"}},
		{"GPU-a default-ttl=8h\nGPU-b max-ttl=2h", []string{"GPU-a", "GPU-b"}, TTL{7200, 7200, "rules:2 (GPU-b max-ttl=2h)"}},
		{"* user=bob max-ttl=1h", []string{"GPU-a"}, TTL{}},
		{"GPU-a max-ttl=1h\n* max-ttl=3h", []string{"*"}, TTL{10800, 10800, "rules:2 (* max-ttl=3h)"}},
	} {
		if ttl, err := permitting(t, test.rules).TTL(who, test.gpus); err != nil || ttl != test.want {
			t.Errorf("%q on %v: %+v, %v", test.rules, test.gpus, ttl, err)
		}
	}
	unknown := Subject{Name: "ann", UID: 1234, Err: os.ErrInvalid}
	if _, err := permitting(t, "* group=students max-ttl=1h").TTL(unknown, []string{"GPU-a"}); err == nil {
		t.Error("a user whose groups are not known has no limit")
	}
}

// TestBadPolicy: a file that cannot be read as rules permits nothing, and the error names the line.
func TestBadPolicy(t *testing.T) {
	for text, want := range map[string]string{
		"* users=ann":         `has no "users=ann"`,
		"* ann":               `has no "ann"`,
		"* user=":             "names nothing",
		"* group":             "names nothing",
		"* manage=clock":      "manage=clock: write none, or some of slices,mig-mode,persistence,clocks,power",
		"* manage=none,power": "write none",
		"* slices=":           "not a number of slices",
		"* slices=-1":         "not a number of slices",
		"* slices=many":       "not a number of slices",

		"* max-ttl=":                  `"max-ttl=" is not a length of time, like max-ttl=8h`,
		"* default-ttl=8":             `"default-ttl=8" is not a length of time`,
		"* default-ttl=9h max-ttl=8h": "default-ttl=9h is longer than max-ttl=8h",
		"* ttl=8h":                    `has no "ttl=8h"`,
	} {
		if r, err := parseRule(resource.AdminLine{Number: 1, Words: strings.Fields(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", text, r, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "gpus") // not in folders of root alone
	if err := os.WriteFile(path, []byte("*\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if p, err := PolicyOf(adminFile(path)); err == nil || !strings.Contains(err.Error(), "cannot be relied on") || p.Permit(Subject{}, Wish{}, nil) == nil {
		t.Errorf("a file that others can write: %v", err)
	}
	if p, err := PolicyOf(adminFile(path + ".missing")); err != nil || p.Permit(Subject{}, Wish{GPU: "GPU-a", Whole: true}, nil) != nil {
		t.Errorf("without a file: %v", err)
	}
}
