package kubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cosplay/catalog"
	"cosplay/internal/pattern"
	"cosplay/internal/place"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Cluster is what cosplay-node published of the GPUs of a cluster, and what of them is allocated.
type Cluster struct {
	GPUs     []GPU    // by node and index
	warnings []string // what gets no new session
	stale    []staleClaim
}

// staleClaim is a claim with a device that no node publishes.
type staleClaim struct {
	node string
	claim
}

func (c *Cluster) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// GPU is a GPU of a node.
type GPU struct {
	Node     string
	machine  string // the node's UID, which no other cluster has
	Index    int
	UUID     string
	Model    resource.Model // of the catalog
	ClockMHz int
	devices  []device
	taken    []allocation
	closed   bool // no new session gets any of it
	lost     bool // no session keeps any of it
}

// allocation is a device that a claim has.
type allocation struct {
	device
	claim claim
	stays bool // with its session
}

// device is a placement of a GPU, as a node publishes it.
type device struct {
	name    string
	parent  string
	index   int
	model   string
	profile string // "" is the whole GPU
	start   int
	size    int // in memory slices
	clock   int
	closed  bool // it has a taint: no new session gets it
	lost    bool // its pods are evicted
}

// Decode reads what Command printed.
func Decode(data []byte) (c Cluster, err error) {
	o, err := parse(data)
	if err != nil {
		return c, err
	}
	nodes := map[string]nodeObject{}
	for _, n := range o.nodes {
		if _, twice := nodes[n.Metadata.Name]; twice {
			return c, fmt.Errorf("node %.80q is there twice", n.Metadata.Name)
		}
		if err := form("the name of a node", n.Metadata.Name, subdomainForm); err != nil {
			return c, err
		}
		nodes[n.Metadata.Name] = n
	}
	pools, err := poolsOf(o.slices)
	switch {
	case err != nil:
		return c, err
	case len(nodes) == 0:
		return c, errors.New("it has no Node")
	case len(pools) == 0:
		return c, fmt.Errorf("no node has GPUs of the driver %s: cosplay-node does not run in the cluster, or has published nothing", driver)
	}
	taken := allocations(o.claims)
	for node := range taken {
		pools[node] = slices.Clip(pools[node]) // also of a node that publishes nothing
	}
	for _, node := range slices.Sorted(maps.Keys(pools)) {
		of, known := nodes[node]
		if err := c.add(node, of, known, pools[node], taken[node]); err != nil {
			return c, fmt.Errorf("node %q: %w", node, err)
		}
	}
	return c, nil
}

var (
	subdomainForm = pattern.Of(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)
	uuidForm      = pattern.Of(`^GPU-[0-9A-Za-z-]{1,64}$`)
)

// form checks a text that manifests repeat, or that is shown.
func form(what, text string, of func() *regexp.Regexp) error {
	if !of().MatchString(text) {
		return fmt.Errorf("%.80q cannot be %s", text, what)
	}
	return nil
}

// Shared is a node with a GPU that two captures have; "" for none.
func (c Cluster) Shared(other Cluster) string {
	has := map[[2]string]bool{}
	for _, g := range other.GPUs {
		has[[2]string{g.machine, g.UUID}] = true
	}
	for _, g := range c.GPUs {
		if has[[2]string{g.machine, g.UUID}] {
			return g.Node
		}
	}
	return ""
}

// add adds the GPUs of a node with what is taken of them, and says why no new session is planned there.
func (c *Cluster) add(node string, of nodeObject, known bool, published []deviceSpec, taken map[string]claim) error {
	gpus, err := c.gpusOf(node, published, taken)
	why := ""
	switch {
	case !known:
		why = "does not exist"
	case of.Spec.Unschedulable:
		why = "is cordoned"
	case of.Status.notReady():
		why = "is not ready"
	}
	if why != "" && len(gpus) > 0 {
		c.warn("node %s %s: its %s no new sessions", node, why, prose.Count(len(gpus), "GPU")+prose.Choose(len(gpus), " gets", " get"))
	}
	for i := range gpus {
		g := &gpus[i]
		g.machine, g.closed, g.lost = cmp.Or(of.Metadata.UID, node), g.closed || why != "", !known
	}
	c.reportStale(node, gpus, published, taken)
	c.GPUs = append(c.GPUs, gpus...)
	return err
}

var deviceForm = pattern.Of(`^(gpu-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})-`) // the UUID of its GPU, and what of it

// reportStale reports the claims whose devices a node does not publish. Their GPU gets no new session; where the name of a device
// does not say which it is, no GPU of the node does.
func (c *Cluster) reportStale(node string, gpus []GPU, published []deviceSpec, taken map[string]claim) {
	var all, closed []string
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		if slices.ContainsFunc(published, func(d deviceSpec) bool { return d.Name == name }) {
			continue
		}
		c.stale = append(c.stale, staleClaim{node, taken[name]})
		all = append(all, fmt.Sprintf("%.80s of claim %.160s", name, taken[name]))
		of := deviceForm().FindStringSubmatch(name)
		for i := range gpus {
			if g := &gpus[i]; !g.closed && (of == nil || of[1] == strings.ToLower(g.UUID)) {
				g.closed, closed = true, append(closed, fmt.Sprintf("GPU %d", g.Index))
			}
		}
	}
	effect := ""
	if len(closed) > 0 {
		effect = ": its " + prose.And(closed) + prose.Choose(len(closed), " gets", " get") + " no new sessions"
	}
	if len(all) > 0 {
		c.warn("node %.80s does not publish %s%s", node, prose.And(prose.Few(all, 3)), effect)
	}
}

// poolsOf are the devices of each node, as the last complete generation has them.
func poolsOf(all []sliceObject) (map[string][]deviceSpec, error) {
	last := map[string][]sliceSpec{}
	for _, s := range all {
		switch of := last[s.Spec.Pool.Name]; {
		case s.Spec.Driver != driver:
		case s.Spec.NodeName != s.Spec.Pool.Name:
			return nil, fmt.Errorf("ResourceSlice %.80q has the pool %.80q of the node %.80q, and cosplay-node names pools after nodes", s.Metadata.Name, s.Spec.Pool.Name, s.Spec.NodeName)
		case len(of) == 0 || of[0].Pool.Generation < s.Spec.Pool.Generation:
			last[s.Spec.Pool.Name] = []sliceSpec{s.Spec}
		case of[0].Pool.Generation == s.Spec.Pool.Generation:
			last[s.Spec.Pool.Name] = append(of, s.Spec)
		}
	}
	pools := map[string][]deviceSpec{}
	for name, some := range last {
		if n := some[0].Pool.Slices; len(some) != n {
			return nil, fmt.Errorf("node %.80q has published %d ResourceSlices of %d: it was changing them", name, len(some), n)
		}
		for _, s := range some {
			pools[name] = append(pools[name], s.Devices...)
		}
	}
	return pools, nil
}

// allocations are the devices that claims have, by node and name.
func allocations(all []claimObject) map[string]map[string]claim {
	taken := map[string]map[string]claim{}
	for _, c := range all {
		if c.Status.Allocation == nil {
			continue
		}
		by := claimOf(c)
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.Driver != driver || r.Admin {
				continue
			}
			if taken[r.Pool] == nil {
				taken[r.Pool] = map[string]claim{}
			}
			taken[r.Pool][r.Device] = by
		}
	}
	return taken
}

// gpusOf are the GPUs of a node with what is taken of them.
func (c *Cluster) gpusOf(node string, published []deviceSpec, taken map[string]claim) (all []GPU, err error) {
	byUUID, seen := map[string][]device{}, map[string]bool{}
	for _, spec := range published {
		d, err := deviceOf(spec)
		if err == nil && seen[d.name] {
			err = errors.New("it is there twice")
		}
		if err != nil {
			return nil, fmt.Errorf("device %.80q: %w", spec.Name, err)
		}
		seen[d.name] = true
		byUUID[d.parent] = append(byUUID[d.parent], d)
	}
	for _, uuid := range slices.Sorted(maps.Keys(byUUID)) {
		first := byUUID[uuid][0]
		product, known := catalog.Product(first.model)
		if !known {
			c.warn("GPU %d of node %s is left out: the catalog has no model %.80q", first.index, node, first.model)
			continue
		}
		g := GPU{Node: node, Index: first.index, UUID: first.parent, Model: product.Model, ClockMHz: first.clock, devices: byUUID[uuid]}
		if err := g.take(taken); err != nil {
			return nil, fmt.Errorf("GPU %s: %w", uuid, err)
		}
		if g.closed {
			c.warn("GPU %d of node %s gets no new sessions: a claim has a profile or a placement of it that the catalog lacks", g.Index, node)
		}
		all = append(all, g)
	}
	slices.SortStableFunc(all, func(a, b GPU) int { return cmp.Compare(a.Index, b.Index) })
	return all, nil
}

const (
	maxIndex = 1023
	maxClock = 1<<16 - 1 // MHz
)

func deviceOf(spec deviceSpec) (d device, err error) {
	text := func(name string) string {
		if s := spec.Attributes[name].String; s != nil {
			return *s
		}
		err = cmp.Or(err, fmt.Errorf("its attribute %q is missing or no text", name))
		return ""
	}
	number := func(name string, most int64) int {
		if n := spec.Attributes[name].Int; n != nil && *n >= 0 && *n <= most {
			return int(*n)
		}
		err = cmp.Or(err, fmt.Errorf("its attribute %q is missing or no number from 0 to %d", name, most))
		return 0
	}
	d = device{name: spec.Name, parent: text("parentUUID"), index: number("index", maxIndex), model: text("model"), profile: text("profile"),
		start: number("placement", maxIndex), clock: number("clockMHz", maxClock)}
	for _, t := range spec.Taints {
		d.lost = d.lost || t.Effect == "NoExecute"
		d.closed = d.lost || d.closed || t.Effect == "NoSchedule"
	}
	if d.profile == place.WholeGPU {
		d.profile = ""
	}
	return d, cmp.Or(err, form("the UUID of a GPU", d.parent, uuidForm))
}

// take adds what claims have of the GPU. Where the size of a device is not known, no new session gets any of the GPU.
func (g *GPU) take(taken map[string]claim) error {
	first := g.devices[0]
	for _, d := range g.devices {
		if d.index != first.index || d.model != first.model || d.clock != first.clock {
			return fmt.Errorf("its devices %q and %q differ in index, model or clock", first.name, d.name)
		}
		by, is := taken[d.name]
		p, known := g.Model.Profile(d.profile)
		switch d.size = p.MemorySlices; {
		case is && d.profile != "" && !(known && slices.Contains(p.Starts, d.start)):
			g.closed = true
		case is:
			g.taken = append(g.taken, allocation{device: d, claim: by})
		}
	}
	return nil
}

// has reports whether a device of the GPU is taken, or can be.
func (g GPU) has(profile string, start int) bool {
	return slices.ContainsFunc(g.devices, func(d device) bool {
		return d.profile == profile && d.start == start && (!g.closed && !d.closed || slices.ContainsFunc(g.taken, func(a allocation) bool { return a.name == d.name }))
	})
}

// clock is the SM clock of the running pods, which the driver locked: the closest one that the GPU has.
func (g GPU) clock() int {
	off := func(mhz int) int { return max(mhz-g.ClockMHz, g.ClockMHz-mhz) }
	return slices.MinFunc(g.Model.ClocksMHz, func(a, b int) int { return cmp.Compare(off(a), off(b)) })
}
