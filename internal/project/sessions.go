package project

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/machine"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Fleet is the configuration of a project with the machine that carries it out.
type Fleet struct {
	Intent  *config.Intent // without clusters and their sessions
	Machine *machine.Machine

	Clusters   *config.Intent                         // the clusters with their sessions, which cosplay only plans; nil without any
	onClusters func() (*ClusterPlan, hcl.Diagnostics) // plans them once
}

// Host finds the block of a host.
func (l *Fleet) Host(name string) (config.Host, error) {
	if c := l.Intent.Host(name); c != nil {
		return *c, nil
	}
	return config.Host{}, fmt.Errorf("the configuration has no host %q. Fix: restore its block", name)
}

// Connect opens a host with its runtimes.
func (l *Fleet) Connect(ctx context.Context, name string, prior resource.Prior) (*machine.Host, error) {
	c, err := l.Host(name)
	if err != nil {
		return nil, err
	}
	return l.Machine.Connect(ctx, c, prior)
}

// Runtime opens the runtime of a session, for commands that run something in it.
func (l *Fleet) Runtime(ctx context.Context, s resource.PriorSession, prior resource.Prior) (runtime.Runtime, error) {
	h, err := l.Connect(ctx, s.Slice.Host, prior)
	if err != nil {
		return nil, err
	}
	return h.Runtimes(prior.Owner())[s.Runtime], nil
}

// runtimes are those of all hosts by name.
func (l *Fleet) runtimes(prior resource.Prior) map[string]map[string]runtime.Runtime {
	all, owner := map[string]map[string]runtime.Runtime{}, prior.Owner()
	for name, h := range l.Machine.Hosts() {
		all[name] = h.Runtimes(owner)
	}
	return all
}

// Used is the GPU memory that each session has used so far, of the sessions that count it. What the snapshot has is not
// read again.
func (l *Fleet) Used(prior resource.Prior, live resource.Live) map[resource.Address]resource.Use {
	all := l.counted(prior, live)
	free(all, ended(all, prior, live))
	return all
}

// ended is the memory, in bytes, that the account of a session still has although no program uses its GPU. What a program
// had that has ended, the next one of the session frees.
func ended(all map[resource.Address]resource.Use, prior resource.Prior, live resource.Live) map[resource.Address]int64 {
	found, programs := map[resource.Address]int64{}, diff.ProgramsOf(live)
	for i := range prior.Sessions {
		s := &prior.Sessions[i]
		if now := all[s.Address].NowBytes; now > 0 && programs.Lists(*s) && len(programs.On(*s)) == 0 {
			found[s.Address] = now
		}
	}
	return found
}

// free takes the memory of programs that have ended from the uses, unless a use has changed since.
func free(all map[resource.Address]resource.Use, ended map[resource.Address]int64) {
	for a, bytes := range ended {
		if use := all[a]; use.NowBytes == bytes {
			use.NowBytes = 0
			all[a] = use
		}
	}
}

// counted is Used with what programs had that have ended.
func (l *Fleet) counted(prior resource.Prior, live resource.Live) map[resource.Address]resource.Use {
	all := make(map[resource.Address]resource.Use, len(prior.Sessions))
	runtimes := sync.OnceValue(func() map[string]map[string]runtime.Runtime { return l.runtimes(prior) })
	for i := range prior.Sessions {
		s := &prior.Sessions[i]
		if body, there := live.Body(s.Slice.Host, s.Runtime, s.ID); there && body.Use != nil {
			all[s.Address] = *body.Use
		} else if in, there := runtimes()[s.Slice.Host][s.Runtime]; there {
			if usage, err := in.Usage(s.ID); err == nil {
				all[s.Address] = usage.Use()
			}
		}
	}
	l.explain(prior, all)
	return all
}

// explain adds to the uses of sessions that ran out of memory what their programs reported about it.
func (l *Fleet) explain(prior resource.Prior, all map[resource.Address]resource.Use) {
	ranOut := prior
	ranOut.Sessions = nil
	for i := range prior.Sessions {
		if s := &prior.Sessions[i]; all[s.Address].RanOut() > 0 {
			ranOut.Sessions = append(ranOut.Sessions, *s)
		}
	}
	if len(ranOut.Sessions) == 0 {
		return
	}
	for a, report := range l.Reports(ranOut, all) {
		all[a] = report.Explain(all[a])
	}
}

// Reports are what the programs of each session did, of the sessions whose programs report it. used is the memory that
// Used returns.
func (l *Fleet) Reports(prior resource.Prior, used map[resource.Address]resource.Use) map[resource.Address]resource.Report {
	type place struct{ host, runtime string }
	groups := map[place][]*resource.PriorSession{}
	for i := range prior.Sessions {
		if s := &prior.Sessions[i]; s.Emulates() {
			at := place{s.Slice.Host, s.Runtime}
			groups[at] = append(groups[at], s)
		}
	}
	all, runtimes := make(map[resource.Address]resource.Report, len(prior.Sessions)), l.runtimes(prior)
	for at, group := range groups {
		reporter, can := runtimes[at.host][at.runtime].(runtime.Reporter)
		if !can {
			continue
		}
		for i, report := range reporter.Reports(prose.Each(group, func(s *resource.PriorSession) string { return s.ID })) {
			a := group[i].Address
			report.Peaks = used[a].PeaksMiB
			all[a] = report
		}
	}
	return all
}

// Able opens the runtime of a session for something that not every runtime can do; what
// is its name for users.
func Able[T any](ctx context.Context, p *Project, s resource.PriorSession, prior resource.Prior, what string) (able T, err error) {
	in, err := p.Runtime(ctx, s, prior)
	if err != nil {
		return able, err
	}
	able, can := in.(T)
	if s.Device() != "" {
		return able, prose.Advice{What: fmt.Sprintf("%s has no %s: it is a CDI device, and its containers belong to their engine", s.Address, what),
			Fix: "docker logs NAME, or a shell by docker exec -it NAME sh; cosplay exec " + s.Address.Short() + " -- COMMAND runs one in the container that has the device"}
	}
	if !can {
		return able, fmt.Errorf("%s has no %s: sessions of host %q run %s. Use cosplay exec %s -- COMMAND instead",
			s.Address, what, s.Slice.Host, resource.RuntimeNamed(s.Runtime).Where, s.Address.Short())
	}
	return able, nil
}

// Login is where and how the user logs into a session.
type Login struct {
	Host    string
	Options []public.SSHOption
}

// sshPath quotes a path for ssh_config, where blanks separate and % begins a token.
func sshPath(path string) string { return `"` + strings.ReplaceAll(path, "%", "%%") + `"` }

// Login is how the user logs into a session that runs.
func (p *Project) Login(ctx context.Context, s resource.PriorSession, prior resource.Prior, live resource.Live) (Login, error) {
	login, err := Able[runtime.Login](ctx, p, s, prior, "ssh")
	if err != nil {
		return Login{}, err
	}
	if !s.Spec.SSH.Enabled {
		return Login{}, fmt.Errorf("%s was created without ssh. Run cosplay exec %s -- COMMAND instead; or write ssh { enabled = true }, and cosplay apply recreates it with ssh", s.Address, s.Address.Short())
	}
	c, there := live.Body(s.Slice.Host, s.Runtime, s.ID)
	if !there {
		return Login{}, fmt.Errorf("%s: its container does not exist. Fix: cosplay apply recreates it", s.Address)
	}
	if s.Body != nil && s.Body.Foreign {
		return Login{}, prose.Advice{What: fmt.Sprintf("%s runs in an imported container, for whose ssh server cosplay has no key", s.Address),
			Fix: fmt.Sprintf("cosplay exec %[1]s, or log in as before the import; cosplay apply --replace %[1]s recreates it with cosplay's ssh", s.Address.Short())}
	}
	if err := unreachable(s, c); err != nil {
		return Login{}, err
	}
	return p.loginAt(login, s, c.SSHPort)
}

// LastLogin is how the user logs into a session if it is as the last run left it: the containers of an engine that does
// not answer may run, and their ssh servers do not need it.
func (l *Fleet) LastLogin(s resource.PriorSession, prior resource.Prior) (Login, error) {
	d, registered := runtime.Named(s.Runtime)
	if !registered || d.Login == nil || s.Body == nil || s.Body.SSHPort == 0 {
		return Login{}, fmt.Errorf("the state has no port for ssh of %s", s.Address)
	}
	c, err := l.Host(s.Slice.Host)
	if err != nil {
		return Login{}, err
	}
	h, err := l.Machine.Open(c)
	if err != nil {
		return Login{}, err
	}
	return l.loginAt(h.Login(d, prior.Owner()), s, s.Body.SSHPort)
}

// loginAt is a login by a TCP port of the host. ssh accepts only the session's own host key.
func (l *Fleet) loginAt(login runtime.Login, s resource.PriorSession, port int) (Login, error) {
	known, err := login.Know(s.ID, s.Spec.SSH, port)
	if err != nil {
		return Login{}, err
	}
	options := []public.SSHOption{
		{Name: "Port", Value: strconv.Itoa(port)},
		{Name: "User", Value: s.Spec.User.Name},
		{Name: "HostKeyAlias", Value: resource.BodyName(s.ID)},
		{Name: "UserKnownHostsFile", Value: sshPath(known)},
		{Name: "GlobalKnownHostsFile", Value: "/dev/null"},
		{Name: "StrictHostKeyChecking", Value: "yes"},
		{Name: "PasswordAuthentication", Value: "no"},
		{Name: "ServerAliveInterval", Value: "30"},
	}
	if h, err := l.Host(s.Slice.Host); err == nil && h.Connect != "" {
		options = append(options, public.SSHOption{Name: "ProxyJump", Value: h.Connect})
	}
	for _, file := range l.identities(s) {
		options = append(options, public.SSHOption{Name: "IdentityFile", Value: sshPath(file)})
	}
	return Login{runtime.Reachable(s.Spec.SSH.Bind), options}, nil
}

// Resting is the error for a session that cosplay stop has stopped.
func Resting(s resource.PriorSession) error {
	return prose.Advice{What: fmt.Sprintf("%s is stopped, by cosplay stop", s.Address), Fix: "cosplay start " + s.Address.Short()}
}

// up is the reason why no user can enter a container; nil for none.
func up(s resource.PriorSession, c resource.Body) error {
	if s.Rests(c) {
		return Resting(s)
	}
	switch c.State {
	case resource.Stopped:
		return ofContainer(s, fmt.Sprintf("does not run; cosplay logs %s shows why", s.Address.Short()), "cosplay apply starts it")
	case resource.Paused:
		return ofContainer(s, "is paused", "cosplay apply resumes it")
	case resource.Restarting:
		return ofContainer(s, fmt.Sprintf("restarts again and again (%d times so far)", c.Restarts),
			fmt.Sprintf("correct its command; cosplay logs %s shows why it ends", s.Address.Short()))
	}
	return nil
}

func ofContainer(s resource.PriorSession, what, fix string) error {
	return prose.Advice{What: fmt.Sprintf("%s: its container %s", s.Address, what), Fix: fix}
}

// unreachable is the reason why no user can log into a container; nil for none.
func unreachable(s resource.PriorSession, c resource.Body) error {
	if err := up(s, c); err != nil {
		return err
	}
	for _, a := range c.Altered { // podman lists the ports of a container without a network
		if a.Part == resource.AlteredNetwork {
			return ofContainer(s, "is disconnected from the network "+a.From+", so its ssh server cannot be reached", "cosplay apply connects it again")
		}
	}
	if c.SSHPort != 0 {
		return nil
	}
	return ofContainer(s, "runs, but the engine does not publish its port for ssh", "cosplay apply publishes it again")
}

// identities are the private keys beside the public keys that the configuration names, or else those that were chosen
// in HOME: without a name ssh tries only the usual ones in the home of the account.
func (l *Fleet) identities(session resource.PriorSession) []string {
	s := l.Intent.Session(session.Address)
	if s == nil || len(s.Keys) == 0 {
		return machine.Identities(session.Spec.SSH.AuthorizedKeys)
	}
	var all []string
	for _, key := range s.Keys {
		private := strings.TrimSuffix(key, ".pub")
		if _, err := os.Stat(private); strings.HasPrefix(key, "/") && private != key && err == nil {
			all = append(all, private)
		}
	}
	return all
}
