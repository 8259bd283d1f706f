package project_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cosplay/internal/project"
	"cosplay/internal/projecttest"
)

// BenchmarkPlanNothingToDo plans a fleet without changes, from reading the file to the
// finished plan.
func BenchmarkPlanNothingToDo(b *testing.B) {
	for _, sessions := range []int{7, 1000} {
		b.Run(fmt.Sprint(sessions), func(b *testing.B) {
			dir := b.TempDir()
			projecttest.Write(b, dir, fmt.Sprintf("host \"lab\" { simulate = \"%d x h200\" }\nsession \"worker\" {\n  count  = %d\n  target = \"2060\"\n}\n", (sessions+6)/7, sessions))
			projecttest.Apply(b, dir, project.AsConfigured)
			b.ReportAllocs()
			for b.Loop() {
				p := projecttest.Open(b, dir)
				if err := p.Lock(context.Background(), "bench", time.Second); err != nil {
					b.Fatal(err)
				}
				o, _, err := p.Plan(context.Background(), project.Aim{})
				if err != nil {
					b.Fatal(err)
				}
				if o.Plan.Diff.Changes() {
					b.Fatal("the plan has changes")
				}
				p.Close()
			}
		})
	}
}
