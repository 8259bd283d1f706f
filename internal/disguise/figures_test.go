package disguise

import (
	"testing"

	"cosplay/catalog"
)

func TestEveryTargetHasAnArchitecture(t *testing.T) {
	for _, target := range catalog.Targets() {
		if architectures[target.Architecture] == 0 {
			t.Errorf("%s: NVML's number of %q is missing", target.Key, target.Architecture)
		}
	}
}
