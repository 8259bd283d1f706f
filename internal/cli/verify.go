package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/selftest"
)

func verifyCommand(inv *invocation) *cobra.Command {
	var o selftest.VerifyOptions
	cmd := &cobra.Command{
		Use:        "verify [SESSION...]",
		SuggestFor: []string{"test", "check", "selftest"},
		Short:      "Test the disguise from inside the sessions, and the cap",
		Long: `Test the disguise in sessions, in all of them or in those that are named. Programs that run in each, by exec and by ssh, check the environment, nvidia-smi, NVML, CUDA and Python, and allocate memory up to the cap and past it, alone and two at once. From outside, cosplay checks the slice, the settings of the GPU and the files. If a session's own programs use the GPU, verify allocates only a little memory, for a moment.

  cosplay verify                  all sessions, a line for each
  cosplay verify worker-3 -v      one, with every check
  cosplay verify --json           for programs: check, way, outcome, expected, found
  cosplay verify --no-ssh         by exec only, if you do not have the keys

NVML cannot read a clock lock. verify proves it: one session of each GPU fills a little memory for at most 3 s, and the SM clock is sampled meanwhile. A lock that is not in effect fails the check and is noted in the state: drift reports it, and the next apply sets the lock again.

A check is skipped only where the image, Python or the driver lacks what it tests; the reason is printed. Sessions that cosplay stop has stopped are left out, and those with an imported container, which has no disguise of cosplay's.

Exit codes: 0 all that could be checked holds; 1 error, or a check failed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, now, sessions, err := inv.peekChosen(cmd.Context(), args)
			if err != nil {
				return err
			}
			return inv.printVerified(inv.verified(cmd.Context(), p.Project, now.Prior, now.Live, sessions, o))
		},
	}
	cmd.Flags().BoolVar(&o.NoSSH, "no-ssh", false, "do not log in by ssh")
	return cmd
}

func (inv *invocation) printVerified(view render.VerifyView, err error) error {
	if err == nil {
		err = inv.print(view)
	}
	return cmp.Or(err, exitIf(view.Failed() > 0 || view.Unreached, exitError))
}

// verifyNow tests all sessions as they are now.
func (inv *invocation) verifyNow(ctx context.Context, p *project.Project) (render.VerifyView, error) {
	prior, live, err := p.Refresh(ctx)
	if err != nil {
		return render.VerifyView{}, err
	}
	return inv.verified(ctx, p, prior, live, prior.Sessions, selftest.VerifyOptions{})
}

// verified runs the self-test.
func (inv *invocation) verified(ctx context.Context, p *project.Project, prior resource.Prior, live resource.Live, sessions []resource.PriorSession, o selftest.VerifyOptions) (render.VerifyView, error) {
	view := render.VerifyView{Flags: inv.flags()}
	sessions = slices.DeleteFunc(slices.Clone(sessions), func(s resource.PriorSession) bool {
		if live.Unreachable(s.Slice.Host) {
			view.Unreached = true
			fmt.Fprintf(inv.Err, "Left out: %s: %v\n", s.Address, live.NotRead(s.Slice.Host))
			return true
		}
		body, _ := live.Body(s.Slice.Host, s.Runtime, s.ID)
		if s.Rests(body) {
			view.Stopped = append(view.Stopped, s.Address.Short())
			fmt.Fprintf(inv.Err, "Left out: %v\n", project.Resting(s))
		}
		imported := s.Body != nil && s.Body.Foreign
		if imported {
			fmt.Fprintf(inv.Err, "Left out: %s: its container was imported and has no disguise of cosplay's to test. cosplay apply --replace %s recreates it with one.\n", s.Address, s.Address.Short())
		}
		return imported || s.Rests(body)
	})
	defer inv.slow("Testing the disguise in " + prose.Count(len(sessions), "session"))()
	all, err := selftest.Verify(ctx, p, prior, live, sessions, o)
	view.Sessions = prose.Each(all, func(v selftest.Verified) render.VerifiedSession {
		return render.VerifiedSession{Session: v.Session.Session, Results: v.Results, Outdated: v.Outdated}
	})
	return view, err
}
