package runtime

import (
	"fmt"
	"os"

	"cosplay/internal/durable"
	"cosplay/internal/preflight"
	"cosplay/internal/prose"
)

// CheckWorkspace looks whether the folder of a session's work is there or can be
// made.
func CheckWorkspace(dir string) []preflight.Problem {
	err := durable.CanWriteIn(dir)
	if err == nil {
		return nil
	}
	if info, there := os.Stat(dir); there == nil && info.IsDir() {
		return []preflight.Problem{{
			Attribute: "workspace", Warning: true,
			Summary: fmt.Sprintf("you cannot write into the workspace %s", dir),
			Detail:  prose.Sentence(err.Error()) + " Sessions run as you, so they cannot keep anything there. Make it yours (chown), or name another folder.",
		}}
	}
	return []preflight.Problem{{
		Attribute: "workspace",
		Summary:   fmt.Sprintf("the workspace %s cannot be made", dir),
		Detail:    prose.Sentence(err.Error()) + " Make way for it, or name another folder.",
	}}
}
