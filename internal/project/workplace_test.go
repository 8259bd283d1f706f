package project

import (
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// TestEditors: a session on another machine is opened by that machine, and a name that VS Code would convert to lower case
// is encoded.
func TestEditors(t *testing.T) {
	s := resource.PriorSession{Session: resource.Session{ID: "w-0-Vision", Address: resource.One("w")}}
	enter := []string{"cosplay", "exec", "w", "--"}
	for _, c := range []struct {
		w          Workplace
		want, note string
	}{
		{Workplace{Session: s, Folder: "/workspace", Inside: true, Login: &Login{}}, "code --remote ssh-remote+7b22686f73744e616d65223a22636f73706c61792d772d302d566973696f6e227d /workspace", ""},
		{Workplace{Session: s, Folder: "/workspace", Inside: true, Machine: "ssh://ada@gpu1:2222"}, "code --remote ssh-remote+ada@gpu1:2222", "choose cosplay-w-0-Vision."},
		{Workplace{Session: s, Folder: "/home/ada/w", Machine: "ssh://gpu1"}, "code --remote ssh-remote+gpu1 /home/ada/w", "cosplay exec w -- COMMAND"},
		{Workplace{Session: s, Inside: true}, "code --remote attached-container+7b22636f6e7461696e65724e616d65223a222f636f73706c61792d772d302d566973696f6e227d", ""},
	} {
		first := c.w.Editors(enter)[0]
		if got := strings.Join(first.Command, " "); got != c.want || !strings.Contains(first.Note, c.note) {
			t.Errorf("%+v: %s, %s", c.w, got, first.Note)
		}
	}
}
