package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/state"
)

// admin does what only he may.
func (c *chaos) admin() {
	gpu := c.random.IntN(c.gpus)
	switch n := c.random.IntN(100); {
	case n < 35:
		c.settleIn(gpu)
	case n < 55:
		c.removeForeign()
	case n < 65: // the admin destroys a slice of the project
		for _, s := range c.shown().GPUs[gpu].Slices {
			if len(s.Compute) > 0 && !c.knows(s.Compute[0].UUID) {
				c.maybe("destroy-slice", strconv.Itoa(gpu), strconv.Itoa(s.GPUInstance))
				break
			}
		}
	case n < 75: // a program in a slice of the admin's
		for _, f := range c.inOrder() {
			c.maybe("set", strconv.Itoa(f.gpu), "process", fmt.Sprintf("4711001:100:%d", f.instance))
		}
	case n < 80:
		c.sim("set", strconv.Itoa(gpu), "process", "none")
	case n < 85:
		c.sim("set", strconv.Itoa(gpu), "lost", []string{"on", "off", "off"}[c.random.IntN(3)])
	case c.reboots:
		c.sim("reboot")
		clear(c.foreign)
		c.tally["reboots"]++
	}
}

func (c *chaos) sim(args ...string) {
	c.t.Helper()
	if !c.maybe(args...) {
		c.t.Fatalf("sim %v failed", args)
	}
}

func (c *chaos) maybe(args ...string) bool {
	out, err := c.command(append([]string{"--file", "a.hcl", "--state", "a.json", "sim"}, args...)...).CombinedOutput()
	c.note("admin: %s: %v %s", strings.Join(args, " "), err, lastLines(string(out)))
	return err == nil
}

// settleIn makes a slice of the admin's, where there is MIG and room.
func (c *chaos) settleIn(gpu int) {
	for range 6 {
		profile, slot := []string{"1g.18gb", "1g.18gb", "2g.35gb", "3g.71gb"}[c.random.IntN(4)], c.random.IntN(8)
		if c.shown().GPUs[gpu].MIG && c.maybe("create-slice", strconv.Itoa(gpu), profile, strconv.Itoa(slot)) {
			c.meet(gpu, slot, false)
			c.tally["foreign slices"]++
			return
		}
	}
}

// meet notes the slice that the admin has made.
func (c *chaos) meet(gpu, start int, stays bool) {
	for _, s := range c.shown().GPUs[gpu].Slices {
		if s.Start == start {
			c.foreign[s.Compute[0].UUID] = foreign{gpu, s.GPUInstance, start, stays}
		}
	}
}

func (c *chaos) knows(uuid string) bool {
	_, known := c.foreign[uuid]
	return known
}

// inOrder are the slices of the admin's, the same in every replay.
func (c *chaos) inOrder() []foreign {
	all := slices.Collect(maps.Values(c.foreign))
	slices.SortFunc(all, func(a, b foreign) int { return cmp.Or(cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.start, b.start)) })
	return all
}

// removeForeign removes the slices of the admin's that came during the story,
// and the programs in them.
func (c *chaos) removeForeign() {
	if c.anyLost() {
		return
	}
	for gpu := range c.gpus {
		c.sim("set", strconv.Itoa(gpu), "process", "none")
	}
	for _, f := range c.inOrder() {
		if !f.stays {
			c.sim("destroy-slice", strconv.Itoa(f.gpu), strconv.Itoa(f.instance))
		}
	}
	maps.DeleteFunc(c.foreign, func(_ string, f foreign) bool { return !f.stays })
}

// forge creates a container with the labels of one of the project's, running or not;
// if there are enough, it removes one.
func (c *chaos) forge() {
	ours := c.containers()
	if len(c.forged) == maxForged {
		if err := bounded(c.t, "docker", "rm", "-f", c.forged[0]).Run(); err != nil {
			c.t.Errorf("a forged container cannot be removed: %v", err)
		}
		c.forged = c.forged[1:]
	}
	if len(ours) == 0 {
		return
	}
	of := ours[c.random.IntN(len(ours))]
	out, err := bounded(c.t, "docker", "inspect", "-f", `{{range $k, $v := .Config.Labels}}{{$k}}={{$v}}{{"\n"}}{{end}}`, of).Output()
	if err != nil {
		c.t.Fatal(err)
	}
	args := []string{[]string{"create", "run"}[c.random.IntN(2)]}
	if args[0] == "run" {
		args = append(args, "-d")
	}
	for _, label := range strings.Fields(string(out)) {
		args = append(args, "--label", label)
	}
	id, err := bounded(c.t, "docker", append(args, "cosplay-test/scratch", "/busybox", "sleep", "3600")...).Output()
	if err != nil {
		c.t.Fatal(err)
	}
	c.forged = append(c.forged, strings.TrimSpace(string(id)))
	c.note("admin: a container with the labels of %s", of)
	c.tally["forged containers"]++
}

// maxForged is how many forged containers there are at a time.
const maxForged = 3

// containers are those of both projects, by their labels.
func (c *chaos) containers() []string {
	if !*chaosDocker {
		return nil
	}
	var all []string
	for _, who := range []string{"a", "b"} {
		prior, err := state.Store{Path: filepath.Join(c.dir, who+".json")}.Load()
		if err != nil || prior.Lineage == "" {
			continue
		}
		out, err := bounded(c.t, "docker", "ps", "-aq", "--no-trunc", "--filter", "label=cosplay.lineage="+prior.Lineage).Output()
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, strings.Fields(string(out))...)
	}
	return slices.DeleteFunc(all, func(id string) bool { return slices.Contains(c.forged, id) })
}
