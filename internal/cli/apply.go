package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cosplay/catalog"
	"cosplay/internal/agent"
	"cosplay/internal/apply"
	"cosplay/internal/durable"
	"cosplay/internal/interrupt"
	"cosplay/internal/plan"
	"cosplay/internal/project"
	"cosplay/internal/render"
)

type applyOptions struct {
	aim         project.Aim
	planFile    string
	destroy     bool
	autoApprove bool
	parallelism int
	keepPartial bool
	lockTimeout time.Duration
	verify      bool
}

func (o *applyOptions) flags(f *pflag.FlagSet) {
	aimFlags(f, &o.aim)
	f.BoolVar(&o.autoApprove, "auto-approve", false, "do not ask")
	f.IntVar(&o.parallelism, "parallelism", defaultParallelism(), "`number` of steps at a time")
	f.BoolVar(&o.keepPartial, "keep-partial", false, "leave what a failed session has so far, to look at it")
	f.DurationVar(&o.lockTimeout, "lock-timeout", 10*time.Second, "how long to wait for another cosplay on the same state")
}

// defaultParallelism is where more containers at once take longer, not shorter:
// an engine is busy with network and cgroups then.
func defaultParallelism() int { return max(4, 2*runtime.NumCPU()) }

func (inv *invocation) apply() *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:        "apply [PLANFILE]",
		SuggestFor: []string{"up", "start", "create"},
		Short:      "Make it so: plan, ask, change",
		Long: `Plan, ask, and carry the plan out, step by step with a journal; or carry out a saved plan, which is refused if anything has moved since.

Ctrl-C once finishes the steps that run, saves and stops; twice stops at once, and the next command takes over what was done.

Exit codes: 0 done, or nothing to do; 1 error, or not all was done; 130 stopped by Ctrl-C.`,
		Args: wants(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.planFile = args[0]
			}
			return inv.runApply(cmd.Context(), o)
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().BoolVar(&o.verify, "verify", false, "test the disguise of all sessions afterwards, as cosplay verify does; exit with 1 where it does not hold")
	return cmd
}

func (inv *invocation) destroy() *cobra.Command {
	o := applyOptions{destroy: true, aim: project.Aim{Goal: project.NothingLeft}}
	cmd := &cobra.Command{
		Use:        "destroy",
		SuggestFor: []string{"down", "stop", "rm", "delete"},
		Short:      "Remove everything that cosplay created and restore the GPUs",
		Long: `Remove the sessions of this project and give each GPU the settings back that it was found with.

A setting that cannot be restored, because the GPU is lost, a slice is in use, another process changed the setting or the driver does not offer the call, is reported, and the exit code is 1. The host's ledger keeps the baseline, and a later destroy tries again. --abandon-baseline releases the GPU as it is; the ledger records the setting, its value and the user.

Exit codes: 0 every setting is restored, or nothing to do; 1 error, or not all was done or restored; 130 stopped by Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return inv.runApply(cmd.Context(), o) },
	}
	o.flags(cmd.Flags())
	abandonFlag(cmd.Flags(), &o.aim.AbandonBaseline)
	_ = cmd.Flags().MarkHidden("replace") // known, so that it is refused with its reason
	return cmd
}

func (inv *invocation) runApply(ctx context.Context, o applyOptions) error {
	if o.parallelism < 1 {
		return fmt.Errorf("--parallelism %d: at least 1 step has to run at a time", o.parallelism)
	}
	if err := checkAim(o.aim); err != nil {
		return err
	}
	if o.planFile != "" && len(o.aim.Target)+len(o.aim.Exclude)+len(o.aim.Replace) > 0 {
		return errors.New("a saved plan is carried out as it is; give --target, --exclude and --replace to the plan that makes it")
	}
	saved, reading, err := o.reading()
	if err != nil {
		return err
	}
	inv.asks = true
	p, files, diags, err := inv.openWith(reading)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Lock(ctx, commandName(o), o.lockTimeout); err != nil {
		return err
	}
	a := &applying{invocation: inv, Project: p, o: o, files: files, warnings: diags}
	options, patience := project.ApplyOptions{Parallelism: o.parallelism, KeepPartial: o.keepPartial}, project.WithoutCalls
	if o.destroy || inv.json {
		patience = project.OnePlan
	}
	if saved != nil {
		err = p.ApplySaved(ctx, saved, options, a)
	} else {
		err = p.Reconcile(ctx, o.aim, options, patience, a)
	}
	return inv.refused(err, files)
}

// applying is the operator of apply and destroy.
type applying struct {
	*invocation
	*project.Project
	o        applyOptions
	files    map[string]*hcl.File
	warnings hcl.Diagnostics
	begun    time.Time
}

// complete fails where a plan has left a session unfinished that it cannot complete. The
// plan has named it.
func (o applyOptions) complete(planned *plan.Plan) error {
	if o.destroy || len(planned.Diff.Stuck) == 0 {
		return nil
	}
	return exit(exitError)
}

// Approve shows the plan, and asks where it changes anything.
func (a *applying) Approve(outlook project.Outlook, diags hcl.Diagnostics) (waited bool, err error) {
	view, err := a.planView(a.Project, a.files, outlook, append(a.warnings, diags...), a.o.aim)
	if err != nil {
		return false, err
	}
	view.Destroy, view.Applying = a.o.destroy, true
	asks := !a.o.autoApprove && (outlook.Plan.Diff.Changes() || len(outlook.Plan.Diff.Outputs) > 0)
	if asks {
		err = a.mayAsk(", or save a plan with cosplay plan --out FILE and apply that")
	}
	if err == nil && !a.json {
		err = a.tellPlan(view)
	}
	if err == nil && asks {
		err = a.ask(a.o.question())
	}
	return asks, err
}

// Begin shows progress, where the plan changes anything, and lets signals stop the run.
func (a *applying) Begin(ctx context.Context, o project.Outlook) (context.Context, func(apply.Event), func()) {
	a.begun = time.Now()
	if a.keepsState(o.Plan) {
		return ctx, nil, func() {}
	}
	progress := render.NewProgress(a.Err, a.style(a.Err))
	ctx, release := interruptible(ctx, progress)
	return ctx, progress.Event, func() {
		release()
		progress.Close()
	}
}

// keepsState reports whether a plan brings the state up to date and changes no host.
func (a *applying) keepsState(planned *plan.Plan) bool {
	return a.o.planFile == "" && !a.json && !planned.Diff.Changes() && !(a.o.destroy && len(planned.Diff.Unrestored()) > 0)
}

// reading says how the project is read: for a saved plan with its values, and
// of the sessions only what it does not have itself.
func (o applyOptions) reading() (*plan.Saved, project.Options, error) {
	if o.planFile == "" {
		return nil, project.Options{HostsOnly: o.destroy}, nil
	}
	saved, err := loadPlan(o.planFile)
	if err != nil {
		return nil, project.Options{}, err
	}
	return saved, project.Options{Saved: saved.Variables, HostsOnly: !saved.Secrets}, nil
}

// tellWaiting says who keeps a command waiting.
func (inv *invocation) tellWaiting(by *durable.Holder) {
	words := "Waiting for the lock of the state."
	if by != nil {
		words = fmt.Sprintf("Waiting for the lock held by %s.", by)
	}
	fmt.Fprintln(inv.Err, words)
}

func (o applyOptions) question() string {
	if o.destroy {
		return "Destroy all of this?"
	}
	return "Apply these changes?"
}

func commandName(o applyOptions) string {
	if o.destroy {
		return "destroy"
	}
	return "apply"
}

// Applied shows the outcome, and chooses the exit code.
func (a *applying) Applied(ctx context.Context, outlook project.Outlook, result apply.Result, err error, again bool) error {
	if a.keepsState(outlook.Plan) {
		return a.kept(ctx, outlook, result, err)
	}
	_, noSMI := exec.LookPath("nvidia-smi")
	view := render.AppliedView{Plan: outlook.Plan, Live: outlook.Live, Result: result, Err: err, Destroy: a.o.destroy, Flags: a.invocation.flags(), Narrowed: narrowed(a.o.aim),
		NvidiaSMI: noSMI == nil, NVMLCode: nvmlCode, Targets: catalog.Targets}
	if !a.begun.IsZero() {
		view.Took = time.Since(a.begun)
	}
	if !a.o.destroy {
		view.Outputs, _ = a.Outputs(result.Prior, outlook.Live)
		view.Checks, view.Files = a.Checks(result.Prior, outlook.Live), a.Intent.Files
	}
	if a.o.verify && err == nil && len(result.Failures) == 0 && !result.Interrupted {
		var found render.VerifyView
		if found, view.Err = a.verifyNow(ctx, a.Project); view.Err == nil {
			view.Verify = &found
		}
	}
	if a.json {
		if err := render.AppliedJSON(a.Out, view); err != nil {
			return err
		}
	} else {
		render.Applied(a.Out, a.style(a.Out), view)
	}
	switch {
	case again:
		fmt.Fprintln(a.Err, "\nThe driver does not offer a call that the plan needs. cosplay plans again without it.")
		return nil
	case view.Err != nil || len(result.Failures) > 0, a.o.destroy && len(outlook.Plan.Diff.Unrestored()) > 0, view.Verify != nil && view.Verify.Failed() > 0:
		return exit(exitError)
	case result.Interrupted:
		return exit(exitInterrupted)
	}
	return a.o.complete(outlook.Plan)
}

// kept shows the outcome of a plan that changed no host.
func (a *applying) kept(ctx context.Context, o project.Outlook, result apply.Result, err error) error {
	if err != nil {
		return err
	}
	if !a.o.destroy {
		outputs, _ := a.Outputs(result.Prior, o.Live)
		render.Outputs(a.Out, a.style(a.Out), outputs)
	}
	if a.o.verify {
		err = a.verifyAll(ctx, a.Project)
	}
	return cmp.Or(err, a.o.complete(o.Plan))
}

// nvmlCode is what NVML answered; 0 where an error is not NVML's.
func nvmlCode(err error) int {
	var at *agent.Error
	if errors.As(err, &at) {
		return at.Code
	}
	return 0
}

// interruptible ends the context at the first signal, and the process at the second: the
// journal has what was done.
func interruptible(ctx context.Context, progress *render.Progress) (context.Context, func()) {
	return interrupt.Context(ctx, func() {
		progress.Say("Stopping: the steps that run are finished first. Once more stops at once.")
	}, func() {
		progress.Close()
		progress.Say("Stopped. What was done is in the journal. One NVML call may still be running: the next cosplay waits for it and takes over.")
		os.Exit(exitInterrupted)
	})
}
