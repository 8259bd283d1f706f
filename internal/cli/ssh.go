package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

// sshFlags are the flags that were typed, as ssh has them.
func sshFlags(known *pflag.FlagSet) (words []string) {
	known.VisitAll(func(f *pflag.Flag) {
		option := "-" + f.Shorthand
		if values, several := f.Value.(pflag.SliceValue); f.Changed && several {
			words = append(words, repeated(option, values.GetSlice())...)
		} else if f.Changed && f.Value.String() == "true" {
			words = append(words, option)
		}
	})
	return words
}

func sshCommand(inv *invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ssh [SESSION] [-- COMMAND...]",
		Short: "Log into a session's container",
		Long: `Log into a session's container as its user, with your own key. cosplay knows the session's host key, so ssh asks nothing, and no other host can pose as the session.

A command after -- is run by the user's shell there, as ssh does. For editors, scp and sftp: cosplay ssh-config.

Exit codes: the command's; 255 where ssh failed; 1 where there is no such session.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := splitCommand("ssh", args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			client, err := exec.LookPath("ssh")
			if err != nil {
				return errors.New("there is no ssh client on this machine: install openssh-client; cosplay exec needs none")
			}
			in, err := inv.enter(cmd.Context(), name, false)
			var login project.Login
			switch {
			case err == nil && in.reached != nil && in.session.Spec.SSH.Enabled:
				login, err = in.LastLogin(in.session, in.Prior)
			case err == nil:
				login, err = in.Login(cmd.Context(), in.session, in.Prior, in.Live)
			case in != nil && cmd.Context().Err() == nil:
				login, err = inv.lastLogin(in.Project, name, err)
			}
			if err != nil {
				return err
			}
			options := repeated("-o", prose.Each(login.Options, func(o public.SSHOption) string { return o.Name + "=" + o.Value }))
			args = slices.Concat([]string{"ssh"}, options, sshFlags(cmd.LocalNonPersistentFlags()), []string{"--", login.Host}, argv)
			// This process becomes ssh, which handles signals and the terminal, so no agent waits
			// while a login lasts for days.
			if err := in.Close(); err != nil {
				return err
			}
			return syscall.Exec(client, args, os.Environ())
		},
	}
	f := cmd.Flags()
	f.BoolP("tty", "t", false, "give the command a terminal")
	f.StringArrayP("local-forward", "L", nil, "forward a port or a Unix socket from here into the session, `PORT:HOST:PORT` as ssh has it")
	f.StringArrayP("remote-forward", "R", nil, "forward a port or a Unix socket of the session to here, `PORT:HOST:PORT` as ssh has it")
	f.StringArrayP("dynamic-forward", "D", nil, "open a SOCKS server on this `port` here, whose connections start in the session")
	f.BoolP("forward-agent", "A", false, "let programs in the session use your ssh agent")
	f.BoolP("no-command", "N", false, "run no command; for forwarded ports alone")
	return cmd
}

// lastLogin is the login that the last run left, where the hosts could not be read because of the cause.
func (inv *invocation) lastLogin(p *project.Project, name string, cause error) (project.Login, error) {
	prior, err := p.Store.Load()
	if err != nil {
		return project.Login{}, cause
	}
	s, err := named(prior, name)
	if err != nil {
		return project.Login{}, p.OnCluster(err, name)
	}
	login, err := p.LastLogin(s, prior)
	if err != nil {
		return project.Login{}, cause
	}
	fmt.Fprintf(inv.Err, "Warning: %v\ncosplay logs in as the last apply left %s.\n", cause, s.Address)
	return login, nil
}

func sshConfigCommand(inv *invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "ssh-config [SESSION...]",
		Short: "Write what ssh, scp, rsync and editors need to reach the sessions",
		Long: `Write a Host block for each session, for a file that ~/.ssh/config includes:

  cosplay ssh-config > ~/.ssh/cosplay     # again after each apply: ports may change
  sed -i '1i Include cosplay' ~/.ssh/config     # once
  ssh cosplay-worker-0-PROJECT     # as its Host line has it: PROJECT is the name of the folder`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, now, wanted, err := inv.peekChosen(cmd.Context(), args)
			if err != nil {
				return err
			}
			var hosts []public.SSHHost
			for _, s := range wanted {
				if len(args) == 0 && !s.Spec.SSH.Enabled {
					continue
				}
				login, err := p.Login(cmd.Context(), s, now.Prior, now.Live)
				if err != nil && len(args) == 0 {
					fmt.Fprintf(inv.Err, "Left out: %v\n", err)
					continue
				}
				if err != nil {
					return err
				}
				hosts = append(hosts, sshHost(s, login))
			}
			switch {
			case len(now.Prior.Sessions) == 0:
				return errors.New("there is no session yet; run cosplay apply first")
			case len(hosts) == 0:
				return errors.New("there is no session with ssh")
			}
			if inv.json {
				return render.SSHConfigJSON(inv.Out, hosts)
			}
			render.SSHConfig(inv.Out, hosts)
			return nil
		},
	}
}

// sshHost is the Host block of a session.
func sshHost(s resource.PriorSession, login project.Login) public.SSHHost {
	options := append([]public.SSHOption{{Name: "HostName", Value: login.Host}}, login.Options...)
	return public.SSHHost{Name: s.BodyName(), Session: s.Address.String(), Options: options}
}
