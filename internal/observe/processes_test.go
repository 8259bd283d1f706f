package observe

import (
	"os"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

func TestNameProcesses(t *testing.T) {
	live := resource.Live{Hosts: []resource.Host{{GPUs: []resource.GPU{{Processes: []resource.Process{{PID: os.Getpid()}, {PID: 1 << 30}}}}}}}
	NameProcesses(live, resource.Prior{}, nil)
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	if got := live.Hosts[0].GPUs[0].Processes; got[0].Name != strings.TrimSpace(string(comm)) || got[1].Name != "" {
		t.Errorf("%+v", got)
	}
}
