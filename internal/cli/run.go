package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"cosplay/catalog"
	"cosplay/internal/apply"
	"cosplay/internal/durable"
	"cosplay/internal/interrupt"
	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/terminal"
)

func runCommand(inv *invocation) *cobra.Command {
	var (
		once         project.Once
		volumes, env []string
		junit        string
		wait         waitFlag
		detach       bool
	)
	cmd := &cobra.Command{
		Use:   "run GPU|--fraction PART [-- COMMAND...]",
		Short: "Run one command in a temporary session, or create one that stays",
		Long: `Create a session, run a command in it, and remove the session, whatever happens: the GPU is restored. Without a command, run starts a shell. It asks nothing and does not change the project's own sessions. It uses the hosts and targets of the configuration, or this machine if there is none. With --simulate, each run has its own simulated host and leaves nothing in the folder.

  cosplay run 2060 -- python train.py
  cosplay run 3090 --runtime process -- nvidia-smi
  cosplay run -p 0.33 -- python train.py              # a third of the host's own GPU
  cosplay run 3090 -n 2 -- torchrun train.py          # two GPUs; also -n 4 -p 0.25
  cosplay run 3090 --simulate "1 x h200" --compute shapes -- python train.py   # without a GPU: only what memory needs
  cosplay run 2060 --image pytorch/pytorch --volume /data:/data:ro --env SEED=1 -- python train.py

With --detach, run creates a session that stays until you remove it, and prints the commands that use and remove it. It is on this machine, and the configuration of the folder has no effect. A container runs the command, and is idle without one; in a session of processes cosplay exec NAME runs it. cosplay ps in a folder without a project lists the session. After --ttl the session has expired, and cosplay expire NAME, for example from cron, or cosplay watch in its folder ends it. If the session cannot be created, nothing is left of it.

  cosplay run 2060 --detach --name lab --volume /data:/data
  cosplay ssh lab
  cosplay destroy lab

With --wait, it waits until there is room for the session: first come, first served, over all users of the host. Ctrl-C leaves the queue.

Standard output is the command's; cosplay prints to standard error. Ctrl-C interrupts the command. A second Ctrl-C, or another signal, kills a command that does not end within 10 seconds. The next run in the same folder, cosplay destroy or cosplay reset removes the leftovers of a run that was killed.

With --junit, it writes the result for a CI system: one test case for each program that used PyTorch's GPU on a simulated host, with its peak memory and the reason of its failure, and otherwise one for the command.

Exit codes: the command's, with --detach 0; 127 where there is no such command, 126 where it cannot be run; 1 if the session could not be created or removed; 130 stopped by Ctrl-C before.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			target, argv, err := targetAndCommand(args, cmd.ArgsLenAtDash(), once.Fraction != "")
			if err := cmp.Or(wait.detached(args[:len(args)-len(argv)]), err); err != nil {
				return err
			}
			if inv.state != "" {
				return errors.New("cosplay run has its own state, for as long as it runs; leave --state out")
			}
			if once.Volumes, err = volumesOf(volumes); err != nil {
				return err
			}
			once.Target, once.Env = target, variablesOf(env)
			if err := inv.checkDetach(cmd.Flags()); err != nil {
				return err
			}
			if detach {
				once.Command = argv
				return inv.runDetached(cmd.Context(), once, wait)
			}
			if junit == "" {
				return inv.runOnce(cmd.Context(), once, argv, wait, nil)
			}
			if err := durable.CanWriteIn(filepath.Dir(junit)); err != nil {
				return fmt.Errorf("--junit: %w", err)
			}
			return inv.runForJUnit(cmd.Context(), once, argv, wait, junit)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&once.Fraction, "fraction", "p", "", "this `part` of the host's own GPU, instead of a target: 0.33 or 33%")
	f.IntVarP(&once.GPUs, "gpus", "n", 0, "`number` of GPUs, each a device of the session")
	f.StringVar(&once.Sharing, "sharing", "", "`kind` of share: mig, compute-instance, exclusive, time-slice or mps (default what fits)")
	f.StringVar(&once.GPU, "gpu", "", "this `GPU`, by index, UUID or PCI address")
	f.StringVar(&once.Host, "host", "", "this `host` of the configuration")
	f.StringVar(&once.Image, "image", "", "`image` of the container (default "+resource.DefaultImage+", built when it is missing)")
	f.StringArrayVar(&volumes, "volume", nil, "`SOURCE:TARGET[:ro]`, a folder or a named volume in the container; any number of times")
	f.StringArrayVarP(&env, "env", "e", nil, "`NAME=VALUE`, or NAME for the value that it has here; any number of times")
	f.StringVar(&junit, "junit", "", "write the result as JUnit XML to this `file`")
	f.StringVar(&once.Workspace, "workspace", "", "`folder` in which the command starts (default this one)")
	f.StringVar(&once.Runtime, "runtime", "", "`kind` of session where no configuration says it: docker, process or auto")
	wait.flag(f)
	f.StringVar(&once.Simulate, "simulate", "", "simulate this host: \"1 x h200\", ...; where no configuration names one")
	f.BoolVarP(&detach, "detach", "d", false, "leave the session running, and return")
	f.StringVar(&once.Name, "name", "", "`name` of the session, with --detach (default that of the target)")
	f.StringVar(&once.TTL, "ttl", "", "`duration` after which the session expires, with --detach: 8h")
	f.StringVar(&once.Compute, "compute", "", "`kind` of computing on the host of --simulate: cpu, shapes or none (default cpu)")
	return cmd
}

// targetAndCommand separates the words for the GPU from the command. A fraction replaces them.
func targetAndCommand(args []string, dash int, fraction bool) (target string, argv []string, err error) {
	words := args
	if dash >= 0 {
		words, argv = args[:dash], args[dash:]
	}
	switch {
	case fraction && dash < 0 && len(words) > 0:
		return "", nil, fmt.Errorf("write the command after --, and either a GPU or --fraction: cosplay run -p 0.33 -- %s", terminal.ShellWords(words))
	case fraction && len(words) > 0:
		return "", argv, errors.New("a target and --fraction exclude each other: a fraction is of the host's own GPU")
	case fraction:
		return "", argv, nil
	case len(words) == 0:
		return "", nil, errors.New("which GPU? For example: cosplay run 2060 -- nvidia-smi. cosplay ls lists them all; --fraction 0.33 is a part of the host's own")
	}
	target = strings.Join(words, " ")
	if _, err := catalog.Target(target); err != nil && len(words) > 1 {
		return "", argv, fmt.Errorf("write the command after --: cosplay run %s -- %s", terminal.ShellWord(words[0]), terminal.ShellWords(words[1:]))
	}
	return target, argv, nil
}

// once is the session of cosplay run, and the operator of its creation.
type once struct {
	*invocation
	*opened
	signals   interrupt.Signals
	contained bool           // the flags need a container
	begun     bool           // the session may have objects
	prior     resource.Prior // as the last plan left it
	progress  *render.Progress
	announced string
	rest      string            // words: what removes the rest of an interrupted removal
	result    *render.JUnitView // what it did, where it is wanted
}

// runOnce runs a command in a session. result gets what it did; nil where that is not wanted.
func (inv *invocation) runOnce(ctx context.Context, session project.Once, argv []string, wait waitFlag, result *render.JUnitView) error {
	p, files, diags, err := project.OpenOnce(inv.options(project.Options{}), session)
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return inv.refuse(diags, files)
	}
	defer p.Close()
	one := &once{invocation: inv, opened: &opened{p, files, diags}, signals: interrupt.Catch(), result: cmp.Or(result, &render.JUnitView{}), contained: session.Image != "" || len(session.Volumes) > 0,
		rest: "The next cosplay run in this folder"}
	// Signals do not prevent the removal of the session.
	defer one.signals.Release()
	interrupt.OutliveReaders()
	_ = inv.removeKilled(ctx)
	if err := inv.lock(ctx, p, "run", 0); err != nil {
		return err
	}
	err = one.create(ctx, wait)
	if err == nil {
		err = one.execute(ctx, argv)
	}
	left := one.remove(context.WithoutCancel(ctx))
	if err != nil && left != nil {
		inv.report(left)
	}
	return cmp.Or(err, left)
}

// runForJUnit is runOnce with its result in a file, also where it fails.
func (inv *invocation) runForJUnit(ctx context.Context, session project.Once, argv []string, wait waitFlag, path string) error {
	command := terminal.ShellWords(argv)
	if len(argv) == 0 {
		command = "shell"
	}
	view := render.JUnitView{Command: command, Host: cmp.Or(session.Host, "localhost"), Began: time.Now(), Targets: catalog.Targets}
	err := inv.runOnce(ctx, session, argv, wait, &view)
	view.Took = time.Since(view.Began)
	if code, is := errors.AsType[exit](err); is {
		view.Code = int(code)
	} else if err != nil {
		view.Code, view.Failure = exitError, err
	}
	content, failed := render.JUnit(view)
	if failed == nil {
		failed = durable.WriteFile(path, content, 0o644)
	}
	if failed != nil {
		failed = fmt.Errorf("--junit: %w", failed)
	}
	if err != nil && failed != nil {
		inv.report(failed)
	}
	return cmp.Or(err, failed)
}

// brief shows progress without a line for each step.
func (inv *invocation) brief() *render.Progress {
	progress := render.NewProgress(inv.Err, inv.style(inv.Err))
	progress.Brief = true
	return progress
}

// report prints an error that does not end the command. An exit code was reported before.
func (inv *invocation) report(err error) {
	if _, shown := errors.AsType[exit](err); !shown {
		render.Error(inv.Err, inv.style(inv.Err), err)
	}
}

// create creates the session, when its turn has come.
func (o *once) create(ctx context.Context, wait waitFlag) error {
	turn, err := o.inTurn(ctx, wait)
	if err != nil {
		return err
	}
	defer turn.End()
	o.progress = o.brief()
	defer o.progress.Close()
	ctx, release := interruptible(ctx, o.progress)
	defer release()
	err = o.Reconcile(ctx, project.Aim{}, usualOptions(nil), project.AfterOthers, o)
	if _, shown := errors.AsType[exit](err); err != nil && o.signals.Pending() && !shown {
		return exit(exitInterrupted)
	}
	return err
}

// inTurn waits for the turn. A signal leaves the queue.
func (o *once) inTurn(ctx context.Context, wait waitFlag) (*project.Turn, error) {
	ctx, release := interrupt.Context(ctx, func() {}, func() { os.Exit(exitInterrupted) })
	defer release()
	turn, err := o.await(ctx, o.Project, project.Aim{}, wait)
	if err != nil && o.signals.Pending() {
		err = exit(exitInterrupted)
	}
	return turn, err
}

// Approve prints what is created before that begins.
func (o *once) Approve(_ context.Context, outlook project.Outlook, diags hcl.Diagnostics) (waited bool, err error) {
	if o.signals.Pending() {
		return false, exit(exitInterrupted)
	}
	view, err := o.planView(o.opened, outlook, diags, project.Aim{})
	if err != nil {
		return false, err
	}
	if host := o.Intent.Sessions[0].Host; outlook.Live.Unreachable(host) {
		return false, outlook.Live.NotRead(host)
	}
	session := outlook.Plan.Desired.Sessions[0]
	if runtime := resource.RuntimeNamed(session.Runtime); o.contained && !runtime.Uses("image") {
		return false, fmt.Errorf("host %s runs sessions %s, which do not use --image and --volume; leave them out, or choose a runtime that uses them: %s",
			session.Slice.Host, runtime.Where, strings.Join(resource.RuntimeNames("image"), ", "))
	}
	var words strings.Builder
	style := o.style(o.Err)
	render.Diagnostics(&words, style, view.Warnings, o.files)
	render.Running(&words, style, view)
	if words.String() != o.announced {
		fmt.Fprint(o.Err, words.String())
	}
	o.announced, o.begun = words.String(), true
	return false, nil
}

// Begin is part of project.Operator; create has made the context stoppable.
func (o *once) Begin(ctx context.Context, _ project.Outlook) (context.Context, func(apply.Event), func()) {
	return ctx, o.progress.Event, func() {}
}

// Applied shows why the session could not be created.
func (o *once) Applied(_ context.Context, outlook project.Outlook, result apply.Result, err error, again bool) error {
	o.prior = result.Prior
	switch {
	case err != nil || again:
		return err
	case result.Interrupted:
		return exit(exitInterrupted)
	case len(result.Failures) == 0:
		return nil
	}
	o.progress.Close()
	render.NotRunning(o.Err, o.style(o.Err), appliedView(outlook, result))
	return exit(exitError)
}

// execute runs the command, or a shell. Its exit code is the error.
func (o *once) execute(ctx context.Context, argv []string) error {
	session := o.prior.Sessions[0]
	place, err := o.Runtime(ctx, session, o.prior)
	if err != nil {
		return err
	}
	if len(argv) == 0 && !resource.RuntimeNamed(session.Runtime).HasShell {
		argv = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	o.Machine.Rest()
	if o.signals.Pending() {
		return exit(exitInterrupted)
	}
	o.result.Ran = true
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	defer o.signals.Handle(func() {}, func() { // the command gets each signal, and may ignore it
		if ctx.Err() == nil {
			fmt.Fprintf(o.Err, "The command ignores the signal. cosplay kills it in %s and removes the session.\n", runtime.KillAfter)
			kill()
		}
	})()
	code, err := place.Exec(ctx, session.ID, runtime.Program{Argv: argv}, runtime.Streams{In: o.In, Out: o.stdout, Err: o.stderr})
	if errors.Is(ctx.Err(), context.Canceled) { // it was ended, whatever it says
		code, err = cmp.Or(code, exitInterrupted), nil
	}
	if err != nil {
		o.report(err)
		o.result.Failure = err
		code = max(code, exitError)
	}
	if o.result.Code = code; code != 0 {
		return exit(code)
	}
	return nil
}

// remove removes the session and its state.
func (o *once) remove(ctx context.Context) error {
	if !o.begun {
		return o.Discard(resource.Prior{})
	}
	progress := o.brief()
	defer progress.Close()
	o.signals.Forget() // the user sent them to the command
	defer o.signals.Handle(func() {
		progress.Say("The session is being removed. Once more stops at once.")
	}, func() {
		progress.Say("Stopped. " + o.rest + " removes the rest.")
		os.Exit(exitInterrupted)
	})()
	begun, used := time.Now(), o.Used(o.prior, resource.Live{})
	reports := o.Reports(o.prior, used)
	for a, use := range used { // the exit code says more than the programs do
		use = reports[a].Discount(use)
		use.WentOn = o.result.Ran && o.result.Code == 0 && !reports[a].AnyRanOut() && use.OutOfMemory > use.Overcome
		used[a] = use
	}
	target := o.Intent.Sessions[0].Target
	if len(o.prior.Sessions) > 0 {
		target = o.prior.Sessions[0].Target // a fraction is resolved
		o.result.Used, o.result.Report = used[o.prior.Sessions[0].Address], reports[o.prior.Sessions[0].Address]
	}
	o.result.Target = target
	outlook, result, err := o.Remove(ctx, usualOptions(progress.Event))
	if err != nil {
		return o.refused(err, nil)
	}
	progress.Close()
	view := render.RanView{Target: target, Used: used, Report: o.result.Report, AppliedView: appliedView(outlook, result)}
	view.Took, view.Destroy = time.Since(begun), true
	render.Ran(o.Err, o.style(o.Err), view)
	return o.Discard(result.Prior)
}

// removeKilled removes the leftovers of killed runs in this folder. It reports an error,
// and the command continues.
func (inv *invocation) removeKilled(ctx context.Context) error {
	progress := inv.brief()
	removed, err := project.RemoveKilled(ctx, inv.options(project.Options{}), usualOptions(progress.Event))
	for range removed {
		fmt.Fprintln(inv.Err, "Removed the leftovers of a cosplay run that was killed.")
	}
	progress.Close()
	if err != nil {
		inv.report(fmt.Errorf("removing the leftovers of a cosplay run that was killed: %w", inv.refused(err, nil)))
		return exit(exitError)
	}
	return nil
}
