package resource

import (
	"testing"
)

func TestNames(t *testing.T) {
	nth := func(name string, indexes ...int) (all []Address) {
		for _, i := range indexes {
			all = append(all, Nth(name, i))
		}
		return all
	}
	mixed := append(nth("w", 0, 1, 2, 4, 6, 7), One("big"), Each("e", "x"), Each("e", "y"))
	for _, c := range []struct {
		addresses []Address
		shown     int
		want      string
	}{
		{nil, 0, ""},
		{nth("w", 3), 3, "session.w[3]"},
		{nth("w", 3, 4), 3, "session.w[3] and [4]"},
		{append(nth("v", 0), nth("w", 1)...), 3, "session.v[0], session.w[1]"},
		{mixed, 0, `session.w[0] to [2], session.w[4], session.w[6] and [7], session.big, session.e["x"], session.e["y"]`},
		{mixed, 3, "session.w[0] to [2], session.w[4], session.w[6] and [7] and 3 more"},
	} {
		if got := AddressNames(c.addresses, c.shown); got != c.want {
			t.Errorf("%v: got %s, want %s", c.addresses, got, c.want)
		}
	}
}
