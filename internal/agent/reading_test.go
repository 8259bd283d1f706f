package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
)

// TestReading: a host comes out of the line as it went in, each of its models
// written once.
func TestReading(t *testing.T) {
	of := func(uuid, name string) resource.GPU {
		return resource.GPU{UUID: uuid, Model: resource.Model{Name: name, ClocksMHz: []int{345, 1980}, Profiles: []resource.Profile{{Name: "1g.18gb", Starts: []int{0, 1}}}}}
	}
	host := resource.Host{Driver: "550", Unusable: []resource.Unusable{{Index: 2, Call: "nvmlDeviceGetUUID", Code: 15, Message: "GPU is lost"}}, GPUs: []resource.GPU{of("GPU-0", "one"), of("GPU-1", "other"), of("GPU-2", "one")}}
	packed, err := packed(&host, nil)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(response{Host: packed})
	if err != nil {
		t.Fatal(err)
	}
	if one, other := strings.Count(string(line), `"one"`), strings.Count(string(line), `"other"`); one != 1 || other != 1 {
		t.Errorf("the models are written %d and %d times: %s", one, other, line)
	}
	var answer response
	if err := json.Unmarshal(line, &answer); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(host, answer.Host.unpacked()); d != "" {
		t.Error(d)
	}

	// One of an older agent has each GPU's model with it.
	old := reading{Host: host}
	if d := cmp.Diff(host, old.unpacked()); d != "" {
		t.Error(d)
	}
}
