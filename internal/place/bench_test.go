package place

import (
	"fmt"
	"testing"
)

func BenchmarkPlace(b *testing.B) {
	sizes := []int{1000, 10_000}
	for _, n := range sizes {
		gpus := rack("lab", times((n+6)/7, "h200")...)
		requests := ask("lab", "worker", n, "2060")
		b.Run(fmt.Sprintf("new-%d", n), func(b *testing.B) {
			for b.Loop() {
				Place(gpus, requests)
			}
		})
		keptGPUs, kept := keep(gpus, requests, Place(gpus, requests))
		b.Run(fmt.Sprintf("kept-%d", n), func(b *testing.B) {
			for b.Loop() {
				Place(keptGPUs, kept)
			}
		})
		mixed := join(ask("lab", "a", n/5, "2060"), ask("lab", "b", n/5, "3060"), ask("lab", "c", n/5, "3070"), ask("lab", "d", n/5, "1660"), ask("lab", "e", n/5, "2080"))
		fleet := rack("lab", times(n/3, "h200")...)
		b.Run(fmt.Sprintf("mixed-%d", n), func(b *testing.B) {
			for b.Loop() {
				Place(fleet, mixed)
			}
		})
	}
}
