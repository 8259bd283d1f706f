package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// killer starts cosplay, and kills it after the time in a file, if there is one.
const killer = `#!/bin/sh
[ -s "$0.after" ] || exec %[1]s "$@"
exec timeout -s KILL "$(cat "$0.after")" %[1]s "$@"
`

// TestKilled: whenever cosplay is killed, calls are repeated, come out of order, or the driver starts again, what kubelet
// asks for at last is prepared, and in the end nothing is left. COSPLAY_LONG=1 tries 300 rounds.
func TestKilled(t *testing.T) {
	t.Run("slices", func(t *testing.T) {
		w := newWorld(t, "1 x h200")
		var claims []*resourceapi.ResourceClaim
		for slot := range 4 {
			claims = append(claims, w.claim(t, fmt.Sprint("one-", slot), fmt.Sprintf("gpu-0-1g-18gb-%d", slot), target([]string{"2060", "1660"}[slot%2])))
		}
		w.survive(t, claims)
	})
	t.Run("shared", func(t *testing.T) {
		w := newWorld(t, "1 x l40s")
		w.sharing = "time-slice"
		var claims []*resourceapi.ResourceClaim
		for i := range 4 {
			claims = append(claims, share(w.claim(t, fmt.Sprint("part-", i), "gpu-0-whole", target([]string{"2060", "1660"}[i%2])), 6144))
		}
		w.survive(t, claims)
	})
}

// survive makes kubelet's calls for claims in any order, most of them with a cosplay that is killed.
func (w *world) survive(t *testing.T, claims []*resourceapi.ResourceClaim) {
	script := filepath.Join(t.TempDir(), "cosplay")
	check(t, os.WriteFile(script, fmt.Appendf(nil, killer, w.cosplay), 0o755))
	real := w.cosplay
	rounds := 40
	if os.Getenv("COSPLAY_LONG") != "" {
		rounds = 300
	}
	r, killed := rand.New(rand.NewPCG(1, 2)), 0
	ctx := context.Background()
	for round := range rounds {
		w.driver = newDriver(w.projects, nodeName, w.client, w.recorder, gpusIn(w.driver), time.Minute) // it was killed, too
		w.cosplay = script
		after := ""
		if r.IntN(3) > 0 {
			after = fmt.Sprintf("0.%03d", 2+r.IntN(70))
		}
		check(t, os.WriteFile(script+".after", []byte(after), 0o600))
		c := claims[r.IntN(len(claims))]
		var err error
		if r.IntN(2) == 0 {
			results, failed := w.PrepareResourceClaims(ctx, []*resourceapi.ResourceClaim{c})
			check(t, failed)
			err = results[c.UID].Err
		} else {
			results, failed := w.UnprepareResourceClaims(ctx, []kubeletplugin.NamespacedObject{{UID: c.UID}})
			check(t, failed)
			err = results[c.UID]
		}
		if err != nil && after == "" {
			t.Fatalf("round %d, %s: %v", round, c.Name, err)
		}
		if err != nil {
			killed++
		}
	}
	w.cosplay = real
	w.prepareAll(t, claims...)
	w.unprepareAll(t, claims...)
	w.untouched(t)
	t.Logf("%d rounds, %d of them killed", rounds, killed)
	if killed < rounds/8 {
		t.Errorf("only %d of %d rounds were killed", killed, rounds)
	}
}
