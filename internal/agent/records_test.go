package agent

import (
	"bytes"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// TestRootServesNoUser: an agent of root shows no records and runs no MPS daemon, since it could be misled by paths of
// the user whose agent does both.
func TestRootServesNoUser(t *testing.T) {
	dir := t.TempDir()
	lib := &nvmlLibrary{guard: &guard{uid: 1000, user: "ann"}}
	for _, op := range []string{opLedger, opHistory, opReleased, opMayChange, opRunMPS, opStopMPS} {
		answer := lib.handle(request{Op: op, GPU: "GPU-0", Daemon: &resource.MPS{Folder: dir + "/cosplay/mps/00000000/00000000"}}, readDeadline)
		if answer.Error == nil || !strings.Contains(answer.Error.Message, "an agent of root") {
			t.Errorf("%s: %+v", op, answer.Error)
		}
	}
}

// TestTextOfOthers: a process of another user may have any bytes in its environment, and the host is read all the same.
func TestTextOfOthers(t *testing.T) {
	var line bytes.Buffer
	foreign := []resource.ForeignDaemon{{PID: 7, Pipe: "/tmp/\xff"}}
	if err := writeLine(&line, response{Host: hostToWire(resource.Host{MPS: resource.MPSService{Foreign: foreign}})}); err != nil {
		t.Fatal(err)
	}
	answer, err := parseAnswer(line.Bytes())
	if err != nil || len(answer.Host.MPS.Foreign) != 1 || answer.Host.MPS.Foreign[0].PID != 7 {
		t.Errorf("%+v, %v", answer.Host, err)
	}
}
