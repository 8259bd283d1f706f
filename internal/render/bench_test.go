package render

import (
	"io"
	"testing"
)

// BenchmarkPlan is the plan of 1,001 new sessions on 143 GPUs.
func BenchmarkPlan(b *testing.B) {
	v := wide(143, 143).view()
	for b.Loop() {
		Show(io.Discard, Style{}, v)
	}
}

// BenchmarkStatus is the status of 1,001 sessions on 143 GPUs.
func BenchmarkStatus(b *testing.B) {
	v := wide(143, 143).applied().status()
	b.ResetTimer()
	for b.Loop() {
		Show(io.Discard, Style{}, v)
	}
}
