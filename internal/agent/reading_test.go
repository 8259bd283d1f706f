package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
	if d := cmp.Diff(host, *answer.Host, cmpopts.IgnoreUnexported(host)); d != "" {
		t.Error(d)
	}
}

// ledgerAt is a ledger with a serial number.
type ledgerAt struct{ serial *int }

func (l ledgerAt) Read() ([]resource.Page, error) {
	return []resource.Page{{UUID: "GPU-0", Holders: []resource.Holder{{Lineage: "a", Serial: *l.serial}}}}, nil
}

func (l ledgerAt) Stamp() (string, error) { return fmt.Sprint(*l.serial), nil }

// TestReadingOfOneMoment: the GPUs are read again after a project has changed the ledger, and not for ever.
func TestReadingOfOneMoment(t *testing.T) {
	for _, c := range []struct{ changes, reads int }{{0, 1}, {1, 2}, {3, 4}, {100, maxReads}} {
		serial, reads := 0, 0
		host, err := ofOneMoment(ledgerAt{&serial}, func([]resource.Page) (*resource.Host, error) {
			if reads++; reads <= c.changes {
				serial++
			}
			return &resource.Host{Driver: fmt.Sprint(serial)}, nil
		})
		if err != nil || reads != c.reads || host.Driver != fmt.Sprint(host.Ledger[0].Holders[0].Serial) {
			t.Errorf("%d changes: %d readings, %+v, %v; want %d", c.changes, reads, host, err, c.reads)
		}
	}
}
