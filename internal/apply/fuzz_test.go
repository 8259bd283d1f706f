package apply_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"cosplay/internal/apply"
	"cosplay/internal/durable"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// FuzzRecover: whatever a journal holds, it is refused or taken over, and the plan after it can be made.
func FuzzRecover(f *testing.F) {
	w := worldtest.New(f, "h200").WithDocker(resource.DefaultImage)
	j := &worldtest.Journal{}
	p, diags := w.Plan(f, contained, resource.Prior{})
	if diags.HasErrors() {
		f.Fatal(diags)
	}
	if _, err := w.Run(j, 1).Execute(f.Context(), p, resource.Prior{}, w.Live); err != nil {
		f.Fatal(err)
	}
	var whole []byte
	for n, entry := range j.Entries {
		line, err := json.Marshal(entry)
		if err != nil {
			f.Fatal(err)
		}
		whole = append(append(whole, line...), '\n')
		if n%4 == 0 {
			f.Add(whole)
		}
	}
	f.Add(whole)
	f.Add([]byte(`{"event":"started","step":"x"}` + "\n"))
	f.Add([]byte(`{"event":"done","step":"x"}` + "\n"))
	f.Add([]byte(`{"event":"started","step":"x","op":null}` + "\n{\"event\":\"failed\"}\n"))
	path := filepath.Join(f.TempDir(), "journal")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		entries, err := durable.ReadJournal[apply.Entry](path)
		if err != nil || apply.CheckJournal(entries) != nil {
			return
		}
		apply.Recover(resource.Prior{}, entries, w.Live)
	})
}
