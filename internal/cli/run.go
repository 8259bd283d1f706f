package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"cosplay/catalog"
	"cosplay/internal/agent"
	"cosplay/internal/apply"
	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/terminal"
)

func (inv *invocation) run() *cobra.Command {
	var (
		once         project.Once
		volumes, env []string
	)
	cmd := &cobra.Command{
		Use:   "run GPU [-- COMMAND...]",
		Short: "Run one command in a session that is taken down again",
		Long: `Make one session, run a command in it, and take the session down again, whatever happens: the GPU is left as it was found. Without a command it is a shell. Nothing is asked, and the project's own sessions are not touched; its hosts and targets are known, and without a configuration it is this machine.

  cosplay run 2060 -- python train.py
  cosplay run 3090 --runtime process -- nvidia-smi
  cosplay run 2060 --image pytorch/pytorch --volume /data:/data:ro --env SEED=1 -- python train.py

Standard output is the command's; cosplay speaks on standard error. Ctrl-C goes to the command. What a run that was killed has left, the next one in the same folder takes down, and so does cosplay reset.

Exit codes: the command's; 127 where there is no such command, 126 where it cannot be run; 1 where the session could not be made or taken down; 130 stopped by Ctrl-C before.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			target, argv, err := targetAndCommand(args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			if inv.state != "" {
				return errors.New("cosplay run keeps a state of its own, for as long as it runs; leave --state out")
			}
			if once.Volumes, err = volumesOf(volumes); err != nil {
				return err
			}
			once.Target, once.Env = target, variablesOf(env)
			return inv.runOnce(cmd.Context(), once, argv)
		},
	}
	f := cmd.Flags()
	f.StringVar(&once.GPU, "gpu", "", "this `GPU`, by index, UUID or PCI address")
	f.StringVar(&once.Host, "host", "", "this `host` of the configuration")
	f.StringVar(&once.Image, "image", "", "`image` of the container (default "+resource.DefaultImage+", built when it is missing)")
	f.StringArrayVar(&volumes, "volume", nil, "`SOURCE:TARGET[:ro]`, a folder or a named volume in the container; any number of times")
	f.StringArrayVarP(&env, "env", "e", nil, "`NAME=VALUE`, or NAME for the value that it has here; any number of times")
	f.StringVar(&once.Workspace, "workspace", "", "`folder` in which the command starts (default this one)")
	f.StringVar(&once.Runtime, "runtime", "", "`kind` of session where no configuration says it: docker, process or auto")
	f.StringVar(&once.Simulate, "simulate", "", "simulate this host: \"1 x h200\", ...; where no configuration names one")
	return cmd
}

// targetAndCommand parts the words for the GPU from the command.
func targetAndCommand(args []string, dash int) (target string, argv []string, err error) {
	words := args
	if dash >= 0 {
		words, argv = args[:dash], args[dash:]
	}
	if len(words) == 0 {
		return "", nil, errors.New("which GPU? For example: cosplay run 2060 -- nvidia-smi. cosplay ls lists them all")
	}
	target = strings.Join(words, " ")
	if _, err := catalog.Target(target); err != nil && len(words) > 1 {
		return "", nil, fmt.Errorf("write the command after --: cosplay run %s -- %s", terminal.ShellWord(words[0]), terminal.ShellWords(words[1:]))
	}
	return target, argv, nil
}

func volumesOf(typed []string) ([]project.OnceVolume, error) {
	var all []project.OnceVolume
	for _, one := range typed {
		parts := strings.Split(one, ":")
		if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" || len(parts) == 3 && parts[2] != "ro" && parts[2] != "rw" {
			return nil, fmt.Errorf("--volume %s: it is SOURCE:TARGET or SOURCE:TARGET:ro, like /data:/data:ro", one)
		}
		all = append(all, project.OnceVolume{Source: parts[0], Target: parts[1], ReadOnly: len(parts) == 3 && parts[2] == "ro"})
	}
	return all, nil
}

// variablesOf reads --env. A name without a value that is not set here is left
// out, as by docker run.
func variablesOf(typed []string) map[string]string {
	env := map[string]string{}
	for _, one := range typed {
		name, value, given := strings.Cut(one, "=")
		if !given {
			if value, given = os.LookupEnv(name); !given {
				continue
			}
		}
		env[name] = value
	}
	return env
}

// once is a session for one command.
type once struct {
	*invocation
	*project.Project
	files     map[string]*hcl.File
	signals   chan os.Signal // those that would end us
	contained bool           // what was asked for is there in a container only
	begun     bool           // there may be something of it
}

func (inv *invocation) runOnce(ctx context.Context, session project.Once, argv []string) error {
	p, files, diags, err := project.OpenOnce(project.Options{File: inv.file, Given: inv.given, Version: Version}, session)
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return inv.refuse(diags, files)
	}
	defer p.Close()
	one := &once{invocation: inv, Project: p, files: files, signals: make(chan os.Signal, 4)}
	// Whatever comes, the session is taken down.
	signal.Notify(one.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(one.signals)
	defer outliveReaders()()
	inv.takeDownAbandoned(ctx)
	if err := p.Lock(ctx, "run", 0); err != nil {
		return err
	}
	one.contained = session.Image != "" || len(session.Volumes) > 0
	prior, err := one.bringUp(ctx, diags)
	if err == nil {
		err = one.execute(ctx, prior, argv)
	}
	left := one.takeDown(context.WithoutCancel(ctx), prior)
	if err != nil && left != nil {
		inv.tell(left)
	}
	return cmp.Or(err, left)
}

// outliveReaders makes writing to a pipe that nobody reads any more an error, as
// of any other file, and not our end. It is not ignored: what we ignore, the
// command would be born ignoring.
func outliveReaders() (release func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// progress shows what goes on, without a line for each step.
func (inv *invocation) progress() *render.Progress {
	progress := render.NewProgress(inv.Err, inv.style(inv.Err))
	progress.Brief = true
	return progress
}

// tell shows an error that does not end the command; one with an exit code alone
// was shown where it arose.
func (inv *invocation) tell(err error) {
	var told exit
	if !errors.As(err, &told) {
		render.Error(inv.Err, inv.style(inv.Err), err)
	}
}

// bringUp makes the session. It says what it is before it does it.
func (o *once) bringUp(ctx context.Context, warnings hcl.Diagnostics) (resource.Prior, error) {
	progress := o.progress()
	defer progress.Close()
	ctx, stop := interruptible(ctx, progress)
	defer stop()
	begun, told := time.Now(), ""
	for try := 1; ; try++ {
		outlook, view, err := o.outlook(ctx, o.Project, o.files, warnings, project.Aim{})
		switch {
		case o.signalled():
			return outlook.Prior, exit(exitInterrupted)
		case err != nil:
			return outlook.Prior, err
		}
		session := outlook.Plan.Desired.Sessions[0]
		if o.contained && session.Runtime != resource.RuntimeDocker {
			return resource.Prior{}, fmt.Errorf("host %s runs sessions as processes, and --image and --volume are for containers; leave them out, or have containers there: runtime docker", session.Slice.Host)
		}
		page, _ := outlook.Live.Held(session.Slice.Host, session.Slice.GPU)
		if page.Moving(outlook.Prior.Lineage) && time.Since(begun) < settling {
			pause()
			continue
		}
		told = o.announce(view, told)
		o.begun = true
		result, err := o.Apply(ctx, outlook.Plan, outlook.Prior, outlook.Live, project.ApplyOptions{Progress: progress.Event, Parallelism: defaultParallelism()})
		switch {
		case err != nil:
			return result.Prior, err
		case result.Interrupted:
			return result.Prior, exit(exitInterrupted)
		case len(result.Failures) == 0:
			return result.Prior, nil
		case !again(try, result):
			progress.Close()
			render.NotRunning(o.Err, o.style(o.Err), render.AppliedView{Plan: outlook.Plan, Live: outlook.Live, Result: result, NVMLCode: nvmlCode})
			return result.Prior, exit(exitError)
		}
	}
}

// announce says what is going to be made, unless that was said before.
func (o *once) announce(view render.PlanView, before string) string {
	var words strings.Builder
	style := o.style(o.Err)
	render.Diagnostics(&words, style, view.Warnings, o.files)
	render.Running(&words, style, view)
	if words.String() != before {
		fmt.Fprint(o.Err, words.String())
	}
	return words.String()
}

// settling is how long it is waited for somebody else who is about to change a
// GPU: he may have been killed over it.
const settling = 10 * time.Second

// signalled reports whether somebody wants us to end, as long as there is no
// command that hears of it.
func (o *once) signalled() bool { return len(o.signals) > 0 }

// tries bounds how often a plan is made again that another project overtook, among
// many that run at once, one gets on each time.
const tries = 30

// again waits a moment, and reports whether a new plan may do better.
func again(try int, r apply.Result) bool {
	for _, f := range r.Failures {
		var at *agent.Error
		if !errors.As(f.Err, &at) || !at.Overtaken() || f.Left != nil {
			return false
		}
	}
	pause()
	return len(r.Failures) > 0 && try < tries
}

// pause is not as long for all who wait.
func pause() { time.Sleep(time.Duration(50+rand.IntN(200)) * time.Millisecond) }

// execute runs the command, or a shell. Its exit code is the error.
func (o *once) execute(ctx context.Context, prior resource.Prior, argv []string) error {
	session := prior.Sessions[0]
	place, err := o.Runtime(ctx, session, prior)
	if err != nil {
		return err
	}
	if len(argv) == 0 && session.Runtime == resource.RuntimeProcess {
		argv = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	o.Machine.Rest()
	if o.signalled() {
		return exit(exitInterrupted)
	}
	code, err := place.Exec(ctx, session.ID, argv, runtime.Streams{In: o.In, Out: o.stdout, Err: o.stderr})
	if err != nil {
		o.tell(err)
		code = max(code, exitError)
	}
	if code != 0 {
		return exit(code)
	}
	return nil
}

// takeDown takes away all of the session and its books.
func (o *once) takeDown(ctx context.Context, prior resource.Prior) error {
	if !o.begun {
		return o.Discard(resource.Prior{})
	}
	progress := o.progress()
	defer progress.Close()
	defer o.hold(progress)()
	used := o.Used(prior)
	done, err := o.takeAllDown(ctx, o.Project, progress)
	if err != nil {
		return err
	}
	progress.Close()
	render.Ran(o.Err, o.style(o.Err), render.RanView{AppliedView: done, Target: o.Intent.Sessions[0].Target, Used: used})
	return o.Discard(done.Result.Prior)
}

// hold keeps signals from ending us, all but the second from now on.
func (o *once) hold(progress *render.Progress) (release func()) {
	for len(o.signals) > 0 {
		<-o.signals // the command's
	}
	released := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			select {
			case <-released:
				return
			case <-o.signals:
			}
			if !first {
				progress.Say("Stopped. The next cosplay run in this folder takes down the rest.")
				os.Exit(exitInterrupted)
			}
			progress.Say("The session is being taken down. Once more stops at once.")
		}
	}()
	return func() { close(released) }
}

// takeAllDown leaves nothing of a project.
func (inv *invocation) takeAllDown(ctx context.Context, p *project.Project, progress *render.Progress) (render.AppliedView, error) {
	begun := time.Now()
	for try := 1; ; try++ {
		outlook, diags, err := p.Plan(ctx, project.Aim{Goal: project.NothingLeft})
		if err != nil {
			return render.AppliedView{}, err
		}
		view := render.AppliedView{Plan: outlook.Plan, Live: outlook.Live, Destroy: true, NVMLCode: nvmlCode, Targets: catalog.Targets}
		if diags.HasErrors() {
			return view, inv.refuse(diags, nil)
		}
		view.Result.Prior = outlook.Prior
		if !outlook.Plan.Empty() {
			view.Result, err = p.Apply(ctx, outlook.Plan, outlook.Prior, outlook.Live, project.ApplyOptions{Progress: progress.Event, Parallelism: defaultParallelism()})
		}
		if view.Took = time.Since(begun); err != nil || len(view.Result.Failures) == 0 || !again(try, view.Result) {
			return view, err
		}
	}
}

// takeDownAbandoned takes down what runs that were killed have left here. What
// keeps it from that is told, and keeps nobody from running something else.
func (inv *invocation) takeDownAbandoned(ctx context.Context) {
	left, err := project.Abandoned(ctx, project.Options{File: inv.file, Given: inv.given, Version: Version})
	progress := inv.progress()
	for _, p := range left {
		var view render.AppliedView
		if view, err = inv.takeAllDown(ctx, p, progress); err == nil {
			err = p.Discard(view.Result.Prior)
		}
		if err == nil {
			fmt.Fprintln(inv.Err, "Took down what a cosplay run that was killed had left.")
		}
		_ = p.Close()
	}
	progress.Close()
	if err != nil {
		inv.tell(fmt.Errorf("taking down what a cosplay run that was killed has left: %w", err))
	}
}
