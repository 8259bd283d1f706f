package selftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"cosplay/catalog"
	"cosplay/driver"
	"cosplay/internal/agent"
	"cosplay/internal/config"
	"cosplay/internal/machine"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/terminal"
)

// The grades of a finding.
const (
	Good    = "good"
	Notice  = "notice"  // it works, with a restriction
	Missing = "missing" // no session can run without it
)

// Checkup checks everything that the hosts and sessions of the project need, and changes
// nothing.
func Checkup(ctx context.Context, p *project.Project) []public.Finding {
	var c checkup
	if lacks := driver.Missing(); len(lacks) > 0 {
		c.add("", "cosplay", "built without "+strings.Join(lacks, ", "), Missing, "make build")
	}
	prior, err := p.Store.Load()
	if err != nil {
		c.add("", "state", err.Error(), Missing, "")
	}
	c.gpuCosplay()
	p.Machine.Greet(p.Intent.Hosts)
	for _, host := range p.Intent.Hosts {
		if slices.Contains(host.Open, "simulate") || slices.Contains(host.Open, "nvml") {
			missed := p.Intent.Missed
			c.add(host.Name, "host", "its block needs a value for var."+strings.Join(missed, ", var."), Notice, fmt.Sprintf("cosplay doctor --var '%s=...'", strings.Join(missed, "=...' --var '")))
			continue
		}
		if c.hardware(ctx, p, host) {
			c.sessions(ctx, p, host, prior)
		}
	}
	return c.found
}

type checkup struct{ found []public.Finding }

func (c *checkup) add(host, thing, found string, grade string, fix string) {
	c.found = append(c.found, public.Finding{Host: host, Thing: thing, Found: found, Grade: grade, Fix: fix})
}

// hardware checks the GPUs and the permission to change them. It reports whether the host
// could be opened.
func (c *checkup) hardware(ctx context.Context, p *project.Project, host config.Host) bool {
	h, err := p.Machine.Open(host)
	if err != nil {
		c.fail(host.Name, "host", err)
		return false
	}
	daemons := h.MPS(resource.Prior{})
	daemons.Uses = p.Intent.UsesMPS(host)
	live, err := h.Agent.Read(ctx, daemons)
	if err != nil {
		c.fail(host.Name, "NVML", err)
		return true
	}
	if daemons.Uses && live.MPS.Program == "" {
		grade := Missing
		if host.Simulate != "" {
			grade = Notice
		}
		c.add(host.Name, "MPS", "there is no "+resource.MPSControl, grade, resource.InstallMPS)
	}
	if host.Connect != "" {
		c.add(host.Name, "machine", fmt.Sprintf("%s, as %s, cosplay %s", host.Connect, h.Place.User.Name, h.Place.Version), Good, "")
	}
	what := "driver " + live.Driver
	if host.Simulate != "" {
		what = "simulated, " + what
	}
	c.add(host.Name, "NVML", fmt.Sprintf("%s, %s", what, cmp.Or(h.Library, "the system's library")), Good, "")
	if path := h.CUDA(); path != "" {
		c.add(host.Name, "CUDA", path, Good, "")
	} else {
		c.add(host.Name, "CUDA", machine.NoCUDA, Notice, "install libcuda.so.1 of the same driver: apt-get install libcuda1")
	}
	if host.Simulate != "" {
		const noKernels = "programs of NVML, and of CUDA's driver interface that launch no kernel, run; kernels fail; PyTorch computes "
		words := noKernels + "on the CPU"
		switch host.Compute {
		case config.ComputeShapes:
			words = noKernels + "nothing, and its tensors have shapes only"
		case config.ComputeNone:
			words = "programs of NVML and of CUDA's driver interface run; kernels succeed without computing, so results are invalid; PyTorch finds no GPU"
		}
		c.add(host.Name, "programs", words+"; other programs of the CUDA runtime (JAX, CuPy, llama.cpp) find no GPU: docs/limits.md", Notice, "")
	}
	c.gpus(host.Name, h, live)
	if h.Rooted {
		c.privilege(ctx, host.Name, h, live)
	} else if _, err := h.Agent.MayChange(ctx); err != nil {
		c.fail(host.Name, "ledger", err)
	}
	return true
}

// gpus lists the GPUs of a host and those that cannot be used.
func (c *checkup) gpus(host string, h *machine.Host, live resource.Host) {
	for _, g := range live.GPUs {
		g = machine.Complete(g)
		words := fmt.Sprintf("%s, MIG mode %s", g.Model.Name, resource.OnOff(g.MIG))
		if !g.MIGCapable {
			words = g.Model.Name + ", no MIG: a session takes the whole GPU, or shares it by time slices or MPS"
		}
		c.add(host, fmt.Sprintf("GPU %d", g.Index), words, Good, "")
		c.degraded(host, h, g)
	}
	for _, u := range live.Unusable {
		grade := Notice
		if len(live.GPUs) == 0 {
			grade = Missing
		}
		c.add(host, fmt.Sprintf("GPU %d", u.Index), u.Advice().What, grade, u.Advice().Fix)
	}
}

// fail adds an error, on one line.
func (c *checkup) fail(host, thing string, err error) {
	advice := prose.AdviceOf(err)
	what := strings.TrimPrefix(advice.What, "host "+host+": ")
	c.add(host, thing, strings.Join(strings.Fields(what), " "), Missing, advice.Fix)
}

// degraded lists the features that the driver of a GPU does not offer, and what is not known of a GPU that the catalog
// lacks.
func (c *checkup) degraded(host string, h *machine.Host, g resource.GPU) {
	if !catalog.Listed(g.Model) {
		c.add(host, fmt.Sprintf("GPU %d", g.Index), fmt.Sprintf("the catalog lacks %s. %s", g.Model.Name, strings.ReplaceAll(catalog.Unlisted(g), "\n", " ")), Notice, "")
	}
	for _, d := range g.Degraded {
		without := d.Feature.Words() + " is unknown"
		switch {
		case d.Feature.Managed():
			without = "cosplay does not manage " + d.Feature.Words()
		case d.Feature.Figure() && catalog.Listed(g.Model):
			without = d.Feature.Words() + " is the catalog's"
		}
		fix := ""
		if d.Set {
			fix = "to make cosplay try the call again, reboot, update the driver, or remove " + h.LacksPath(g.UUID)
		}
		c.add(host, fmt.Sprintf("GPU %d", g.Index), fmt.Sprintf("%s: %s", without, d), Notice, fix)
	}
}

// privilege checks whether the user may change GPUs.
func (c *checkup) privilege(ctx context.Context, host string, h *machine.Host, live resource.Host) {
	const thing = "privilege"
	user := h.Subject().Name
	if binary, err := os.Executable(); err == nil && h.Config.Connect == "" {
		if _, err := agent.Trusted(binary); err != nil {
			c.add(host, "cosplay", err.Error()+"; with a sudo rule for this binary, every user who can change the file could become root", Notice, fmt.Sprintf("sudo install -m 0755 %s %s", terminal.ShellWord(binary), agent.Installed))
		}
	}
	_, err := h.Agent.MayChange(ctx)
	refused, is := errors.AsType[*agent.SudoError](err)
	switch {
	case err == nil:
		c.add(host, thing, user+" may change GPUs", Good, "")
		c.rules(host, h.Subject(), live)
	case is:
		fix := "run visudo -f /etc/sudoers.d/cosplay and add the line below; or run sudo cosplay apply"
		if h.Library == "" { // a socket serves the system's
			fix += "; or set up a socket instead: cosplay doctor --systemd"
		}
		c.found = append(c.found, public.Finding{Host: host, Thing: thing, Grade: Missing, Fix: fix, Line: refused.Line,
			Found: fmt.Sprintf("only root can change GPUs, and sudo does not permit it to %s: %s", user, refused.Why)})
	default:
		c.add(host, thing, err.Error(), Missing, "")
	}
}

// rules lists the rules of the admin that apply to the user.
func (c *checkup) rules(host string, who agent.Subject, live resource.Host) {
	policy, err := agent.PolicyOf(live.Admin.Rules)
	if err != nil {
		c.fail(host, "rules", err)
		return
	}
	for _, g := range live.GPUs {
		if rule, is := policy.Rule(who, g.UUID); rule != "" {
			c.add(host, "rules", fmt.Sprintf("GPU %d: %s", g.Index, rule), Good, "")
		} else if is {
			c.add(host, "rules", fmt.Sprintf("GPU %d: no rule of %s permits %s to change it", g.Index, agent.PolicyFile, who.Name), Notice, "")
		}
	}
}

// SystemdUnits are the units for an admin who prefers a socket to a sudo rule.
func SystemdUnits() string { return agent.SystemdUnits(agent.Installed) }

// sessions checks the runtime of a host, and what its sessions need there.
func (c *checkup) sessions(ctx context.Context, p *project.Project, host config.Host, prior resource.Prior) {
	h, err := p.Machine.Connect(ctx, host, prior)
	if err != nil {
		likely := host.Runtime
		if likely == config.RuntimeAuto {
			likely = runtime.Auto(host.Simulate != "").Name // another machine says what it has when it is reached
		}
		c.add(host.Name, resource.RuntimeNamed(likely).Title, strings.TrimPrefix(err.Error(), "host "+host.Name+": "), Missing, "")
		return
	}
	for name, in := range h.Runtimes(prior.Owner()) {
		if engine, is := in.(runtime.Engine); is {
			c.engine(ctx, p, host.Name, resource.RuntimeNamed(name).Title, engine)
			return
		}
	}
	why := "sessions run " + resource.RuntimeNamed(h.NewRuntime()).Where
	if preferred := runtime.Drivers()[0]; host.Runtime == config.RuntimeAuto && host.Simulate == "" && preferred.Name != h.NewRuntime() {
		why += ", since there is no " + preferred.Title + " here"
	}
	c.add(host.Name, "runtime", why, Good, "")
}

// engine checks a container engine, and what sessions need there.
func (c *checkup) engine(ctx context.Context, p *project.Project, host, title string, in runtime.Engine) {
	engine, err := in.Inspect(ctx)
	if err != nil {
		c.add(host, title, err.Error(), Missing, "")
		return
	}
	c.add(host, title, engine.Name, Good, "")
	for _, lifted := range engine.Lifted {
		c.add(host, "isolation", lifted, Notice, "")
	}
	if err := in.Reaches(); err != nil {
		c.add(host, "slices", err.Error(), Missing, "")
	} else {
		c.add(host, "slices", engine.Access, Good, "")
	}
	c.images(p, host, engine)
	c.login(p, host)
}

// images lists the images of the sessions, and those that do not exist yet.
func (c *checkup) images(p *project.Project, host string, engine resource.Engine) {
	listed := map[string]bool{}
	for _, s := range p.Intent.Sessions {
		image := s.Spec.Image
		if !s.MayBeOn(host) || listed[image] || slices.Contains(s.Open, "image") {
			continue
		}
		listed[image] = true
		switch {
		case engine.Images[image] != "":
			c.add(host, "image", image, Good, "")
		case image == resource.DefaultImage:
			c.add(host, "image", image+" does not exist; the next apply builds it", Notice, "cosplay build")
		case s.Spec.Pull == resource.PullNever:
			c.add(host, "image", image+" does not exist, and pull = \"never\"", Missing, "docker load, or docker build -t "+image+" .")
		default:
			c.add(host, "image", image+" does not exist; the next apply pulls it", Notice, "docker pull "+image)
		}
	}
}

// login checks what the user needs to log into sessions.
func (c *checkup) login(p *project.Project, host string) {
	wanted, named := false, true
	for _, s := range p.Intent.Sessions {
		if s.MayBeOn(host) && s.Spec.SSH.Enabled {
			wanted, named = true, named && (len(s.Keys) > 0 || slices.Contains(s.Open, "ssh.authorized_keys"))
		}
	}
	if !wanted {
		return
	}
	if _, err := exec.LookPath("ssh"); err != nil {
		c.add(host, "ssh client", "not installed on this machine", Notice, "apt-get install openssh-client")
	}
	who, err := p.Machine.Person(p.Intent)
	switch {
	case err != nil:
		c.add(host, "user", err.Error(), Missing, "")
	case len(who.Keys) == 0 && !named:
		c.add(host, "ssh keys", who.User.Name+" has none", Missing, "ssh-keygen -t ed25519")
	case named:
		c.add(host, "user", fmt.Sprintf("%s (%d:%d), the configuration names the keys", who.User.Name, who.User.UID, who.User.GID), Good, "")
	default:
		c.add(host, "user", fmt.Sprintf("%s (%d:%d), public keys: %d", who.User.Name, who.User.UID, who.User.GID, len(who.Keys)), Good, "")
	}
	for _, path := range slices.Sorted(maps.Keys(who.Files)) {
		if err := who.Files[path].Err; err != nil {
			c.add(host, "ssh keys", err.Error(), Missing, "ssh-keygen -t ed25519")
		}
	}
}
