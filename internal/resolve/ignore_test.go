package resolve

import (
	"maps"
	"slices"
	"testing"

	"cosplay/internal/config"
)

// TestAllCanBeIgnored: each attribute that ignore_changes can name has a keeper.
func TestAllCanBeIgnored(t *testing.T) {
	var covered []string
	for _, block := range config.Schema().Blocks {
		if block.Name != "session" {
			continue
		}
		for _, a := range block.Attributes {
			if a.Change != config.Nothing {
				covered = append(covered, a.Name)
			}
		}
		for _, inner := range block.Blocks {
			switch {
			case inner.Name == "lifecycle":
			case inner.Repeatable:
				covered = append(covered, inner.Name)
			default:
				for _, a := range inner.Attributes {
					covered = append(covered, inner.Name+"."+a.Name)
				}
			}
		}
	}
	slices.Sort(covered)
	if kept := slices.Sorted(maps.Keys(keepers)); !slices.Equal(kept, covered) {
		t.Errorf("kept are\n%v, the language has\n%v", kept, covered)
	}
}
