package resource_test

import (
	"testing"

	"cosplay/internal/resource"
)

const up resource.Moment = 1_800_000_000 // when the session of a test came up

// TestEnd: each attribute ends a session to the second, the earliest of them first, and never before its extension.
func TestEnd(t *testing.T) {
	for _, test := range []struct {
		name     string
		of       resource.Lifetime
		active   resource.Moment
		extended resource.Moment
		at       resource.Moment // 0 for never
		why      string
	}{
		{name: "without attributes"},
		{name: "an extension alone is no end", extended: up + 60},
		{name: "ttl", of: resource.Lifetime{TTL: 8 * 3600}, at: up + 28800, why: "ttl"},
		{name: "ttl, active", of: resource.Lifetime{TTL: 100}, active: up + 99, at: up + 100, why: "ttl"},
		{name: "stop_at", of: resource.Lifetime{StopAt: up + 77}, at: up + 77, why: "stop_at"},
		{name: "stop_at before it came up", of: resource.Lifetime{StopAt: up - 10}, at: up - 10, why: "stop_at"},
		{name: "never active", of: resource.Lifetime{IdleTimeout: 50}, at: up + 50, why: "idle_timeout"},
		{name: "idle since", of: resource.Lifetime{IdleTimeout: 50}, active: up + 1000, at: up + 1050, why: "idle_timeout"},
		{name: "activity before it came up", of: resource.Lifetime{IdleTimeout: 50}, active: up - 1000, at: up + 50, why: "idle_timeout"},
		{name: "ttl before idle", of: resource.Lifetime{TTL: 100, IdleTimeout: 50}, active: up + 60, at: up + 100, why: "ttl"},
		{name: "idle before ttl", of: resource.Lifetime{TTL: 100, IdleTimeout: 50}, active: up + 40, at: up + 90, why: "idle_timeout"},
		{name: "stop_at before ttl", of: resource.Lifetime{TTL: 100, StopAt: up + 99}, at: up + 99, why: "stop_at"},
		{name: "extended", of: resource.Lifetime{TTL: 100}, extended: up + 500, at: up + 500, why: "ttl"},
		{name: "extended to before the end", of: resource.Lifetime{TTL: 100}, extended: up + 50, at: up + 100, why: "ttl"},
		{name: "extended while idle", of: resource.Lifetime{IdleTimeout: 50}, extended: up + 500, active: up + 480, at: up + 530, why: "idle_timeout"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := resource.PriorSession{UpAt: up, ExtendedTo: test.extended}
			s.Lifetime = test.of
			end := s.End(test.active)
			if end != (resource.End{At: test.at, Why: test.why}) {
				t.Fatalf("%+v", end)
			}
			if test.at == 0 {
				if end.Expired(up + 1<<40) {
					t.Error("it expires")
				}
				return
			}
			if end.Expired(test.at-1) || end.Left(test.at-1) != 1 {
				t.Errorf("a second before: expired %v, left %s", end.Expired(test.at-1), end.Left(test.at-1))
			}
			if !end.Expired(test.at) || end.Left(test.at) != 0 || !end.Expired(test.at+1) || end.Left(test.at+1) != 0 {
				t.Error("it does not expire to the second")
			}
		})
	}
}

// TestUnknownStart: a session that an older cosplay created has no time of its start. Only stop_at ends it.
func TestUnknownStart(t *testing.T) {
	s := resource.PriorSession{}
	s.Lifetime = resource.Lifetime{TTL: 1, IdleTimeout: 1}
	if end := s.End(0); end.At != 0 {
		t.Errorf("%+v", end)
	}
	if end := s.End(7); end != (resource.End{At: 8, Why: "idle_timeout"}) {
		t.Errorf("with activity: %+v", end)
	}
}

func TestExtended(t *testing.T) {
	for _, test := range []struct {
		name     string
		of       resource.Lifetime
		extended resource.Moment
		now      resource.Moment
		want     resource.Moment
	}{
		{"from its end", resource.Lifetime{TTL: 100}, 0, up + 30, up + 100 + 60},
		{"from now, once expired", resource.Lifetime{TTL: 100}, 0, up + 130, up + 130 + 60},
		{"twice", resource.Lifetime{TTL: 100}, up + 160, up + 30, up + 160 + 60},
		{"idle, from now", resource.Lifetime{IdleTimeout: 1000}, 0, up + 30, up + 30 + 60},
		{"from the earlier end", resource.Lifetime{TTL: 100, StopAt: up + 50}, 0, up, up + 50 + 60},
	} {
		s := resource.PriorSession{UpAt: up, ExtendedTo: test.extended}
		s.Lifetime = test.of
		got := s.Extended(60, test.now)
		s.ExtendedTo = got
		if end := s.End(0); got != test.want || end.At != got && test.of.IdleTimeout == 0 {
			t.Errorf("%s: %d, want %d; the end is %+v", test.name, got-up, test.want-up, end)
		}
	}
}
