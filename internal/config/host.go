package config

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/hostfile"
	"cosplay/internal/pattern"
	"cosplay/internal/resource"
)

// hostAttributes has a reader for each attribute of a host block.
var hostAttributes = map[string]func(*Host, value){
	"simulate":   hostSimulate,
	"connect":    hostConnect,
	"kubernetes": into(value.path, func(h *Host) *string { return &h.Kubernetes }),
	"namespace":  into(value.namespace, func(h *Host) *string { return &h.Namespace }),
	"compute":    into(oneOf, func(h *Host) *string { return &h.Compute }),
	"nvml":       into(value.path, func(h *Host) *string { return &h.NVML }),
	"runtime":    into(oneOf, func(h *Host) *string { return &h.Runtime }),
	"gpus":       hostGPUs,
	"manage":     hostManage,
	"sharing": into(listOf(`["mig", "exclusive"]`, `"sharing" permits nothing`,
		"No session could ever be placed on this host. Name what sessions may have, or leave sharing out for everything.",
		oneOf[resource.Sharing]), func(h *Host) *[]resource.Sharing { return &h.Sharing }),
	"timeslice":       into(oneOf, func(h *Host) *string { return &h.TimeSlice }),
	"baseline_clock":  into(pointed(wholeUpTo(10_000, "a clock in MHz")), func(h *Host) **int { return &h.BaselineClockMHz }),
	"slow_neighbours": into(value.flag, func(h *Host) *bool { return &h.SlowNeighbours }),
}

func defaultHost(name string) Host {
	return Host{Name: name, Runtime: RuntimeAuto, Manage: ManageAll()}
}

func (l *loader) readHost(b *hcl.Block) {
	name, named := l.declare(b)
	said := l.read(b, &hostSchema)
	h := defaultHost(name)
	h.Ranges = said.ranges(b.DefRange)
	for _, a := range said.attributes {
		v, ok := l.work(&a)
		if ok && !v.IsWhollyKnown() {
			h.Open = append(h.Open, a.path)
			ok = l.mayBeOpen()
		}
		if ok && v.leftOut() {
			h.Ranges = h.Ranges.without(a.path)
		} else if ok {
			hostAttributes[a.path](&h, v)
		}
	}
	l.checkReach(h)
	l.checkConnect(h)
	l.checkTimeSlice(h)
	if !named {
		l.partial = true
		return
	}
	l.hosts = append(l.hosts, h)
}

// address is where the machine is, without the user; "" is this one. Names that lead to one machine are not recognized.
func (h Host) address() string {
	to, err := url.Parse(h.Connect)
	if h.Connect == "" || err != nil {
		return ""
	}
	return to.Hostname() + " " + cmp.Or(to.Port(), "22")
}

// unreached reports whether the address of another machine could not be read.
func (h Host) unreached() bool { return h.Connect == "" && h.Ranges.has("connect") }

// checkConnect refuses what cannot be on another machine.
func (l *loader) checkConnect(h Host) {
	if h.Connect != "" && hostfile.Names(h.Simulate) {
		l.complain(h.Ranges.At("simulate"), "a simulated host of an export is on this machine", "Write the GPUs, like \"1 x h200\", or remove connect.")
	}
}

// checkTimeSlice refuses a length of time slices that the block forbids to set.
func (r *reporter) checkTimeSlice(h Host) {
	if h.TimeSlice != "" && !h.Manage.Settings[resource.TimeSlice] && !slices.Contains(h.Open, "manage") {
		r.complain(h.Ranges.At("timeslice"), `"timeslice" needs the word "timeslice" in manage`,
			"manage does not permit cosplay to set the length of time slices. Add the word to manage, or remove this line.")
	}
}

// mayBeOpen reports variables without a value that a host block needs.
func (l *loader) mayBeOpen() bool {
	if l.HostsMayMiss {
		return true
	}
	for _, missed := range l.missed {
		l.missing(missed)
	}
	return len(l.missed) == 0
}

// checkReach checks that a host block has only one way to reach its NVML, and that no two blocks use the same one:
// cosplay would then use the same slots twice.
func (l *loader) checkReach(h Host) {
	if h.Ranges.has("kubernetes") {
		l.checkCluster(h)
		return
	}
	if h.Ranges.has("namespace") {
		l.complain(h.Ranges.At("namespace"), `"namespace" is only for a Kubernetes cluster`, "Remove this line, or add kubernetes.")
	}
	if h.Ranges.has("simulate") {
		if h.Ranges.has("nvml") {
			l.complain(h.Ranges.At("nvml"), `"simulate" and "nvml" exclude each other`,
				"A simulated host has its own NVML library. Keep one of the two.")
		}
		return
	}
	if h.Ranges.has("compute") {
		l.complain(h.Ranges.At("compute"), `"compute" is only for a simulated host`,
			"On real hardware kernels compute. Remove this line, or add simulate.")
	}
	if slices.Contains(h.Open, "nvml") || h.unreached() {
		return
	}
	for _, other := range l.hosts {
		if !slices.Contains(other.Open, "nvml") && !other.unreached() && !other.Ranges.has("simulate") && !other.Ranges.has("kubernetes") && other.NVML == h.NVML && other.address() == h.address() {
			l.complain(h.Ranges.Decl, fmt.Sprintf("this is the same machine as host %q", other.Name),
				"Both use the same NVML library, so cosplay would use each GPU twice. Keep one of the two, or give one of them \"simulate\", \"connect\" or its own \"nvml\".")
			return
		}
	}
}

// hostConnect reads where a host is: "ssh://ada@gpu1" or "ssh://gpu1:2222". The rest is in the user's configuration of ssh.
func hostConnect(h *Host, v value) {
	typed, ok := v.text()
	if !ok {
		return
	}
	to, err := url.Parse(typed)
	if err != nil || to.Scheme != "ssh" || !sshHost().MatchString(to.Hostname()) || !sshUser().MatchString(to.User.String()) || *to != (url.URL{Scheme: "ssh", User: to.User, Host: to.Host}) {
		v.wrong(v.name()+" is not an address for ssh", `Write it like "ssh://ada@gpu1" or "ssh://gpu1:2222"; keys and jump hosts are in ~/.ssh/config.`)
		return
	}
	h.Connect = typed
}

var (
	sshHost = pattern.Of(`^[A-Za-z0-9_.:][A-Za-z0-9_.:-]*$`)
	sshUser = pattern.Of(`^([A-Za-z0-9_.][A-Za-z0-9_.-]*)?$`)
)

func hostSimulate(h *Host, v value) {
	const form = `Write it like "8 x h200" or "1 x h200, 2 x l40s".`
	if !v.typed(v.Type() == cty.String, v.name()+" must be a text", "This is %s. %s", v.kind(), form) {
		return
	}
	spec, ok := v.text()
	if !ok {
		return
	}
	if err := v.l.Simulate(spec); err != nil {
		summary, detail := explain(err, fmt.Sprintf("cannot simulate %q", spec))
		if !strings.Contains(detail, " x ") && !hostfile.Names(spec) {
			detail += " " + form
		}
		v.wrong(summary, "%s", detail)
		return
	}
	h.Simulate = spec
}

func hostGPUs(h *Host, v value) {
	elements, ok := v.elements(`[0, "GPU-8f...", "0000:84:00.0"]`)
	if !ok {
		return
	}
	if len(elements) == 0 {
		v.wrong(`"gpus" names no GPU`, "No session could ever be placed on this host. Name its GPUs, or leave gpus out for all of them.")
	}
	for _, e := range elements {
		s, ok := e.selector()
		if !ok {
			continue
		}
		if slices.ContainsFunc(h.GPUs, func(o GPUSelector) bool { return o.String() == s.String() }) {
			e.wrong(fmt.Sprintf("GPU %s is there twice", s), "Each GPU is named once. Remove this one.")
			continue
		}
		h.GPUs = append(h.GPUs, s)
	}
}

func hostManage(h *Host, v value) {
	if words, ok := listOf(`["slices", "clocks"]`, "", "", oneOf[string])(v); ok {
		h.Manage = Manage{}
		for _, word := range words {
			h.Manage.permit(word)
		}
	}
}

// path reads a path and makes it absolute, relative to the project's folder or, with ~, to the user's home.
func (v value) path() (string, bool) {
	typed, ok := v.text()
	if !ok {
		return "", false
	}
	rest, home := strings.CutPrefix(typed, "~")
	switch {
	case typed == "":
		v.wrong(v.name()+" is empty", "Write a path, absolute or from the project's folder, or leave %s out.", v.attribute.path)
		return "", false
	case home && rest != "" && rest[0] != '/':
		v.wrong(v.name()+" starts in the home of another user", "Only ~/ is understood, your own home. Write the path in full, or ./%s for a folder of that name.", typed)
		return "", false
	case home && v.l.Home == "":
		v.wrong(v.name()+" starts in a home that is not known", "There is no home folder to put for ~. Write the path in full.")
		return "", false
	case home:
		return filepath.Join(v.l.Home, rest), true
	}
	return v.l.absolute(typed), true
}
