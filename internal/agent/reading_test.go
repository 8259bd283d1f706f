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
	line, err := json.Marshal(response{Host: &host}.wire())
	if err != nil {
		t.Fatal(err)
	}
	if one, other := strings.Count(string(line), `"one"`), strings.Count(string(line), `"other"`); one != 1 || other != 1 {
		t.Errorf("the models are written %d and %d times: %s", one, other, line)
	}
	answer, err := parseAnswer(line)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(host, *answer.Host); d != "" {
		t.Error(d)
	}
}
