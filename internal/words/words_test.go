package words_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
	_ "cosplay/internal/runtime/all" // the names of bodies
	"cosplay/internal/words"
)

// constants are those of a type in a file, by their values.
func constants(t *testing.T, file, typed string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && spec.Type != nil && len(spec.Values) == 1 {
			if id, is := spec.Type.(*ast.Ident); is && id.Name == typed {
				if value, is := spec.Values[0].(*ast.BasicLit); is {
					text, _ := strconv.Unquote(value.Value)
					all = append(all, text)
				}
			}
		}
		return true
	})
	if len(all) < 10 {
		t.Fatalf("%d constants of %s in %s", len(all), typed, file)
	}
	return all
}

// TestEveryKindHasWords: no reason, note, condition or class is without a sentence.
func TestEveryKindHasWords(t *testing.T) {
	s := resource.PriorSession{Session: resource.Session{Address: resource.One("w"), Runtime: "docker"}}
	for _, kind := range constants(t, "../resource/reason.go", "ReasonKind") {
		reason := resource.Reason{Kind: resource.ReasonKind(kind), Targets: []string{"RTX 2060"}, Power: []resource.TargetPower{{Count: 1, W: 160}}, Session: &s.Address, Unusable: &resource.Unusable{}, Setting: new(resource.PowerLimit)}
		setting := words.Setting(diff.Field{Kind: diff.FieldSMClock, Reason: reason})
		session := words.Session(diff.SessionChange{Address: s.Address, Before: &s, Reason: reason})
		if setting == "" && session == "" {
			t.Errorf("the reason %s has no words", kind)
		}
	}
	for _, kind := range constants(t, "../resource/reason.go", "NoteKind") {
		if words.Notes([]resource.Note{{Kind: resource.NoteKind(kind)}}, resource.Live{})[0] == "" {
			t.Errorf("the note %s has no words", kind)
		}
	}
	for _, condition := range constants(t, "../diff/field.go", "Condition") {
		if words.Value(diff.Condition(condition), resource.Live{}) == "" {
			t.Errorf("the condition %s has no words", condition)
		}
	}
	classes := constants(t, "../diff/drift.go", "Class")
	for _, s := range resource.AllSettings {
		classes = append(classes, string(diff.SettingClass(s)))
		if strings.HasSuffix(words.SMI("0", s, 1), " ") {
			t.Errorf("nothing says how nvidia-smi sets the %s", s.Words())
		}
	}
	for _, class := range classes {
		d := diff.Drift{Class: diff.Class(class), Runtime: "docker", Kind: diff.FieldFacades, Name: "n", To: diff.Clock{}}
		if words.Drifted(d) == class || words.Cause(d) == "" && d.Class != diff.GPUUnusable {
			t.Errorf("drift of the class %s has no words", class)
		}
		if repair := words.Repair(d); repair == "leaves it as it is" && !strings.Contains("foreign-slice container-limited image-moved disguise-outdated device-earlier secrets-open", class) {
			t.Errorf("nothing says what apply does about the class %s", class)
		}
	}
}
