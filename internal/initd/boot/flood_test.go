package boot_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"cosplay/internal/initd"
	"cosplay/internal/initd/inittest"
)

// floodBound is the most memory that cosplay-init may take, whatever clients do that
// do not log in, MiB. docs/containers.md states it.
const floodBound = 96

// The memory of cosplay-init stays within its bound whatever 1,300 clients do that
// do not log in.
func TestFloodMemory(t *testing.T) {
	var public ssh.PublicKey
	c := start(t, small, func(config *initd.Config) {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(config.AuthorizedKeys[0]))
		if err != nil {
			t.Fatal(err)
		}
		public = key
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port))
	idle := c.peak(t)
	for _, flood := range inittest.Floods(t, "jane", public) { // all at once: more than the server lets in
		flood.Start(t, address, inittest.HalfOpen/2)
	}
	time.Sleep(5 * time.Second) // what is closed comes again meanwhile
	peak := c.peak(t)
	t.Logf("cosplay-init: %d MiB before, %d MiB at most", idle, peak)
	if peak > floodBound {
		t.Errorf("cosplay-init takes %d MiB, more than %d", peak, floodBound)
	}
}

// peak is the peak memory of cosplay-init's processes, MiB.
func (c *container) peak(t *testing.T) (mib int) {
	t.Helper()
	pids := []string{strconv.Itoa(c.cmd.Process.Pid)}
	tasks, _ := filepath.Glob("/proc/" + pids[0] + "/task/*/children")
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		pids = append(pids, strings.Fields(string(children))...)
	}
	for _, pid := range pids {
		status, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(string(status), "VmHWM:")
		var kib int
		if _, err := fmt.Sscan(line, &kib); err != nil {
			t.Fatal(err)
		}
		mib += kib >> 10
	}
	return mib
}
