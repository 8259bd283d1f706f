package project

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkPlanNothingToDo is the plan of a fleet that is as it should be, from
// reading the file to the finished plan.
func BenchmarkPlanNothingToDo(b *testing.B) {
	for _, sessions := range []int{7, 1000} {
		b.Run(fmt.Sprint(sessions), func(b *testing.B) {
			dir := b.TempDir()
			write(b, dir, fmt.Sprintf("host \"lab\" { simulate = \"%d x h200\" }\nsession \"worker\" {\n  count  = %d\n  target = \"2060\"\n}\n", (sessions+6)/7, sessions))
			makeSo(b, dir, AsConfigured)
			b.ReportAllocs()
			for b.Loop() {
				p := openProject(b, dir)
				if err := p.Lock(context.Background(), "bench", time.Second); err != nil {
					b.Fatal(err)
				}
				o, _, err := p.Plan(context.Background(), Aim{})
				if err != nil {
					b.Fatal(err)
				}
				if o.Plan.Diff.Changes() {
					b.Fatal("there is something to do")
				}
				p.Close()
			}
		})
	}
}
