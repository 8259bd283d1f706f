package plan

import (
	"encoding/json"
	"os"
	"testing"

	"cosplay/internal/resource"
)

// TestReadBefore reads a plan that the format before has saved, and makes the same plan of it.
func TestReadBefore(t *testing.T) {
	var file struct{ Plan json.RawMessage }
	data, err := os.ReadFile("testdata/saved-2.plan")
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	saved, err := Read(file.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if bodies := saved.Live.Hosts[0].Bodies; len(bodies) != 1 || bodies[0].Session != "w" {
		t.Errorf("bodies: %+v", bodies)
	}
	made, err := saved.Plan("d4c3052db247d74390b9a3262ec6224b43ef6b59411a15295eb22ef1ca47c8db") // the key of its state
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Steps) == 0 || saved.FormatVersion != FormatVersion {
		t.Errorf("version %d, %d steps", saved.FormatVersion, len(made.Steps))
	}
	type host struct {
		Leftovers []resource.Body `json:"strays"`
	}
	old, err := json.Marshal(map[string]any{"format_version": 2, "live": map[string]any{"hosts": []host{{[]resource.Body{{Session: "w"}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	saved, err = Read(old)
	if err != nil {
		t.Fatal(err)
	}
	if leftovers := saved.Live.Hosts[0].Leftovers; len(leftovers) != 1 || leftovers[0].Session != "w" {
		t.Errorf("leftovers: %+v", leftovers)
	}
}
