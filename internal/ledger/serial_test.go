package ledger

import (
	"testing"

	"cosplay/internal/resource"
)

// TestSerial: a page states which run created a slice and which run wrote it last; it
// states neither for what an older cosplay wrote, or what a state only claims.
func TestSerial(t *testing.T) {
	book := bookWith(t, "page-1-early.json") // it has no serials
	holder := who("p0")
	slice := func(start int, uuid string) resource.LiveSlice {
		return resource.LiveSlice{Slice: resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: start, Size: 1}, Handle: resource.Handle{UUID: uuid}}
	}
	made := func(run int, s resource.LiveSlice) {
		t.Helper()
		holder.Serial = run
		if err := (Entry{Book: book, GPU: gpu, Holder: holder}).Made([]resource.LiveSlice{s}, nil); err != nil {
			t.Fatal(err)
		}
	}
	made(7, slice(5, "MIG-2"))
	made(3, slice(6, "MIG-3")) // by a state that was restored
	holder.Serial = 4
	if err := (Entry{Book: book, GPU: gpu, Holder: holder}).Take(Take{Slices: []resource.LiveSlice{slice(2, "MIG-4")}}, blank); err != nil {
		t.Fatal(err)
	}
	page, err := book.read(gpu)
	if err != nil || len(page.Holders) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	got := map[string]int{"holder": page.Holders[0].Serial}
	for _, s := range page.Holders[0].Slices {
		got[s.UUID] = s.Serial
	}
	for name, want := range map[string]int{"holder": 7, "MIG-1": 0, "MIG-2": 7, "MIG-3": 3, "MIG-4": 0} {
		if serial, there := got[name]; !there || serial != want {
			t.Errorf("%s has serial %d, %v, want %d", name, serial, there, want)
		}
	}
}
