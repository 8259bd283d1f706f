package agent

import (
	"context"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// TestNotify: a change of the MIG configuration and the loss of a GPU wake the client, after an error, too; with a driver
// that has no events, Notify returns.
func TestNotify(t *testing.T) {
	host, client := newHost(t, Options{}, "h200")
	gpu := read(t, client).GPUs[0].UUID
	woken := make(chan bool, 100)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() {
		client.reads.options.Notify(ctx, func() { woken <- true })
		close(ended)
	}()
	wakes := func(what string, change func() error) {
		t.Helper()
		for len(woken) > 0 {
			<-woken
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-woken:
		case <-time.After(20 * time.Second):
			t.Errorf("%s does not wake", what)
		}
	}
	time.Sleep(time.Second) // until it listens
	wakes("MIG mode", func() error { return change(client, gpu, resource.MIGMode, resource.On) })
	wakes("a slice", func() error {
		_, err := client.CreateSlice(t.Context(), resource.Slice{GPU: gpu, Profile: "1g.18gb", Size: 1}, resource.Need{SMs: 16})
		return err
	})
	wakes("an error", func() error {
		return host.SetFault(sim.Fault{Function: "nvmlEventSetWait", Action: sim.Answer, Code: int(nvml.ERROR_GPU_IS_LOST), Nth: 1})
	})
	wakes("a slice after the error", func() error {
		time.Sleep(3 * time.Second)
		_, err := client.CreateSlice(t.Context(), resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 1, Size: 1}, resource.Need{SMs: 16})
		return err
	})
	stop()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("Notify does not end")
	}
	if err := host.SetFault(sim.Fault{Function: "nvmlDeviceRegisterEvents", Action: sim.Answer, Code: int(nvml.ERROR_NOT_SUPPORTED)}); err != nil {
		t.Fatal(err)
	}
	client.reads.options.Notify(t.Context(), func() {}) // would not return
}
