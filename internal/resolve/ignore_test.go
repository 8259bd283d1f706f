package resolve

import (
	"maps"
	"slices"
	"testing"

	"cosplay/internal/config"
)

// TestAllCanBeIgnored: whatever of a session can be named in ignore_changes is
// kept as it was.
func TestAllCanBeIgnored(t *testing.T) {
	var told []string
	for _, block := range config.Schema().Blocks {
		if block.Name != "session" {
			continue
		}
		for _, a := range block.Attributes {
			if a.Change != config.Nothing {
				told = append(told, a.Name)
			}
		}
		for _, inner := range block.Blocks {
			switch {
			case inner.Name == "lifecycle":
			case inner.Repeatable:
				told = append(told, inner.Name)
			default:
				for _, a := range inner.Attributes {
					told = append(told, inner.Name+"."+a.Name)
				}
			}
		}
	}
	slices.Sort(told)
	if kept := slices.Sorted(maps.Keys(keepers)); !slices.Equal(kept, told) {
		t.Errorf("kept are\n%v, the language has\n%v", kept, told)
	}
}
