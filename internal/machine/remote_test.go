package machine

import (
	"context"
	"strings"
	"testing"
	"time"

	"cosplay/internal/config"
	"cosplay/internal/remote"
	"cosplay/internal/resource"
)

// TestKeyElsewhere: another machine gets a key that is derived from the state's for that host, and the state's key never.
func TestKeyElsewhere(t *testing.T) {
	m := Machine{Dir: t.TempDir(), State: "state.json"}
	asked := map[string]string{}
	for _, name := range []string{"gpu1", "gpu2"} {
		h := m.host(config.Host{Name: name, Connect: "ssh://" + name})
		h.remote = &remote.Machine{Ask: func(_ context.Context, question []byte, _ time.Duration) ([]byte, error) {
			asked[name] += string(question)
			return []byte("{}"), nil
		}}
		for _, in := range h.Runtimes(resource.Owner{Lineage: "one", Key: "the-state's-key"}) {
			_, _ = in.List(context.Background())
			_, _ = in.Unprepare(context.Background(), "worker-0")
		}
	}
	for name, all := range asked {
		other := map[string]string{"gpu1": "gpu2", "gpu2": "gpu1"}[name]
		if strings.Contains(all, "the-state's-key") || !strings.Contains(all, resource.KeyElsewhere(name, "the-state's-key")) || strings.Contains(all, resource.KeyElsewhere(other, "the-state's-key")) {
			t.Errorf("%s was asked: %s", name, all)
		}
	}
	if resource.KeyElsewhere("gpu1", "") != "" {
		t.Error("without a state, there is a key")
	}
}
