package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/recovery"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

type importOptions struct {
	autoApprove bool
	lockTimeout time.Duration
}

func (inv *invocation) importThings() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import ADDRESS ID",
		Short: "Take what exists already into the state, as a session's",
		Long: `Take what exists already and is not in the state into it, as that of a session which the configuration has. Nothing is made or changed; the next plan tells what differs.

The ID is the UUID of a MIG slice (MIG-UUID, or MIG-GPU-UUID/GI/CI as older drivers write it), the name or ID of a container, or what is left of a session by its name. What cosplay did not make, a slice of the admin's or a container, is cosplay's from then on: destroy removes it. That is asked first. What belongs to another project is refused.

  cosplay import worker-3 worker-3                     what state rm has forgotten
  cosplay import 'session.big' MIG-5c2e...             a slice that was allotted by hand
  cosplay import trainer 4f1a09c2be77                  a container`,
		Args: wants(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return inv.runImport(cmd.Context(), args[0], args[1], o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.autoApprove, "auto-approve", false, "do not ask")
	f.DurationVar(&o.lockTimeout, "lock-timeout", 10*time.Second, "how long to wait for another cosplay on the same state")
	return cmd
}

func (inv *invocation) runImport(ctx context.Context, name, id string, o importOptions) error {
	p, _, _, err := inv.open()
	if err != nil {
		return err
	}
	defer p.Close()
	to, err := resource.Match(name, p.Addresses())
	if err != nil {
		return oneOfSeveral(err, name, p.Addresses())
	}
	if err := p.Lock(ctx, "import", o.lockTimeout); err != nil {
		return err
	}
	found, outlook, err := recovery.BeginImport(ctx, p, to, id)
	if err != nil {
		return err
	}
	view := render.ImportedView{Session: found.Session, GPU: found.GPU, Name: found.Name, Foreign: found.Foreign, Unproven: found.Unproven,
		Users: found.Users, Notes: append(p.Notes, found.Notes...), State: p.Store.Path, Live: outlook.Live, Flags: inv.flags()}
	asks := !o.autoApprove && (found.Foreign || found.Unproven)
	if asks {
		if err := inv.mayAsk(""); err != nil {
			return err
		}
	}
	if !inv.json {
		render.Importing(inv.Out, inv.style(inv.Out), view)
	}
	if asks {
		if err := inv.ask("Take it over?"); err != nil {
			return err
		}
	}
	prior, err := recovery.CarryOutImport(ctx, p, found, outlook)
	if err != nil {
		return err
	}
	view.Serial = prior.Serial
	if inv.json {
		return render.ImportedJSON(inv.Out, view)
	}
	render.Imported(inv.Out, inv.style(inv.Out), view)
	return nil
}
