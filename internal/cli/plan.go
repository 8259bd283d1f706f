package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"cosplay/internal/diff"
	"cosplay/internal/durable"
	"cosplay/internal/plan"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/selftest"
	"cosplay/internal/terminal"
	"cosplay/internal/watch"
)

func planCommand(inv *invocation) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what apply would change, and what has drifted",
		Long: `Compare the configuration with the state and with what the hosts show.

Exit codes: 0 fine, 1 error; with --detailed-exitcode 2 when there is drift or a change, otherwise 1 when a host cannot be read.`,
		Args: func(cmd *cobra.Command, args []string) error {
			return cmp.Or(noArgs(cmd, args), checkPlanFlags(cmd.Flags()), o.check(inv.json))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), inv) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.out, "out", "", "save the plan to this `file`, for cosplay apply FILE")
	flags.BoolVar(&o.markdown, "markdown", false, "write Markdown, for a pull request")
	flags.BoolVar(&o.destroy, "destroy", false, "plan to remove everything")
	flags.BoolVar(&o.refreshOnly, "refresh-only", false, "only search for drift")
	aimFlags(flags, &o.aim)
	flags.BoolVar(&o.detailed, "detailed-exitcode", false, "exit with 2 when there is drift or a change")
	o.stepFlags.flags(flags)
	flags.Lookup("parallelism").Usage = "`number` of steps at a time of an apply; without effect here, a plan runs no steps"
	inv.planFlags(flags)
	return cmd
}

func driftCommand(inv *invocation) *cobra.Command {
	o := planOptions{aim: project.Aim{Goal: project.ReadOnly}, refreshOnly: true, detailed: true, driftOnly: true}
	cmd := &cobra.Command{
		Use:   "drift",
		Short: "Print what was changed outside cosplay",
		Long: `The same as plan --refresh-only --detailed-exitcode, but standard output stays empty without drift: for cron.

NVML cannot read a clock lock. While a GPU is idle its lock is not provable; drift reports that on standard error as information, which does not change the exit code. --quiet leaves it out.

drift checks the files of each session's disguise, and asks NVML in each container that runs, which takes 5 seconds at most. --verify runs the whole self-test in every session, which takes seconds and proves the clock locks too: see cosplay verify.

--exec and --notify announce each finding once when it begins and once when it ends; what could not be sent, the next run sends. Neither changes the exit code, and informational findings are not announced. The command of --exec has 30 seconds.

Exit codes: 0 no drift; 1 error, or no drift and a host that cannot be read; 2 drift.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), inv) },
	}
	cmd.Flags().BoolVar(&o.verify, "verify", false, "also test the disguise from inside every session")
	o.alerts.flags(cmd.Flags())
	cmd.Flags().StringVar(&o.metrics, "metrics", "", "write the metrics of watch to this `FILE`, for node_exporter")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but drift: no information on standard error")
	return cmd
}

type planOptions struct {
	stepFlags                      // a plan runs no steps; drift waits as long as a project does
	aim                            project.Aim
	out                            string
	destroy, refreshOnly, detailed bool
	markdown, verify               bool

	driftOnly bool // standard output stays empty without drift
	quiet     bool // and so does standard error
	alerts    alertOptions
	metrics   string // file
}

// check refuses flags that contradict each other.
func (o *planOptions) check(json bool) error {
	switch {
	case o.refreshOnly && o.destroy:
		return errors.New("--refresh-only changes nothing, so there is no --destroy with it; leave one of them out")
	case o.refreshOnly && o.out != "":
		return errors.New("--refresh-only makes no plan that could be saved; leave --out or --refresh-only out")
	case o.refreshOnly && o.markdown:
		return errors.New("--markdown shows the plan, drift and all; leave --refresh-only out")
	case json && o.markdown:
		return errors.New("--json and --markdown are two forms of the same; leave one of them out")
	case o.destroy:
		o.aim.Goal = project.NothingLeft
	case o.refreshOnly:
		o.aim.Goal = project.ReadOnly
	}
	return checkAim(o.aim)
}

func (o planOptions) run(ctx context.Context, inv *invocation) error {
	announce, err := o.alerts.announcer(inv)
	metrics, unfit := o.metrics, error(nil)
	if metrics != "" {
		metrics, unfit = durable.Destination(metrics)
	}
	if err := cmp.Or(err, unfit, mayOverwrite(o.out)); err != nil {
		return err
	}
	inv.asks = true
	changes := !o.destroy && !o.refreshOnly
	p, err := inv.open(project.Options{HostsOnly: !changes, EnginesMayFail: o.refreshOnly, Clusters: changes && o.out == ""})
	if err != nil {
		return err
	}
	p.Wait = o.lockTimeout
	var clusters *project.ClusterPlan
	if changes && len(narrowed(o.aim)) == 0 { // else it is of what apply changes
		var diags hcl.Diagnostics
		clusters, diags = p.PlanClusters()
		if clusters == nil && len(p.Intent.Hosts) > 0 { // the plan is for apply, which needs no file of a cluster
			for _, d := range diags {
				d.Severity = hcl.DiagWarning
			}
		}
		p.warnings = append(p.warnings, diags...)
	}
	outlook, view, err := inv.outlook(ctx, p, o.aim)
	if err != nil {
		return err
	}
	view.Clusters = inv.clustersView(clusters)
	if o.driftOnly {
		if err := o.lookInside(ctx, inv, p.Project, outlook); err != nil {
			return err
		}
		announce.recall(p.Project, outlook)
	}
	view.Destroy, view.Quiet, view.Killed = o.destroy, o.quiet, o.driftOnly && len(p.Killed()) > 0
	if o.out != "" {
		saved := p.Saved(outlook, o.again(inv.variableFlags()))
		if err := savePlan(o.out, saved); err != nil {
			return err
		}
		view.Saved, view.Again = o.out, saved.Again
	}
	err = o.show(inv, view)
	if o.driftOnly {
		announce.deliver(ctx, p.Project, outlook)
	}
	if o.metrics != "" {
		err = cmp.Or(err, watch.Fleet(p.Project, outlook, Version).WriteFile(metrics))
	}
	err = cmp.Or(err, exitIf(o.detailed && o.differs(outlook.Plan.Diff), exitChanges))
	if unreached := outlook.Live.Unreached(); o.detailed && o.refreshOnly && unreached != nil { // a plan has warned of them
		if err == nil {
			return unreached
		}
		inv.report(unreached)
	}
	return cmp.Or(err, exitIf(o.detailed && !outlook.Live.AllReached(), exitError))
}

// differs reports whether there is what --detailed-exitcode is about: drift, or a change.
func (o planOptions) differs(d diff.Diff) bool {
	changes := d.Changes() || len(d.Outputs) > 0
	return d.NotAsApplied() || changes && !o.refreshOnly
}

func (o planOptions) show(inv *invocation, view render.PlanView) error {
	switch {
	case o.refreshOnly:
		return o.printDrift(inv, view)
	case o.markdown:
		return render.PlanMarkdown(inv.Out, inv.style(inv.Out), view)
	}
	return inv.print(view)
}

// lookInside adds to the drift what the sessions themselves show: in the whole self-test, or at a glance.
func (o planOptions) lookInside(ctx context.Context, inv *invocation, p *project.Project, outlook project.Outlook) error {
	found := &outlook.Plan.Diff
	if !o.verify {
		found.Drift = append(slices.Clip(found.Drift), selftest.Glance(ctx, p, outlook)...)
		return nil
	}
	all := outlook.Prior.Sessions
	defer inv.slow("Testing the disguise in " + prose.Count(len(all), "session"))()
	verified, err := selftest.Verify(ctx, p, outlook.Prior, outlook.Live, all, selftest.VerifyOptions{})
	if err == nil {
		*found = selftest.WithBroken(*found, verified)
	}
	return err
}

// again are the flags that make the plan again, but for those that select the project.
func (o planOptions) again(variables []string) []string {
	if o.destroy {
		variables = append(variables, "--destroy")
	}
	return append(variables, aimed(o.aim)...)
}

// outlook computes the plan, and the view of it.
func (inv *invocation) outlook(ctx context.Context, p *opened, aim project.Aim) (project.Outlook, render.PlanView, error) {
	done := inv.slow("Reading the hosts")
	outlook, diags, err := p.Plan(ctx, aim)
	done()
	if err != nil {
		return outlook, render.PlanView{}, err
	}
	view, err := inv.planView(p, outlook, diags, aim)
	return outlook, view, err
}

// planView is the view of a plan. Diagnostics with errors end the command.
func (inv *invocation) planView(p *opened, outlook project.Outlook, diags hcl.Diagnostics, aim project.Aim) (render.PlanView, error) {
	diags = slices.Concat(p.warnings, diags)
	if diags.HasErrors() {
		return render.PlanView{}, inv.refuse(diags, p.files)
	}
	return render.PlanView{
		Config: inv.configName(p.files), Flags: inv.flags(), Aim: aimed(aim), Prior: outlook.Prior, Live: outlook.Live, Plan: outlook.Plan,
		Warnings: diags, Files: p.files, Notes: p.Notes,
	}, nil
}

func (o planOptions) printDrift(inv *invocation, view render.PlanView) error {
	drifted := view.Plan.Diff.NotAsApplied()
	switch {
	case inv.json:
		return render.DriftJSON(inv.Out, view)
	case !drifted && !o.driftOnly:
		render.NoDrift(inv.Out, inv.style(inv.Out), view)
	default: // without drift, only notes of a recovery: cron jobs expect no output
		render.Drift(inv.Out, inv.style(inv.Out), view)
		if !drifted && !o.quiet {
			render.Information(inv.Err, inv.style(inv.Err), view)
		}
		if view.Killed && !o.quiet {
			fmt.Fprintln(inv.Err, "A cosplay run in this folder was killed and has left something. Fix:", terminal.ShellWords(append([]string{"cosplay", "reset"}, view.Flags...)))
		}
	}
	return nil
}

// savedPlan is a plan on disk. The checksum is no seal; it detects that a plan was edited
// after it was shown.
type savedPlan struct {
	Checksum string          `json:"checksum"`
	Plan     json.RawMessage `json:"plan"`
}

// checksum is that of a plan's JSON, however it is laid out.
func checksum(data json.RawMessage) string {
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return ""
	}
	sum := sha256.Sum256(compact.Bytes())
	return hex.EncodeToString(sum[:])
}

// savePlan writes a plan for a later apply. It may contain secrets of the configuration,
// so only the user can read it.
func savePlan(path string, saved plan.Saved) error {
	content, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(savedPlan{Checksum: checksum(content), Plan: content}, "", "  ")
	if err != nil {
		return err
	}
	real, err := durable.Destination(path)
	if err == nil {
		err = durable.WriteFile(real, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("saving the plan: %w", err)
	}
	return nil
}

// mayOverwrite keeps --out from destroying a file that is no saved plan. "" is no file.
func mayOverwrite(path string) error {
	if path == "" {
		return nil
	}
	data, err := durable.ReadRecord(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return nil
	}
	var saved savedPlan
	if err != nil || json.Unmarshal(data, &saved) != nil || saved.Checksum == "" {
		return fmt.Errorf("%s is there and is no saved plan: it stays as it is. Name another file with --out", path)
	}
	return nil
}

// loadPlan reads a saved plan.
func loadPlan(path string) (*plan.Saved, error) {
	const makeOne = "make one with cosplay plan --out FILE"
	data, err := durable.ReadRecord(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s; %s", path, makeOne)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w; %s", err, makeOne)
	}
	var saved savedPlan
	switch {
	case json.Unmarshal(data, &saved) != nil || saved.Checksum == "":
		return nil, fmt.Errorf("%s is not a saved plan; %s", path, makeOne)
	case checksum(saved.Plan) != saved.Checksum:
		return nil, fmt.Errorf("%s was changed after it was saved, so it is not the plan that was shown; %s", path, makeOne)
	}
	p, err := plan.Read(saved.Plan)
	if p.FormatVersion != plan.FormatVersion {
		return nil, fmt.Errorf("%s has format version %d, this cosplay reads %d and %d: another version of cosplay saved it; %s",
			path, p.FormatVersion, plan.FormatVersion-1, plan.FormatVersion, makeOne)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; %s", path, err, makeOne)
	}
	return &p, nil
}
