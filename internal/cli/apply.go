package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cosplay/catalog"
	"cosplay/internal/agent"
	"cosplay/internal/apply"
	"cosplay/internal/durable"
	"cosplay/internal/plan"
	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/resource"
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
		Short:      "Remove everything that is ours and put the GPUs back as they were",
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
	planned, reading, err := o.reading()
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
	var (
		prior resource.Prior
		live  resource.Live
	)
	if planned != nil {
		prior, live, err = inv.stillGood(ctx, p, files, planned)
	} else {
		planned, prior, live, err = inv.approved(ctx, p, files, diags, o)
	}
	switch {
	case err != nil:
		return err
	case o.planFile != "" || inv.json:
		_, err := inv.carryOut(ctx, p, planned, prior, live, o)
		return err
	case planned.Diff.Changes() || o.destroy && len(planned.Diff.Unrestored()) > 0:
		return inv.carryOutAgain(ctx, p, files, diags, planned, prior, live, o)
	}
	err = inv.keepBooks(ctx, p, planned, prior, live, o)
	if err == nil && o.verify {
		err = inv.verifyAll(ctx, p)
	}
	return cmp.Or(err, o.complete(planned))
}

// complete fails where a plan has left a session unfinished that it cannot complete. The
// plan has named it.
func (o applyOptions) complete(planned *plan.Plan) error {
	if o.destroy || len(planned.Diff.Stuck) == 0 {
		return nil
	}
	return exit(exitError)
}

// carryOutAgain applies, and plans and applies again as long as a step failed for a call
// that the driver does not offer: the new plan does without it.
func (inv *invocation) carryOutAgain(ctx context.Context, p *project.Project, files map[string]*hcl.File, diags hcl.Diagnostics, planned *plan.Plan, prior resource.Prior, live resource.Live, o applyOptions) error {
	for try := 1; ; try++ {
		failures, err := inv.carryOut(ctx, p, planned, prior, live, o)
		gaveUp := slices.ContainsFunc(failures, func(f apply.Failure) bool { return givenUp(f.Err) })
		if !gaveUp || o.destroy || ctx.Err() != nil || try == tries {
			return err
		}
		fmt.Fprintln(inv.Err, "\nThe driver does not offer a call that the plan needs. cosplay plans again without it.")
		if planned, prior, live, err = inv.approved(ctx, p, files, diags, o); err != nil {
			return err
		}
		if !planned.Diff.Changes() {
			return cmp.Or(inv.keepBooks(ctx, p, planned, prior, live, o), o.complete(planned))
		}
	}
}

// approved makes the plan, shows it, and asks where it changes anything.
func (inv *invocation) approved(ctx context.Context, p *project.Project, files map[string]*hcl.File, diags hcl.Diagnostics, o applyOptions) (*plan.Plan, resource.Prior, resource.Live, error) {
	outlook, view, err := inv.outlook(ctx, p, files, diags, o.aim)
	planned := outlook.Plan
	if err != nil {
		return nil, outlook.Prior, outlook.Live, err
	}
	asks := !o.autoApprove && (planned.Diff.Changes() || len(planned.Diff.Outputs) > 0)
	if asks {
		err = inv.mayAsk(", or save a plan with cosplay plan --out FILE and apply that")
	}
	if view.Destroy, view.Applying = o.destroy, true; err == nil && !inv.json {
		err = inv.tellPlan(view)
	}
	if err == nil && asks {
		err = inv.ask(o.question())
	}
	if err != nil || !asks {
		return planned, outlook.Prior, outlook.Live, err
	}
	// The answer may have taken its time.
	prior, live, err := inv.stillGood(ctx, p, files, planned)
	return planned, prior, live, err
}

// reading says how the project is read: for a saved plan with its values, and
// of the sessions only what it does not have itself.
func (o applyOptions) reading() (*plan.Plan, project.Options, error) {
	if o.planFile == "" {
		return nil, project.Options{HostsOnly: o.destroy}, nil
	}
	planned, err := loadPlan(o.planFile)
	if err != nil {
		return nil, project.Options{}, err
	}
	return planned, project.Options{Saved: planned.Variables, HostsOnly: !planned.Secrets()}, nil
}

// stillGood looks again whether a plan that was shown earlier can be carried
// out. Its warnings have been told.
func (inv *invocation) stillGood(ctx context.Context, p *project.Project, files map[string]*hcl.File, planned *plan.Plan) (resource.Prior, resource.Live, error) {
	prior, live, err := p.Fresh(ctx, planned)
	if err == nil {
		err = p.CheckOutputs(planned, prior, live)
	}
	if err != nil {
		return prior, live, err
	}
	diags, err := p.Check(ctx, planned, prior, live)
	if err == nil && diags.HasErrors() {
		diags = slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return d.Severity != hcl.DiagError })
		err = inv.refuse(diags, files)
	}
	return prior, live, err
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

// keepBooks brings the state up to date where the world needs nothing.
func (inv *invocation) keepBooks(ctx context.Context, p *project.Project, planned *plan.Plan, prior resource.Prior, live resource.Live, o applyOptions) error {
	if !planned.Empty() {
		result, err := p.Apply(ctx, planned, prior, live, project.ApplyOptions{Parallelism: 1})
		if prior = result.Prior; err != nil {
			return err
		}
	}
	prior, err := p.KeepOutputs(planned, prior, live)
	if err != nil || o.destroy {
		return err
	}
	outputs, _ := p.Outputs(prior, live)
	render.Outputs(inv.Out, inv.style(inv.Out), outputs)
	return nil
}

// carryOut applies, prints progress on standard error and the outcome on standard
// output, and returns the steps that failed.
func (inv *invocation) carryOut(ctx context.Context, p *project.Project, planned *plan.Plan, prior resource.Prior, live resource.Live, o applyOptions) ([]apply.Failure, error) {
	begun := time.Now()
	_, noSMI := exec.LookPath("nvidia-smi")
	view := render.AppliedView{Plan: planned, Live: live, Destroy: o.destroy, Flags: inv.flags(), Narrowed: narrowed(o.aim), NvidiaSMI: noSMI == nil, NVMLCode: nvmlCode, Targets: catalog.Targets}
	switch {
	case planned.Empty():
		view.Result.Prior, view.Err = p.KeepOutputs(planned, prior, live)
	default:
		progress := render.NewProgress(inv.Err, inv.style(inv.Err))
		ctx, stop := interruptible(ctx, progress)
		view.Result, view.Err = p.Apply(ctx, planned, prior, live, project.ApplyOptions{
			Progress: progress.Event, Parallelism: o.parallelism, KeepPartial: o.keepPartial,
		})
		stop()
		progress.Close()
	}
	view.Took = time.Since(begun)
	if !o.destroy {
		view.Outputs, _ = p.Outputs(view.Result.Prior, live)
		view.Checks, view.Files = p.Checks(view.Result.Prior, live), p.Intent.Files
	}
	if o.verify && view.Err == nil && len(view.Result.Failures) == 0 && !view.Result.Interrupted {
		var found render.VerifyView
		if found, view.Err = inv.verifyNow(ctx, p); view.Err == nil {
			view.Verify = &found
		}
	}
	if inv.json {
		if err := render.AppliedJSON(inv.Out, view); err != nil {
			return nil, err
		}
	} else {
		render.Applied(inv.Out, inv.style(inv.Out), view)
	}
	switch {
	case view.Err != nil || len(view.Result.Failures) > 0, o.destroy && len(planned.Diff.Unrestored()) > 0, view.Verify != nil && view.Verify.Failed() > 0:
		return view.Result.Failures, exit(exitError)
	case view.Result.Interrupted:
		return view.Result.Failures, exit(exitInterrupted)
	}
	return nil, o.complete(planned)
}

// givenUp reports whether a step failed for a call that the driver does not offer, and
// that the next plan does without.
func givenUp(err error) bool {
	var at *agent.Error
	return errors.As(err, &at) && at.GivenUp != ""
}

// nvmlCode is what NVML answered; 0 where an error is not NVML's.
func nvmlCode(err error) int {
	var at *agent.Error
	if errors.As(err, &at) {
		return at.Code
	}
	return 0
}

// interruptible ends the context at the first SIGINT, SIGTERM or SIGHUP, and
// the process at the second: the journal has the truth then.
func interruptible(ctx context.Context, progress *render.Progress) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		progress.Say("Stopping: the steps that run are finished first. Once more stops at once.")
		cancel()
		if _, ok := <-signals; ok {
			progress.Close()
			progress.Say("Stopped. What was done is in the journal. One NVML call may still be running: the next cosplay waits for it and takes over.")
			os.Exit(exitInterrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}
