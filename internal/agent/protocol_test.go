package agent

import (
	"bytes"
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

// TestSlicesArePlaces: how sessions share a slice is no part of the protocol, although the type of a slice has it.
func TestSlicesArePlaces(t *testing.T) {
	shared := resource.LiveSlice{Slice: resource.Slice{GPU: "GPU-x", Profile: "1g.18gb", Size: 1, Sharing: resource.SharingTime}}
	for _, r := range []request{
		{Op: opDestroySlice, GPU: "GPU-x", Slice: &shared},
		{Op: opCreateSlices, GPU: "GPU-x", Creates: []creation{{Slice: shared.Slice}}},
	} {
		if err := r.check(); err == nil || !strings.Contains(err.Error(), moreThanPlace) {
			t.Errorf("%s: %v", r.Op, err)
		}
	}
}

// TestEveryRequestIsUnderstood: what the client writes, the child reads.
func TestEveryRequestIsUnderstood(t *testing.T) {
	for _, r := range seedRequests("GPU-x") {
		r.Version = Protocol
		line := written(t, r)
		read, err := parse(line)
		if again := written(t, read); err != nil || !bytes.Equal(again, line) {
			t.Errorf("%s: %v, %s", line, err, again)
		}
	}
}

// written is the line of a request or an answer.
func written(t testing.TB, message any) []byte {
	t.Helper()
	var line bytes.Buffer
	if err := writeLine(&line, message); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(line.Bytes(), []byte("\n"))
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
	type wireRequest request
	type wireResponse response
	wiretest.Pin(t, fmt.Sprintf("testdata/protocol-%d.txt", Protocol), *updateDocs, "Raise Protocol, if its version was released, and run go test ./internal/agent -update.", wireRequest{}, wireResponse{})
}

// TestForeignDaemonsAreSent: a client gets the MPS daemons of other users that an agent has found.
func TestForeignDaemonsAreSent(t *testing.T) {
	want := resource.MPSService{Foreign: []resource.ForeignDaemon{{PID: 7, User: "bob", GPUs: "GPU-1"}}}
	data := written(t, response{Host: hostToWire(resource.Host{MPS: want})})
	answer, err := parseAnswer(data)
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Host; !reflect.DeepEqual(got.host().MPS, want) {
		t.Errorf("%s: %+v, %v", data, got.host().MPS, err)
	}
}
