package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/docker/go-connections/nat"

	"cosplay/internal/pattern"
	"cosplay/internal/resource"
)

const (
	defaultBind = "127.0.0.1"
	mostPorts   = 1000 // of a session: each is a proxy of the engine's
)

// sessionPorts reads ports as docker run and Compose write them.
func sessionPorts(s *Session, v value) {
	elements, ok := v.elements(`["8888:8888"]`)
	if !ok {
		return
	}
	var all []resource.Port
	for _, e := range elements {
		typed, ok := e.text()
		if !ok {
			continue
		}
		ports, advice := portsOf(typed)
		if advice == "" && len(all)+len(ports) > mostPorts {
			ports, advice = nil, fmt.Sprintf("A session can have %d ports. Publish fewer.", mostPorts)
		}
		if advice != "" {
			e.wrong(fmt.Sprintf("%q cannot be published", typed), "%s", advice)
		}
		all = append(all, ports...)
	}
	s.Spec.Ports = all
}

// portsOf reads one entry, which may be a range of ports. advice says what to write instead; "" for nothing.
func portsOf(typed string) (all []resource.Port, advice string) {
	const form = `Write HOST:CONTAINER, like "8888:8888", ADDRESS:HOST:CONTAINER, like "0.0.0.0:8888:8888", or a range, like "8000-8009:8000-8009"; add /udp for UDP.`
	entry, protocol, _ := strings.Cut(typed, "/")
	if !strings.Contains(entry, ":") {
		return nil, fmt.Sprintf("The port on the host is missing. Write \"%[1]s:%[1]s\" for the same port on the host.", typed)
	}
	if low, high, ranged := strings.Cut(entry[strings.LastIndex(entry, ":")+1:], "-"); ranged && (len(low) > 5 || len(high) > 5) {
		return nil, form // nat would list them all
	}
	mappings, err := nat.ParsePortSpec(typed)
	if err != nil || len(mappings) == 0 || protocol != "" && protocol != "tcp" && protocol != "udp" {
		return nil, form
	}
	for _, m := range mappings {
		ip, err := netip.ParseAddr(cmp.Or(m.Binding.HostIP, defaultBind))
		host, wrong := nat.ParsePort(m.Binding.HostPort)
		if err != nil || ip.Zone() != "" || wrong != nil || host == 0 || m.Port.Int() == 0 {
			return nil, form
		}
		all = append(all, resource.Port{Bind: ip.Unmap().String(), Host: host, Container: m.Port.Int(), UDP: m.Port.Proto() == "udp"})
	}
	return all, ""
}

var networkForm = pattern.Of(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

var networkName = named(networkForm, "a network", "Write the name of a network of the engine, as docker network ls prints it.")

func sessionNetwork(s *Session, v value) {
	if name, ok := networkName(v); ok && name != "bridge" && name != "default" {
		s.Spec.Network = name
	}
}

// checkNetwork refuses what needs a network of the container's own.
func (r *reporter) checkNetwork(s *Session) {
	if s.Spec.Network != resource.NoNetwork && s.Spec.Network != "host" {
		return
	}
	at := s.Ranges.At("network")
	switch {
	case s.Spec.SSH.Enabled:
		r.complain(at, fmt.Sprintf("no ssh with network %q", s.Spec.Network),
			"The engine publishes no port of such a container. Write ssh { enabled = false }, and use cosplay exec; or name another network.")
	case len(s.Spec.Ports) > 0:
		r.complain(at, fmt.Sprintf("no ports with network %q", s.Spec.Network),
			"The engine publishes no port of such a container. Remove ports, or name another network.")
	}
}

// checkPorts reports sessions that request the same port of the same host.
func (l *loader) checkPorts() {
	type listener struct {
		host string
		port int
		udp  bool
	}
	type owner struct {
		*Session
		attribute string
	}
	seen := map[listener]owner{}
	for i := range l.sessions {
		s := &l.sessions[i]
		runtime, chosen := runtimeOf(l.hosts, s.Host)
		claim := func(attribute string, at listener, advice string) {
			if at.port == 0 || chosen && !runtime.Uses(strings.Split(attribute, ".")[0]) {
				return
			}
			or := ""
			if attribute == "ssh.port" {
				or = `, or write "auto"`
			}
			other, taken := seen[at]
			here := s.Ranges.At(attribute)
			switch {
			case !taken:
				seen[at] = owner{s, attribute}
			case other.Session != s && other.Ranges.Decl == s.Ranges.Decl:
				l.complain(here, fmt.Sprintf("port %d is for one session only", at.port),
					"Each instance of this block needs its own port. %s", advice)
			default:
				first := other.Ranges.At(other.attribute)
				l.complain(here, fmt.Sprintf("port %d is there twice on host %q", at.port, at.host),
					"%s has it, at %s. Give %s another%s.", other.Address, place(first), s.Address, or)
			}
		}
		anywhere := func(attribute string, port int, udp bool, advice string) {
			for _, host := range s.mayHave() {
				claim(attribute, listener{host, port, udp}, advice)
			}
		}
		if s.Spec.SSH.Enabled {
			anywhere("ssh.port", s.Spec.SSH.Port, false, fmt.Sprintf("Write \"auto\", or count up, like: port = %d + count.index", s.Spec.SSH.Port))
		}
		for _, p := range s.Spec.Ports {
			anywhere("ports", p.Host, p.UDP, fmt.Sprintf("Count up, like: ports = [\"${%d + count.index}:%d\"]", p.Host, p.Container))
		}
	}
}
