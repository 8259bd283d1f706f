package ledger

import (
	"os"
	"testing"

	"cosplay/internal/resource"
)

// FuzzPage: whatever a page holds, it is refused or read, and no change panics.
func FuzzPage(f *testing.F) {
	book := Book{Dir: f.TempDir()}
	e := Entry{Book: book, GPU: gpu, Holder: who("a")}
	if err := e.Take(Take{Baseline: locked(1200), Whole: true}, blank); err != nil {
		f.Fatal(err)
	}
	page, err := os.ReadFile(book.path(gpu))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(page)
	f.Add([]byte(`{"format_version":1,"uuid":"` + gpu + `","holders":[{}],"leaving":"x"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(book.path(gpu), content, 0o644); err != nil {
			t.Fatal(err)
		}
		all, err := book.Read()
		if err != nil {
			return
		}
		for _, g := range all {
			_ = MaySet(&g, "a", locked(1))
			_ = MayDestroy(&g, "a", resource.LiveSlice{})
			_ = Leave(&g, "a")
			_ = Hold(&g, who("b"), Take{}, &Found{BootID: "x"})
			_ = Release(&g, who("a"), Parting{Found: &Found{BootID: "y"}})
		}
	})
}
