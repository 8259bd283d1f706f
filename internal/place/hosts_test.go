package place

import (
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// anyOf are n requests for a target on any of some hosts.
func anyOf(name string, n int, key string, hosts ...string) []Request {
	all := ask("", name, n, key)
	for i := range all {
		all[i].Hosts = hosts
	}
	return all
}

// TestAnyHost: sessions that may be on several hosts take as few GPUs as possible over all of them, only those that they may
// have, beside sessions that have a host; in any order of the arguments.
func TestAnyHost(t *testing.T) {
	gpus := slices.Concat(rack("a", "h200"), rack("b", "h200", "h200"), rack("c", "h200"), rack("d", "l40s"))
	requests := slices.Concat(ask("a", "fixed", 5, "2060"), anyOf("wide", 9, "2060", "a", "b"), anyOf("only", 1, "2060", "b"), anyOf("far", 1, "2060", "c"), ask("d", "own", 1, "4070"))
	first := Place(gpus, requests)
	if len(first.Refused) > 0 || len(first.Placed) != len(requests) {
		t.Fatalf("%+v", first.Refused)
	}
	on, used := map[string]string{}, map[string]bool{}
	for _, p := range first.Placed {
		on[p.Address.Short()] = p.Slice.Host
		used[p.Slice.GPU] = true
	}
	for address, host := range on {
		may := map[string]string{"fixed": "a", "wide": "a b", "only": "b", "far": "c", "own": "d"}[address[:strings.IndexByte(address, '-')]]
		if !slices.Contains(strings.Fields(may), host) {
			t.Errorf("%s is on %s, and may be on %s", address, host, may)
		}
	}
	if len(used) != 5 { // 15 on a and b need three GPUs
		t.Errorf("%d GPUs are used: %v", len(used), used)
	}
	for range 20 {
		rand.Shuffle(len(gpus), func(i, j int) { gpus[i], gpus[j] = gpus[j], gpus[i] })
		rand.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
		if d := cmp.Diff(first.Placed, Place(gpus, requests).Placed); d != "" {
			t.Fatalf("another order, another placement:\n%s", d)
		}
	}
}

// TestAnyHostRefused: the refusal names the hosts, and a crowd on one of them changes nothing on hosts that it may not have.
func TestAnyHostRefused(t *testing.T) {
	gpus := slices.Concat(rack("a", "h200"), rack("b", "h200"), rack("c", "h200"))
	r := Place(gpus, slices.Concat(anyOf("wide", 15, "2060", "a", "b"), anyOf("other", 1, "2060", "c"), anyOf("none", 1, "2060", "nowhere", "gone")))
	if len(r.Placed) != 15 || len(r.Refused) != 2 {
		t.Fatalf("%d placed, refused: %+v", len(r.Placed), r.Refused)
	}
	if what := r.Refused[0].What; what != "host nowhere or gone has no GPU that may be used" {
		t.Error(what)
	}
	if what := r.Refused[1].What; !strings.Contains(what, "GPU 0 of host a and GPU 0 of host b: ") {
		t.Error(what)
	}
}
