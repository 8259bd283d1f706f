package docker

import (
	"strings"
	"testing"
)

// TestFixSource: mkdir is no advice for a source that looks like a file.
func TestFixSource(t *testing.T) {
	for source, folder := range map[string]bool{"/data": true, "/home/me/.cache": true, "/project/conf.yaml": false} {
		if strings.Contains(fixSource(source), "mkdir") != folder {
			t.Errorf("%s: %s", source, fixSource(source))
		}
	}
}
