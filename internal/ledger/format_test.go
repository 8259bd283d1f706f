package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
)

// bookWith is a ledger with one page of testdata.
func bookWith(t *testing.T, page string) Book {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", page))
	if err != nil {
		t.Fatal(err)
	}
	book := Book{Dir: t.TempDir()}
	if err := os.MkdirAll(book.folder(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(book.path(gpu), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return book
}

var anyVersion = regexp.MustCompile(`"format_version": \d+`)

// TestFormats: each page in testdata is read and written without losing a value: it
// differs only by the version of the format.
func TestFormats(t *testing.T) {
	pages, err := filepath.Glob("testdata/page-*.json")
	if err != nil {
		t.Fatal(err)
	}
	current := fmt.Sprintf(`"format_version": %d`, formatVersion)
	there := false
	for _, path := range pages {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		there = there || strings.Contains(string(before), current)
		book := bookWith(t, filepath.Base(path))
		if err := book.change(gpu, powerLoss, func(*resource.Page) error { return nil }); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(book.path(gpu))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(anyVersion.ReplaceAllString(string(before), current), string(after)); d != "" {
			t.Errorf("%s (-before +after):\n%s", path, d)
		}
	}
	if !there {
		t.Errorf("testdata has no page with %s", current)
	}
}
