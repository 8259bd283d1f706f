package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/recovery"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

func importCommand(inv *invocation) *cobra.Command {
	var (
		autoApprove bool
		lockTimeout time.Duration
		generate    string
	)
	cmd := &cobra.Command{
		Use:   "import ADDRESS ID",
		Short: "Add an existing slice or container to the state",
		Long: `Add an existing object to the state, as that of a session in the configuration. Nothing is created or changed; the next plan shows what differs.

The ID is the UUID of a MIG slice (MIG-UUID, or MIG-GPU-UUID/GI/CI as older drivers write it), the name or ID of a container, or the name of a session whose objects still exist. An object that cosplay did not create belongs to cosplay afterwards, and destroy removes it; cosplay asks first. Objects of other projects are refused.

  cosplay import worker-3 worker-3                     a session that state rm has forgotten
  cosplay import 'session.big' MIG-5c2e...             a slice that was created by hand
  cosplay import trainer 4f1a09c2be77                  a container

A container that the engine or NVIDIA's runtime has given a MIG slice, or a whole GPU, is imported together with that, and stays as it is until its session's block changes: it keeps its processes, and gets no disguise of cosplay's. Any other container is replaced by the next apply.

With --generate, the session's block is not in the configuration yet: cosplay writes it, from what the container was created from. A slice has no target, so the block gets the closest one.`,
		Args: wants(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, file, err := inv.openForImport(cmd.Context(), args, generate)
			if err != nil {
				return err
			}
			to, err := resource.Match(args[0], p.Addresses())
			if err != nil {
				return p.OnCluster(oneOfSeveral(err, args[0], p.Addresses()), args[0])
			}
			if err := inv.lock(cmd.Context(), p.Project, "import", lockTimeout); err != nil {
				return err
			}
			found, outlook, err := recovery.BeginImport(cmd.Context(), p.Project, to, args[1])
			if err != nil {
				return err
			}
			view := render.ImportedView{Session: found.Session, GPU: found.GPU, Name: found.Name, Foreign: found.Foreign, Kept: found.Kept, Unproven: found.Unproven, Restores: found.Restores(),
				Users: found.Users, Notes: append(p.Notes, found.Notes...), State: p.Store.Path, Live: outlook.Live, Flags: inv.flags()}
			asks := !autoApprove && (found.Foreign || found.Unproven)
			if err := confirm(inv, asks, "Take it over?", render.Importing, view); err != nil {
				return err
			}
			if err := file.write(); err != nil {
				return err
			}
			prior, err := recovery.CarryOutImport(cmd.Context(), p.Project, found, outlook)
			if err != nil {
				if _, has := prior.Session(to); !has { // else the next apply would remove what was imported
					err = errors.Join(err, file.remove())
				}
				return err
			}
			view.Serial = prior.Serial
			inv.announce(file)
			return inv.print(view)
		},
	}
	askFlag(cmd.Flags(), &autoApprove)
	lockFlag(cmd.Flags(), &lockTimeout)
	generateFlag(cmd.Flags(), &generate, "the session's block")
	return cmd
}

// openForImport opens the project, with the block that is to be generated.
func (inv *invocation) openForImport(ctx context.Context, args []string, generate string) (*opened, generated, error) {
	if generate == "" {
		p, err := inv.open(project.Options{})
		return p, generated{}, err
	}
	name := strings.TrimPrefix(args[0], "session.")
	return inv.blockFor(func(p *opened) (config.Draft, error) {
		if p.Intent.Session(resource.One(name)) != nil {
			return config.Draft{}, fmt.Errorf("the configuration has session.%s already. Fix: leave out --generate", name)
		}
		return recovery.Draft(ctx, p.Project, name, args[1])
	}, generate)
}
