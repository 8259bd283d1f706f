package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cosplay/catalog"
	"cosplay/internal/agent"
	"cosplay/internal/apply"
	"cosplay/internal/durable"
	"cosplay/internal/interrupt"
	"cosplay/internal/place"
	"cosplay/internal/plan"
	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

type applyOptions struct {
	stepFlags
	aim         project.Aim
	planFile    string
	destroy     bool
	autoApprove bool
	keepPartial bool
	verify      bool
	wait        waitFlag
}

func (o *applyOptions) flags(f *pflag.FlagSet) {
	aimFlags(f, &o.aim)
	askFlag(f, &o.autoApprove)
	o.stepFlags.flags(f)
	f.BoolVar(&o.keepPartial, "keep-partial", false, "keep what was created for a session that failed, to inspect it")
}

func applyCommand(inv *invocation) *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:        "apply [PLANFILE]",
		SuggestFor: []string{"up", "create"},
		Short:      "Apply the configuration: plan, ask, change",
		Long: `Plan, ask, and run the steps of the plan with a journal; or apply a saved plan, which is refused if configuration, state or hosts have changed since.

With --wait, apply waits until there is room for its new sessions: first come, first served, over all users of the host. Ctrl-C leaves the queue.

The first Ctrl-C finishes the steps that run, saves and stops; the second stops at once, and the next command adds what was done to the state.

Exit codes: 0 done, or nothing to do; 1 error, not all was done, or a host cannot be read; 130 stopped by Ctrl-C.`,
		Args: func(cmd *cobra.Command, args []string) error {
			o.planFile = strings.Join(args, "")
			return cmp.Or(wants(0, 1)(cmd, args), checkPlanFlags(cmd.Flags()), o.wait.detached(args), o.check())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), inv) },
	}
	o.flags(cmd.Flags())
	inv.planFlags(cmd.Flags())
	o.wait.flag(cmd.Flags())
	cmd.Flags().BoolVar(&o.verify, "verify", false, "test the disguise of all sessions afterwards, as cosplay verify does; exit with 1 if a check fails")
	return cmd
}

func destroyCommand(inv *invocation) *cobra.Command {
	o := applyOptions{destroy: true, aim: project.Aim{Goal: project.NothingLeft}}
	cmd := &cobra.Command{
		Use:        "destroy [DETACHED]",
		SuggestFor: []string{"down", "rm", "delete"},
		Short:      "Remove everything that cosplay created and restore the GPUs",
		Long: `Remove the sessions of this project and give each GPU the settings back that it was found with.

DETACHED is the name of a session that cosplay run --detach has created, in a folder without a project.

A setting that cannot be restored, because the GPU is lost, a slice is in use, another process changed the setting or the driver does not offer the call, is reported, and the exit code is 1. The host's ledger keeps the baseline, and a later destroy tries again. --abandon-baseline releases the GPU as it is; the ledger records the setting, its value and the user.

Exit codes: 0 every setting is restored, or nothing to do; 1 error, or not all was done or restored; 130 stopped by Ctrl-C.`,
		Args: func(cmd *cobra.Command, args []string) error {
			return cmp.Or(inv.maybeDetached(cmd, args), checkPlanFlags(cmd.Flags()), o.check())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), inv) },
	}
	o.flags(cmd.Flags())
	inv.planFlags(cmd.Flags())
	abandonFlag(cmd.Flags(), &o.aim.AbandonBaseline)
	_ = cmd.Flags().MarkHidden("replace") // known, so that it is refused with its reason
	return cmd
}

// check refuses flags that contradict each other.
func (o *applyOptions) check() error {
	if err := checkAim(o.aim); err != nil {
		return err
	}
	if o.planFile != "" && len(aimed(o.aim)) > 0 {
		return errors.New("a saved plan is carried out as it is; give --target, --exclude and --replace to the plan that makes it")
	}
	switch {
	case o.wait.set && o.planFile != "":
		return errors.New("a saved plan is carried out as it is, and needs room now; leave --wait or the plan out")
	case o.wait.set && !o.autoApprove:
		return errors.New("no user may be there to approve the plan when its turn comes; add --auto-approve to --wait")
	}
	return nil
}

func (o applyOptions) run(ctx context.Context, inv *invocation) error {
	saved, reading, err := o.reading()
	if err != nil {
		return err
	}
	inv.asks = true
	p, err := inv.open(reading)
	if err != nil {
		return err
	}
	turn, err := inv.await(ctx, p.Project, o.aim, o.wait)
	if err != nil {
		return err
	}
	defer turn.End()
	command := "apply"
	if o.destroy {
		command = "destroy"
	}
	if err := inv.lock(ctx, p.Project, command, o.lockTimeout); err != nil {
		return err
	}
	a := &applying{invocation: inv, opened: p, o: o, read: inv.slow("Reading the hosts")}
	defer a.read()
	options, patience := project.ApplyOptions{Parallelism: int(o.parallelism), KeepPartial: o.keepPartial}, project.WithoutCalls
	if o.destroy {
		patience = project.AfterOthers
	}
	if saved != nil {
		err = p.ApplySaved(ctx, saved, options, a)
		if stale, is := errors.AsType[*project.StaleError](err); is {
			stale.Command = terminal.ShellWords(slices.Concat([]string{"plan"}, inv.flags(), saved.Flags, []string{"--out", o.planFile}))
		}
	} else {
		err = p.Reconcile(ctx, o.aim, options, patience, a)
	}
	code, _ := errors.AsType[exit](err)
	ended := err == nil || code == exitError
	if o.destroy && ended && a.approved && len(aimed(o.aim)) == 0 && len(p.Killed()) > 0 {
		err = cmp.Or(err, inv.removeKilled(ctx))
	}
	if o.destroy && err == nil && len(aimed(o.aim)) == 0 {
		err = inv.forget(p.Project)
	}
	return inv.refused(err, p.files)
}

// applying is the operator of apply and destroy.
type applying struct {
	*invocation
	*opened
	o        applyOptions
	begun    time.Time
	read     func()          // the hosts have been read
	approved bool            // no question was left unanswered or answered by no
	far      hcl.Diagnostics // warnings of the plan that are repeated after the run
}

// complete fails if the plan, which names it, leaves a session unfinished, or a host does not answer.
func (o applyOptions) complete(planned *plan.Plan, live resource.Live) error {
	return exitIf(!live.AllReached() || !o.destroy && len(planned.Diff.Stuck) > 0, exitError)
}

// Approve shows the plan, and asks if it changes anything.
func (a *applying) Approve(ctx context.Context, outlook project.Outlook, diags hcl.Diagnostics) (waited bool, err error) {
	a.read()
	view, err := a.planView(a.opened, outlook, diags, a.o.aim)
	if err != nil {
		return false, err
	}
	view.Destroy, view.Applying = a.o.destroy, true
	a.far = slices.DeleteFunc(slices.Clone(view.Warnings), func(d *hcl.Diagnostic) bool {
		w, is := d.Extra.(place.Warning)
		return !is || !w.Far
	})
	asks := !a.o.autoApprove && (outlook.Plan.Diff.Changes() || len(outlook.Plan.Diff.Outputs) > 0)
	if err := a.mayAsk(asks, ", or save a plan with cosplay plan --out FILE and apply that"); err != nil {
		return asks, err
	}
	if !a.json {
		render.Show(a.Out, a.style(a.Out), view)
	}
	question := "Apply these changes?"
	if a.o.destroy {
		question = "Destroy all of this?"
	}
	if asks {
		err = a.WithoutLock(ctx, a.o.lockTimeout, func() error { return a.ask(true, question) })
	}
	a.approved = err == nil
	return asks, err
}

// Begin shows progress if the plan changes anything, and lets signals stop the run.
func (a *applying) Begin(ctx context.Context, o project.Outlook) (context.Context, func(apply.Event), func()) {
	a.begun = time.Now()
	if a.keepsState(o.Plan) {
		return ctx, nil, func() {}
	}
	return a.stoppable(ctx)
}

// keepsState reports whether a plan brings the state up to date and changes no host.
func (a *applying) keepsState(planned *plan.Plan) bool {
	return a.o.planFile == "" && !a.json && !planned.Diff.Changes() && !(a.o.destroy && len(planned.Diff.Unrestored()) > 0)
}

// reading are the options for the project: a saved plan has its own values of variables,
// and of the sessions all but secrets.
func (o applyOptions) reading() (*plan.Saved, project.Options, error) {
	if o.planFile == "" {
		return nil, project.Options{HostsOnly: o.destroy}, nil
	}
	saved, err := loadPlan(o.planFile)
	if err != nil {
		return nil, project.Options{}, err
	}
	return saved, project.Options{Saved: saved.Variables, Timestamp: saved.Timestamp, HostsOnly: !saved.Secrets}, nil
}

// waits prints the process that a command waits for.
func (inv *invocation) waits(by *durable.Holder) {
	words := "Waiting for the lock of the state."
	if by != nil {
		words = fmt.Sprintf("Waiting for the lock held by %s.", by)
	}
	fmt.Fprintln(inv.Err, words)
}

// Applied shows the outcome.
func (a *applying) Applied(ctx context.Context, outlook project.Outlook, result apply.Result, err error, again bool) error {
	switch {
	case a.keepsState(outlook.Plan):
		return a.kept(ctx, outlook, result, err)
	case again && project.Overtaken(result):
		fmt.Fprintln(a.Err, "\nAnother project has changed the GPU since the plan was made. cosplay plans again.")
		return nil
	case again && a.json: // the last plan is the answer
		return nil
	}
	_, noSMI := exec.LookPath("nvidia-smi")
	view := appliedView(outlook, result)
	view.Err, view.Destroy, view.Flags, view.Narrowed = err, a.o.destroy, a.flags(), narrowed(a.o.aim)
	view.NvidiaSMI = noSMI == nil
	if !a.begun.IsZero() {
		view.Took = time.Since(a.begun)
	}
	if !a.o.destroy {
		outputs, wrong := a.Outputs(result.Prior, outlook.Live)
		view.Outputs, view.Checks = outputs, append(wrong, a.Checks(result.Prior, outlook.Live)...)
		view.Files, view.Far = a.Intent.Files, a.far
	}
	if a.o.verify && err == nil && len(result.Failures) == 0 && !result.Interrupted {
		var found render.VerifyView
		if found, view.Err = a.verifyNow(ctx, a.Project); view.Err == nil {
			view.Verify = &found
		}
	}
	if err := a.print(view); err != nil {
		return err
	}
	if again {
		fmt.Fprintln(a.Err, "\nThe driver does not offer a call that the plan needs. cosplay plans again without it.")
		return nil
	}
	return a.o.outcome(view)
}

// outcome chooses the exit code.
func (o applyOptions) outcome(view render.AppliedView) error {
	unrestored := o.destroy && len(view.Plan.Diff.Unrestored()) > 0
	unverified := view.Verify != nil && view.Verify.Failed() > 0
	switch {
	case view.Err != nil, len(view.Result.Failures) > 0, view.Checks.HasErrors(), unrestored, unverified:
		return exit(exitError)
	case view.Result.Interrupted:
		return exit(exitInterrupted)
	}
	return o.complete(view.Plan, view.Live)
}

// appliedView is the view of what was done of a plan.
func appliedView(o project.Outlook, result apply.Result) render.AppliedView {
	return render.AppliedView{Plan: o.Plan, Live: o.Live, Result: result, NVMLCode: nvmlCode, Targets: catalog.Targets}
}

// kept shows the outcome of a plan that changed no host.
func (a *applying) kept(ctx context.Context, o project.Outlook, result apply.Result, err error) error {
	if err != nil {
		return err
	}
	if !a.o.destroy {
		outputs, wrong := a.Outputs(result.Prior, o.Live)
		render.Outputs(a.Out, a.style(a.Out), outputs)
		if wrong.HasErrors() {
			render.Diagnostics(a.Err, a.style(a.Err), wrong, a.Intent.Files)
			return exit(exitError)
		}
	}
	if a.o.verify {
		err = a.printVerified(a.verifyNow(ctx, a.Project))
	}
	return cmp.Or(err, a.o.complete(o.Plan, o.Live))
}

// nvmlCode is NVML's code; 0 if an error is not NVML's.
func nvmlCode(err error) int {
	if at, is := errors.AsType[*agent.Error](err); is {
		return at.Code
	}
	return 0
}

// stoppable shows the progress of a run that signals stop, until it is closed.
func (inv *invocation) stoppable(ctx context.Context) (stopped context.Context, event func(apply.Event), closed func()) {
	progress := render.NewProgress(inv.Err, inv.style(inv.Err))
	stopped, release := interruptible(ctx, progress)
	return stopped, progress.Event, func() {
		release()
		progress.Close()
	}
}

// interruptible ends the context at the first signal, and the process at the second. The
// journal has the steps that were done.
func interruptible(ctx context.Context, progress *render.Progress) (context.Context, func()) {
	return interrupt.Context(ctx, func() {
		progress.Say("Stopping: the steps that run are finished first. Once more stops at once.")
	}, func() {
		progress.Close()
		progress.Say("Stopped. What was done is in the journal. One NVML call may still be running: the next cosplay waits for it and takes over.")
		os.Exit(exitInterrupted)
	})
}
