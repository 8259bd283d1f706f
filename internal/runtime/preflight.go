package runtime

import (
	"fmt"
	"os"

	"cosplay/internal/durable"
	"cosplay/internal/preflight"
	"cosplay/internal/prose"
)

// CheckWorkspace checks whether the workspace of a session exists or can be created.
func CheckWorkspace(dir string) []preflight.Problem {
	err := durable.CanWriteIn(dir)
	if err == nil {
		return nil
	}
	if info, there := os.Stat(dir); there == nil && info.IsDir() {
		return []preflight.Problem{{
			Attribute: "workspace", Warning: true,
			Summary: fmt.Sprintf("you cannot write into the workspace %s", dir),
			Advice: prose.Advice{What: prose.Stop(err.Error()) + " Sessions run as your user, so they cannot write there either",
				Fix: "change its owner (chown), or name another folder"},
		}}
	}
	return []preflight.Problem{{
		Attribute: "workspace",
		Summary:   fmt.Sprintf("the workspace %s cannot be created", dir),
		Advice:    prose.Advice{What: err.Error(), Fix: "remove what blocks it, or name another folder"},
	}}
}
