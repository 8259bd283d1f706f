package diff_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"cosplay/internal/diff"
)

// TestClasses: Classes has every class that is declared.
func TestClasses(t *testing.T) {
	source, err := os.ReadFile("drift.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\t\w+ +Class = "([a-z-]+)"`).FindAllSubmatch(source, -1)
	if len(declared) < 20 {
		t.Fatalf("only %d classes are found in drift.go", len(declared))
	}
	for _, d := range declared {
		if !slices.Contains(diff.Classes(), diff.Class(d[1])) {
			t.Errorf("Classes lacks %s", d[1])
		}
	}
}
