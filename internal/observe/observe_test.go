package observe

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

type reader struct {
	host resource.Host
	err  error
}

func (r reader) Read(context.Context, resource.MPSSearch) (resource.Host, error) {
	return r.host, r.err
}

type lister struct {
	containers []resource.Body
	err        error
}

func (l lister) List(context.Context) ([]resource.Body, error) { return l.containers, l.err }

func same(g resource.GPU) resource.GPU { return g }

func TestReadNamesAndSorts(t *testing.T) {
	live, err := Read(context.Background(), []Source{
		{Name: "b", Runtime: "process", GPUs: reader{}, Bodies: []BodyLister{lister{}}},
		{Name: "a", Simulated: "1 x h200", Runtime: "process",
			GPUs:   reader{host: resource.Host{BootID: "boot", GPUs: []resource.GPU{{UUID: "GPU-0", Slices: []resource.LiveSlice{{}}}}}},
			Bodies: []BodyLister{lister{containers: []resource.Body{{Session: "w-2"}, {Session: "w-10"}, {Session: "w-1"}}}}},
	}, func(g resource.GPU) resource.GPU {
		g.Model = resource.Model{Name: "complete " + g.UUID}
		return g
	})
	if err != nil {
		t.Fatal(err)
	}
	if live.Hosts[0].Name != "a" || live.Hosts[1].Name != "b" {
		t.Errorf("hosts in the order %s, %s", live.Hosts[0].Name, live.Hosts[1].Name)
	}
	g, ok := live.GPU("a", "GPU-0")
	if !ok || g.Host != "a" || g.Slices[0].Host != "a" || g.Model.Name != "complete GPU-0" {
		t.Errorf("%+v", g)
	}
	for _, session := range []string{"w-1", "w-2", "w-10"} {
		if c, ok := live.Body("a", "", session); !ok || c.Host != "a" {
			t.Errorf("%s is not found: %+v", session, c)
		}
	}
}

// TestUnreadableIsAnError checks that Read returns all errors together, with the host's name.
func TestUnreadableIsAnError(t *testing.T) {
	_, err := Read(context.Background(), []Source{
		{Name: "a", GPUs: reader{err: errors.New("no driver")}, Bodies: []BodyLister{lister{}}},
		{Name: "b", GPUs: reader{}, Bodies: []BodyLister{lister{err: errors.New("no folder")}}},
	}, same)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"host a: no driver", "host b: no folder"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

// TestUnreached: a host on another machine that cannot be read is what stands for it, with the reason; if no host can be
// read, that is an error.
func TestUnreached(t *testing.T) {
	stands := &resource.Host{Name: "b", BootID: "boot", Bodies: []resource.Body{{Session: "w-1"}}}
	a := Source{Name: "a", GPUs: reader{}, Bodies: []BodyLister{lister{}}}
	for _, b := range []Source{
		{Name: "b", Failed: errors.New("host b: no route"), Unreached: stands},
		{Name: "b", GPUs: reader{err: errors.New("no route")}, Bodies: []BodyLister{lister{}}, Unreached: stands},
		{Name: "b", GPUs: reader{}, Bodies: []BodyLister{lister{err: errors.New("no route")}}, Unreached: stands},
	} {
		live, err := Read(context.Background(), []Source{a, b}, same)
		if err != nil {
			t.Fatal(err)
		}
		if got := live.Hosts[1]; got.Unreachable != "no route" || len(got.Bodies) != 1 || got.BootID != "boot" || live.Hosts[0].Unreachable != "" || live.AllReached() {
			t.Errorf("%+v", live.Hosts)
		}
		if _, err := Read(context.Background(), []Source{b}, same); err == nil || err.Error() != "host b: no route" {
			t.Errorf("without another host: %v", err)
		}
	}
}
