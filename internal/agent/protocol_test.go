package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cosplay/internal/resource"
	"cosplay/internal/wiretest"
)

// TestParseIsStrict: a request of another version and one with a field that this
// agent does not know, wherever it is, are refused, not carried out without it.
func TestParseIsStrict(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{`{"version": 2, "op": "read"}`, ""},
		{`{"op": "read"}`, "protocol 2 here, 1 at"},
		{`{"version": 1, "op": "read"}`, "protocol 2 here, 1 at"},
		{`{"version": 99, "op": "read", "careful": true}`, "protocol 2 here, 99 at"},
		{`{"version": 2, "op": "set", "gpu": "GPU-x", "setting": "mig", "value": 1, "unless_in_use": true}`, "unless_in_use"},
		{`{"version": 2, "op": "set", "gpu": "GPU-x", "setting": "fan", "value": 1}`, "fan"},
		{`{"version": 2, "op": "take", "gpu": "GPU-x", "take": {"others": [], "only_if": 1}}`, "only_if"},
		{`{"version": 2, "op": "take", "gpu": "GPU-x", "take": {"others": [], "baseline": {"fan": 1}}}`, "fan"},
		{`{"version": 2, "op": "release", "gpu": "GPU-x", "holder": {"lineage": "a", "groups": []}}`, "groups"},
		{`{"version": 2, "op": "create-slices", "gpu": "GPU-x", "creates": [{"slice": {"host": "lab", "gpu": "GPU-x", "start": 0, "size": 1}, "need": {"sms": 1, "memory_mib": 1, "engines": 2}}]}`, "engines"},
		{`{"version": 2, "op": "read", "op": "release"}`, "duplicate"},
		{`{"version": 2, "OP": "read"}`, "OP"},
		{`{"version": "2", "op": "read"}`, "not one of its requests"},
		{`rubbish`, "not one of its requests"},
	} {
		_, err := parse([]byte(strings.ReplaceAll(test.line, `"version": 2`, fmt.Sprintf(`"version": %d`, Protocol))))
		want := strings.ReplaceAll(test.want, "protocol 2", fmt.Sprint("protocol ", Protocol))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", test.line, err, want)
		}
	}
}

// TestEveryRequestIsUnderstood: what the client writes, the child reads.
func TestEveryRequestIsUnderstood(t *testing.T) {
	for _, r := range seedRequests("GPU-x") {
		r.Version = Protocol
		line, err := json.Marshal(r.wire())
		if err != nil {
			t.Fatal(err)
		}
		read, err := parse(line)
		again, _ := json.Marshal(read.wire())
		if err != nil || !bytes.Equal(again, line) {
			t.Errorf("%s: %v, %s", line, err, again)
		}
	}
}

// TestOlderRootAgent: an agent from before versions, which would drop fields that
// it does not know, is asked for nothing.
func TestOlderRootAgent(t *testing.T) {
	bin := t.TempDir()
	asked := filepath.Join(bin, "asked")
	older := "#!/bin/sh\nwhile read -r line; do echo \"$line\" >>" + asked + `; echo '{"error":{"message":"there is no such operation"}}'; done` + "\n"
	if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte(older), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	client := New(Options{Library: "/opt/lib.so", Privileged: true, User: "ann"})
	defer client.Close()
	for range 2 {
		err := change(client, "GPU-x", resource.MIGMode, resource.On)
		if err == nil || !strings.Contains(err.Error(), "different versions") || !strings.Contains(err.Error(), "sudo install") {
			t.Errorf("got %v", err)
		}
	}
	if said, _ := os.ReadFile(asked); bytes.Contains(said, []byte("GPU-x")) || !bytes.Contains(said, []byte(opHello)) {
		t.Errorf("the older agent was asked for\n%s", said)
	}
}

// TestProtocolFields: the file that lists the fields of a version never changes once that version
// was released.
func TestProtocolFields(t *testing.T) {
	wiretest.Pin(t, fmt.Sprintf("testdata/protocol-%d.txt", Protocol), *updateDocs, "Raise Protocol, if its version was released, and run go test ./internal/agent -update.", wireRequest{}, wireResponse{})
}

// TestForeignDaemonsAreSent: a client gets the MPS daemons of other users that an agent has found.
func TestForeignDaemonsAreSent(t *testing.T) {
	want := resource.MPSService{Foreign: []resource.ForeignDaemon{{PID: 7, User: "bob", GPUs: "GPU-1"}}}
	data, err := json.Marshal(hostToWire(resource.Host{MPS: want}))
	if err != nil {
		t.Fatal(err)
	}
	var got wireHost
	if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got.host().MPS, want) {
		t.Errorf("%s: %+v, %v", data, got.host().MPS, err)
	}
}
