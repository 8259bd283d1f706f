package prose_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"cosplay/internal/prose"
)

// TestAdvice: an error keeps its two parts and its cause, whatever was put before it.
func TestAdvice(t *testing.T) {
	advice := prose.Advice{What: "the GPU is lost", Fix: "reboot the machine", Cause: io.EOF}
	err := fmt.Errorf("host lab: %w", advice)
	if err.Error() != "host lab: the GPU is lost. Fix: reboot the machine" || !errors.Is(err, io.EOF) {
		t.Errorf("got %q", err)
	}
	if got := prose.AdviceOf(err); got.What != "host lab: the GPU is lost." || got.Fix != advice.Fix || !errors.Is(got, io.EOF) {
		t.Errorf("its parts are %+v", got)
	}
	for _, whole := range []error{errors.New("it failed. Fix: nothing"), prose.Advice{What: "it failed"}, fmt.Errorf("%w, and more", advice)} {
		if got := prose.AdviceOf(whole); got.What != whole.Error() || got.Fix != "" {
			t.Errorf("%v has the parts %+v", whole, got)
		}
	}
	if got := (prose.Advice{Fix: "reboot"}).Error(); got != "Fix: reboot" {
		t.Errorf("without a what: %q", got)
	}
}
