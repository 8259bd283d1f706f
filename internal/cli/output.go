package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

func (inv *invocation) output() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "output [NAME]",
		Short: "Show the outputs of the last apply",
		Long: `Show the values of output blocks that the last apply wrote into the state; or one of them. The state does not have sensitive values: without a name they are not shown, with their name cosplay evaluates them again.

With a name, --json writes the value alone, and --raw a text as it is, for scripts.`,
		Args: wants(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if raw && len(args) == 0 {
				return errors.New("--raw is for one value; name the output")
			}
			if raw && inv.json {
				return errors.New("--json and --raw are two forms of the same; leave one of them out")
			}
			return inv.runOutput(strings.Join(args, ""), raw)
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "write the text as it is, without quotes or a line end")
	return cmd
}

func (inv *invocation) runOutput(name string, raw bool) error {
	p, err := inv.openState()
	if err != nil {
		return err
	}
	prior, _, err := p.Remembered()
	if err != nil {
		return err
	}
	all, err := remembered(prior.Outputs)
	if err != nil {
		return err
	}
	if name == "" {
		return inv.printOutputs(all)
	}
	one, err := outputNamed(all, name)
	if err == nil && one.Sensitive {
		one, err = inv.revealed(prior, one.Name)
	}
	switch {
	case err != nil:
		return err
	case raw:
		text, err := render.RawText(one.Value)
		if err != nil {
			return fmt.Errorf("output %s is %w; --json writes any value", one.Name, err)
		}
		_, _ = io.WriteString(terminal.Raw(inv.Out), text)
		return nil
	}
	text := func(w io.Writer, _ render.Style, one config.Output) { fmt.Fprintln(w, render.OutputText(one)) }
	return printView(inv, one, text, render.OutputJSON)
}

func (inv *invocation) printOutputs(all []config.Output) error {
	if len(all) == 0 && !inv.json {
		fmt.Fprintln(inv.Err, "The state has no outputs. An output block and cosplay apply make one.")
		return nil
	}
	return printView(inv, all, render.OutputList, render.OutputsJSON)
}

// remembered reads outputs as the state has them: sensitive ones without a value.
func remembered(noted []resource.Output) ([]config.Output, error) {
	all := make([]config.Output, 0, len(noted))
	for _, o := range noted {
		one := config.Output{Name: o.Name, Sensitive: o.Sensitive, Value: cty.DynamicVal}
		if !o.Sensitive {
			var err error
			if one.Value, err = ctyjson.Unmarshal(o.Value, cty.DynamicPseudoType); err != nil {
				return nil, fmt.Errorf("output %s in the state cannot be read: %w; cosplay apply writes it again", o.Name, err)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

func outputNamed(all []config.Output, name string) (config.Output, error) {
	if len(all) == 0 {
		return config.Output{}, fmt.Errorf("the state has no output %q, nor any other; an output block and cosplay apply make one", name)
	}
	var names []string
	for _, o := range all {
		if o.Name == name {
			return o, nil
		}
		names = append(names, o.Name)
	}
	return config.Output{}, fmt.Errorf("the state has no output %q; it has %s", name, strings.Join(names, ", "))
}

// revealed evaluates a sensitive output that the user has named. Its variables need values.
func (inv *invocation) revealed(prior resource.Prior, name string) (config.Output, error) {
	p, err := inv.open(project.Options{MayBeEmpty: true})
	if err != nil {
		return config.Output{}, err
	}
	now, diags := p.Outputs(prior, resource.Live{})
	j := slices.IndexFunc(now, func(o config.Output) bool { return o.Name == name })
	if diags.HasErrors() || j < 0 || !now[j].Value.IsWhollyKnown() {
		return config.Output{}, fmt.Errorf("output %s is sensitive, so the state does not have its value, and the configuration does not have it any more; run cosplay apply", name)
	}
	now[j].Sensitive = false
	return now[j], nil
}
