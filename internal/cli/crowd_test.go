package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// TestHalfRequests: clients that begin requests and do not end them take a bounded number of files of the loop, and keep
// no client out.
func TestHalfRequests(t *testing.T) {
	health := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	on, err := listenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var s servers
	s.serve(on, health)
	defer s.close()
	address := on.Addr().String()
	const half = 400
	before := openFiles(t)
	for i := range half {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			fmt.Fprintf(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n")
		}
	}
	get := http.Client{Timeout: 2 * time.Second}
	answer, err := get.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); string(body) != "ok" {
		t.Errorf("%q", body)
	}
	if took := openFiles(t) - before - half; took > mostClients+10 {
		t.Errorf("%d half requests take %d files of the loop", half, took)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
