package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/runtime/docker"
)

type sshOptions struct {
	terminal bool
	forward  []string
}

func (inv *invocation) ssh() *cobra.Command {
	var o sshOptions
	cmd := &cobra.Command{
		Use:   "ssh [SESSION] [-- COMMAND...]",
		Short: "Log into a session's container",
		Long: `Log into a session's container as its user, with your own key. The session's host key is known beforehand, so nothing is asked and nobody can stand in between.

A command after -- is given to the user's shell there, as ssh does. For editors, scp and sftp: cosplay ssh-config.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := splitCommand("ssh", args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			return inv.runSSH(cmd.Context(), name, argv, o)
		},
	}
	cmd.Flags().BoolVarP(&o.terminal, "tty", "t", false, "give the command a terminal")
	cmd.Flags().StringArrayVarP(&o.forward, "local-forward", "L", nil, "forward a port from here into the session, `PORT:HOST:PORT` as ssh has it")
	return cmd
}

func (inv *invocation) runSSH(ctx context.Context, name string, argv []string, o sshOptions) error {
	client, err := exec.LookPath("ssh")
	if err != nil {
		return errors.New("there is no ssh client on this machine: install openssh-client; cosplay exec needs none")
	}
	in, err := inv.enter(ctx, name)
	if err != nil {
		return err
	}
	defer in.Close()
	door, err := in.door(ctx, in.session)
	if err != nil {
		return err
	}
	var args []string
	for _, option := range door.options() {
		args = append(args, "-o", option.Name+"="+option.Value)
	}
	if o.terminal {
		args = append(args, "-t")
	}
	for _, f := range o.forward {
		args = append(args, "-L", f)
	}
	args = append(append(args, "--", door.host), argv...)
	// From here on this process is ssh: signals and the terminal are its own, and
	// no agent waits behind a login that lasts for days.
	if err := in.Close(); err != nil {
		return err
	}
	return syscall.Exec(client, append([]string{"ssh"}, args...), os.Environ())
}

func (inv *invocation) sshConfig() *cobra.Command {
	return &cobra.Command{
		Use:   "ssh-config [SESSION...]",
		Short: "Write what ssh, scp, rsync and editors need to reach the sessions",
		Long: `Write a Host block for each session, for a file that ~/.ssh/config includes:

  cosplay ssh-config > ~/.ssh/cosplay     # again after each apply: ports may change
  sed -i '1i Include cosplay' ~/.ssh/config     # once
  ssh cosplay-worker-0`,
		RunE: func(cmd *cobra.Command, args []string) error { return inv.runSSHConfig(cmd.Context(), args) },
	}
}

func (inv *invocation) runSSHConfig(ctx context.Context, names []string) error {
	p, _, _, err := inv.open()
	if err != nil {
		return err
	}
	defer p.Close()
	now, err := p.Peek(ctx)
	if err != nil {
		return err
	}
	in := &inside{Project: p, Outlook: now}
	wanted := now.Prior.Sessions
	if len(names) > 0 {
		wanted = nil
		for _, name := range names {
			s, err := named(now.Prior, name)
			if err != nil {
				return err
			}
			wanted = append(wanted, s)
		}
	}
	var hosts []render.SSHHost
	for _, s := range wanted {
		if len(names) == 0 && (s.Box == nil || !s.Box.SSH.Enabled) {
			continue
		}
		door, err := in.door(ctx, s)
		if err != nil && len(names) == 0 {
			fmt.Fprintf(inv.Err, "Left out: %v\n", err)
			continue
		}
		if err != nil {
			return err
		}
		hosts = append(hosts, render.SSHHost{Name: docker.Name(s.ID), Session: s.Address.String(),
			Options: append([]render.SSHOption{{Name: "HostName", Value: door.host}}, door.options()...)})
	}
	if len(hosts) == 0 {
		return errors.New("there is no session to log into: they run as processes, or without ssh")
	}
	if inv.json {
		return render.SSHConfigJSON(inv.Out, hosts)
	}
	render.SSHConfig(inv.Out, hosts)
	return nil
}

// door is where and how one logs into a session.
type door struct {
	host, user, alias, knownHosts string
	port                          int
	identities                    []string
}

// options are as in ssh_config. Only the session's own host key will do.
func (d door) options() []render.SSHOption {
	all := []render.SSHOption{
		{Name: "Port", Value: strconv.Itoa(d.port)},
		{Name: "User", Value: d.user},
		{Name: "HostKeyAlias", Value: d.alias},
		{Name: "UserKnownHostsFile", Value: sshPath(d.knownHosts)},
		{Name: "GlobalKnownHostsFile", Value: "/dev/null"},
		{Name: "StrictHostKeyChecking", Value: "yes"},
		{Name: "PasswordAuthentication", Value: "no"},
		{Name: "ServerAliveInterval", Value: "30"},
	}
	for _, file := range d.identities {
		all = append(all, render.SSHOption{Name: "IdentityFile", Value: sshPath(file)})
	}
	return all
}

// sshPath writes a path for ssh_config, in which blanks part and % means
// something.
func sshPath(path string) string { return `"` + strings.ReplaceAll(path, "%", "%%") + `"` }

// door finds the way into a session that runs.
func (in *inside) door(ctx context.Context, s resource.PriorSession) (door, error) {
	containers, err := in.Containers(ctx, s, in.Prior)
	if err != nil {
		return door{}, err
	}
	if !s.Box.SSH.Enabled {
		return door{}, fmt.Errorf("%s was made without ssh; cosplay exec %s -- COMMAND works, and ssh { enabled = true } makes it anew with it", s.Address, s.Address.Short())
	}
	c, there := in.Live.Container(s.Slice.Host, s.Runtime, s.ID)
	switch {
	case !there:
		return door{}, fmt.Errorf("%s: its container is gone; cosplay apply makes it anew", s.Address)
	case c.State != resource.Running:
		return door{}, fmt.Errorf("%s: its container does not run; cosplay logs %s tells why, cosplay apply starts it", s.Address, s.Address.Short())
	}
	known, err := containers.Know(s.ID, s.Box.SSH, c.SSHPort)
	if err != nil {
		return door{}, err
	}
	return door{
		host: reachable(s.Box.SSH.Bind), port: c.SSHPort, user: s.Box.User.Name, alias: docker.Name(s.ID), knownHosts: known,
		identities: in.identities(s.Address),
	}, nil
}

// identities are the private keys beside the public ones that the configuration
// names: ssh tries only those of usual names by itself.
func (in *inside) identities(a resource.Address) []string {
	var all []string
	for _, s := range in.Intent.Sessions {
		if s.Address != a {
			continue
		}
		for _, key := range s.Keys {
			private := strings.TrimSuffix(key, ".pub")
			if _, err := os.Stat(private); strings.HasPrefix(key, "/") && private != key && err == nil {
				all = append(all, private)
			}
		}
	}
	return all
}

// reachable is the address at which a listener is found from this machine.
func reachable(bind string) string {
	ip, err := netip.ParseAddr(bind)
	switch {
	case err != nil || !ip.IsUnspecified():
		return bind
	case ip.Is6():
		return net.IPv6loopback.String()
	}
	return "127.0.0.1"
}
